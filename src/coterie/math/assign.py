"""From latents and centres to distances and assignments.

Every function is pure, differentiable where that makes sense, and allocates (n, k) at most:
no (n, k, d) tensor is ever built.
"""

from typing import Any

import torch

SMALLEST = 1e-12  # floor for probabilities inside a logarithm and for sums in a denominator
NEARLY_NONE = 1e-30  # floor where even very small probabilities shall be told apart
# values of a tensor that comes and goes while all rows are worked through: fits a CPU cache
BLOCK_VALUES, BLOCK_ROWS = 1 << 19, 4096


def in_blocks(function, rows, width, out: Any = None) -> Any:  # (n, d) -> (n, ...)
    """`function(rows)`, some rows at a time and into one tensor: what it allocates stays small.

    `width` is the longest row that it makes on the way; `out` may be `rows` itself.
    """
    # a multiple, so that rows meet the same vector instructions as in one piece: the same bits
    step = max(1, BLOCK_VALUES // (width * BLOCK_ROWS)) * BLOCK_ROWS
    for start in range(0, len(rows), step):
        part = function(rows[start : start + step])
        if out is None:
            out = part.new_empty(len(rows), *part.shape[1:])
        out[start : start + step] = part
    return out


def squared_distances(z, centers):  # (n, d), (k, d) -> (n, k)
    """Squared Euclidean distances, from the expanded form.

    Both sides are first moved by the mean of the centres. Distances do not notice, but
    ``|z|^2 + |c|^2 - 2 z.c`` then loses far fewer digits for data that lie away from the origin.
    """
    shift = centers.detach().mean(dim=0)
    z, centers = z - shift, centers - shift
    z_norms = z.square().sum(dim=1, keepdim=True)
    center_norms = centers.square().sum(dim=1)
    # rounding can leave a distance slightly below 0 (-0.008 at scale 100 in float32)
    return (torch.addmm(center_norms, z, centers.T, alpha=-2) + z_norms).clamp_min(0)


def squared_error(x, y):  # (n, ...), (n, ...) -> ()
    """Squared distance of each row of x from its partner in y, mean over rows.

    A reconstruction error, or how far rows are from their own centres: sum over features, mean over
    rows, as every loss here.
    """
    return (x - y).square().flatten(1).sum(1).mean()


def cosine_distances(z, centers, eps=1e-12):  # (n, d), (k, d) -> (n, k)
    """One minus the cosine, in [0, 2]; a zero vector is at distance 1 from everything."""
    return 1 - _unit(z, eps) @ _unit(centers, eps).T


def _unit(rows, eps):
    # eps under the root keeps the gradient finite at a zero row
    return rows / (rows.square().sum(dim=1, keepdim=True) + eps**2).sqrt()


def student_t(z, centers, dof=1.0):  # (n, d), (k, d) -> (n, k)
    """Soft assignment of DEC (its q): Student's t kernel around each centre, rows sum to 1."""
    log_kernel = -(dof + 1) / 2 * torch.log1p(squared_distances(z, centers) / dof)
    return log_kernel.softmax(dim=1)  # in logs: the kernel underflows for large dof


def target_distribution(q, sizes=None):  # (n, k), (k,) -> (n, k)
    """Sharpened target of DEC (its p): ``q^2`` over the soft cluster size, rows sum to 1.

    The sizes are those of all rows: of q, or given when q is a part of them. The caller detaches
    the target: it stays fixed between updates.
    """
    sizes = q.sum(dim=0) if sizes is None else sizes
    weight = q.square() / sizes.clamp_min(SMALLEST)
    return weight / weight.sum(dim=1, keepdim=True).clamp_min(SMALLEST)


def kl(p, q):  # (n, k), (n, k) -> ()
    """Kullback-Leibler divergence KL(p || q): sum over clusters, mean over rows, safe at 0."""
    log_ratio = p.clamp_min(SMALLEST).log() - q.clamp_min(SMALLEST).log()
    return (p * log_ratio).sum(dim=1).mean()


def softmin(dist, inverse_temperature):  # (n, k) -> (n, k)
    """Relaxed assignment G of DKM: softmax of ``-inverse_temperature * dist``.

    softmax shifts by the row maximum, so 1000 and more does not underflow to 0/0.
    """
    return (-inverse_temperature * dist).log_softmax(dim=1).exp()


def fuzzy_membership(dist, fuzzifier, squared=True):  # (n, k) -> (n, k)
    """Fuzzy c-means membership, written as a softmax so that a distance of 0 is allowed.

    Parameters
    ----------
    dist : (n, k) distances, squared ones by default.
    fuzzifier : the m of fuzzy c-means, above 1; towards 1 the assignment becomes hard. A tensor is
        not checked: to look at it would make an accelerator wait.
    squared : whether `dist` holds squared distances (exponent 1/(m-1)) or plain ones (2/(m-1)).
    """
    if not torch.is_tensor(fuzzifier) and fuzzifier <= 1:
        raise ValueError(f"fuzzifier={fuzzifier} but it must be above 1; 2 is the usual choice")
    power = (1.0 if squared else 2.0) / (fuzzifier - 1)
    return (-power * dist.clamp_min(1e-20).log()).log_softmax(dim=1).exp()


def hard(scores):  # (n, k) -> (n,)
    """Label of each row: the cluster with the highest score, the first one in a tie."""
    return scores.argmax(dim=1)


def collapsed(q, tol=1e-4):  # (n, k) -> bool
    """Whether all rows of q are the same up to tol.

    Such a q is a fixed point of DEC (p equals q, no gradient): training cannot leave it.
    """
    if min(q.shape) < 2:
        return False  # one row or one cluster is always "the same" and says nothing
    return bool((q.amax(dim=0) - q.amin(dim=0)).amax() <= tol)


def log_odds(proba):  # (n, k) -> (n,)
    """Log of the largest probability over the sum of all others.

    A sum, not one minus the largest: that is zero where a float32 rounds to one.
    """
    top, label = proba.max(1)
    rest = torch.where(
        torch.arange(proba.shape[1], device=proba.device) == label[:, None], 0, proba
    ).sum(1)
    return top.clamp_min(NEARLY_NONE).log() - rest.clamp_min(NEARLY_NONE).log()


def gaussian_scores(z, head):  # (n, d) -> (n, k)
    """Log densities of equal round Gaussians at the centres: soft, and nearest still wins."""
    return -squared_distances(z, head.centers) / (2 * head.variance)
