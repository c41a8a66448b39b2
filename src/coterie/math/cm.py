"""The Clustering Module (CM): softmax encoder, affine decoder, and the terms of its loss.

Restarts ride along as one model: tensors may carry an axis r of restarts that never mix, and all
of them see the same rows, so one matrix product serves them all.
"""

import math

import torch
from torch.nn.functional import linear

from .assign import squared_distances

Tensors = dict[str, torch.Tensor]


def random_start(k, d, generator):  # -> tensors of one restart
    """Glorot-uniform kernels; biases normal with variance 1/length, as in the authors' code."""
    bound = math.sqrt(6 / (d + k))

    def kernel():
        return (2 * torch.rand(k, d, generator=generator) - 1) * bound

    def bias(size):
        return torch.randn(size, generator=generator) / math.sqrt(size)

    return {
        "encoder": kernel(),
        "encoder_bias": bias(k),
        "decoder": kernel(),
        "decoder_bias": bias(d),
    }


def start_from(centers):  # (k, d) -> tensors of one restart
    """Decoder at given centres, encoder their pseudo-inverse, no biases (paper, section 4.2).

    Centres of rows whose mean is 0 are linearly dependent: the singular value of that dependence
    is rounding error, and its inverse would drown all others. Values far below the least spread of
    the centres about their mean are therefore left out.
    """
    k, d = centers.shape
    wide = centers.cpu().double()
    spread = torch.linalg.svdvals(wide - wide.mean(0))[: max(1, min(k - 1, d))]
    inverse = torch.linalg.pinv(wide, atol=float(spread[-1]) / 10, rtol=1e-6).T.to(centers)
    zero = centers.new_zeros
    return {
        "encoder": inverse,
        "encoder_bias": zero(k),
        "decoder": centers,
        "decoder_bias": zero(d),
    }


def near_frame(centers):  # (k, d) -> (d,), (), (d,)
    """The move ``scale (z - middle) + to`` that brings centres near to an orthonormal frame.

    k orthonormal vectors lie around their mean with squares that sum to k - 1, and the mean has
    length 1 / sqrt(k), at right angles to what lies between them. Angles are left as they are.
    """
    k = len(centers)
    middle = centers.mean(0)
    apart = centers - middle
    total = apart.square().sum()
    scale = ((k - 1) / total).sqrt() if k > 1 and total > 0 else torch.ones_like(total)
    values, axes = torch.linalg.eigh((apart.T @ apart).cpu().double())
    flat = axes[:, values <= values[0] + 1e-6 * values[-1]]
    # which of the flat directions, and which way, must not be left to rounding
    across = flat @ flat.sum(0)
    if across.norm() < 0.1:
        across = flat @ flat[int(flat.norm(dim=1).argmax())]
    return middle, scale, (across / across.norm() / math.sqrt(k)).to(centers)


def stack(starts: list[Tensors]) -> Tensors:
    """Restarts side by side: a leading axis r on every tensor."""
    return {name: torch.stack([s[name] for s in starts]) for name in starts[0]}


def responsibilities(x, encoder, bias):  # (n, d), (r, k, d), (r, k) -> (n, r, k)
    """gamma = softmax(encoder x + bias), for all restarts in one product."""
    r, k, _ = encoder.shape
    return linear(x, encoder.flatten(0, 1), bias.flatten()).view(-1, r, k).softmax(2)


def centers_of(decoder, bias):  # (r, k, d), (r, d) -> (r, k, d)
    """What the decoder makes of the corners of the simplex."""
    return decoder + bias[:, None]


def cm_terms(x, gamma, mu):  # (n, d), (n, [r,] k), ([r,] k, d) -> dict of three scalars
    """Terms E1, E2 and -E3 of CM (eq. 11): sums within a row, means over rows and restarts.

    For gamma with rows that sum to 1 they add up to ``sum_k gamma_k |x - mu_k|^2``, fuzzy
    k-means; they are kept apart because sparsity + merge is the label-free score that
    chooses among runs.

    Returns
    -------
    dict with
        reconstruction : ``|x - gamma mu|^2``
        sparsity : ``sum_k gamma_k (1 - gamma_k) |mu_k|^2``
        merge : ``-sum_{k != l} gamma_k gamma_l mu_k . mu_l``
    """
    if gamma.ndim == 2:
        gamma, mu = gamma.unsqueeze(1), mu.unsqueeze(0)
    n, r, k = gamma.shape
    # all a row needs to know of the centres are k products: no (n, r, d) array is made
    fit = (linear(x, mu.flatten(0, 1)) * gamma.view(n, r * k)).sum()
    gram, shared = mu @ mu.transpose(1, 2), gamma.permute(1, 2, 0) @ gamma.transpose(0, 1)
    own, norms = shared.diagonal(dim1=1, dim2=2), gram.diagonal(dim1=1, dim2=2)
    pairs = shared * gram
    crossed = pairs.masked_fill(torch.eye(k, dtype=torch.bool, device=x.device), 0).sum()  # k != l
    return {
        "reconstruction": x.square().sum() / n + (pairs.sum() - 2 * fit) / (n * r),
        "sparsity": ((gamma.sum(0) - own) * norms).sum() / (n * r),
        "merge": -crossed / (n * r),
    }


def ambiguity(gamma, mu):  # (n, r, k), (r, k, d) -> (r,)
    """L_sp = E2 - E3 summed over rows, for each restart; equals half of
    ``sum_kl gamma_k gamma_l |mu_k - mu_l|^2`` and is computed so: it never falls below 0."""
    apart = torch.stack([squared_distances(m, m) for m in mu])
    apart.diagonal(dim1=1, dim2=2).zero_()
    shared = gamma.permute(1, 2, 0) @ gamma.transpose(0, 1)
    return (shared * apart).sum((1, 2)) / 2


def per_row(alpha, batch_size):  # () or (k,) -> the same
    """The paper's pair (alpha, B) as a weight for a loss that is a mean over rows.

    Its loss sums over the B rows of a batch but counts the prior once, so that a row carries
    ``(alpha - 1) / B``. In this form the batch size may change and the model stays.
    """
    return (alpha - 1) / batch_size
