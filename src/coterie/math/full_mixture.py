"""EM for a Gaussian mixture with full covariances, from the labels of any clustering."""

import math
from dataclasses import dataclass

import torch

BLOCK = 2**22  # numbers held at a time
RIDGE = 1e-6  # added to every variance, times the mean variance of the data


@dataclass(frozen=True)
class FullMixture:
    """Log weights (k,), means (k, d), whitening (k, d, d), all float64; mean log-likelihood."""

    log_weights: torch.Tensor
    means: torch.Tensor
    whitening: torch.Tensor  # u = (x - mean) @ whitening has the identity as covariance
    bound: float

    def log_joint(self, x):  # (n, d) -> (n, k)
        """Log of weight times density."""
        k, d = self.means.shape
        turn = self.whitening.permute(1, 0, 2).reshape(d, k * d)
        shift = (self.means[:, None] @ self.whitening).flatten()
        volume = self.whitening.diagonal(dim1=1, dim2=2).log().sum(1)
        offset = self.log_weights + volume - 0.5 * d * math.log(2 * math.pi)
        step = max(1, BLOCK // (k * d))
        squares = [
            (part.double() @ turn - shift).square_().view(-1, k, d).sum(2) for part in x.split(step)
        ]
        return offset - 0.5 * torch.cat(squares)

    def log_density(self, x):  # (n, d) -> (n,)
        return self.log_joint(x).logsumexp(1)


@torch.no_grad()
def full_mixture(x, labels, k, *, prior=None, tol=1e-3, max_iter=100):  # (n, d), (n,)
    """EM that starts from `labels`; ends when the mean log-likelihood gains less than `tol`.

    Every covariance is a mean of the cluster's own scatter S_j and of the pooled one:
    (S_j + prior / n sum_i S_i) / (n_j + prior). So a cluster of few rows has the shape of the
    others, and none can shrink onto a line of a few rows, which would be the likeliest of all.

    Parameters
    ----------
    prior : rows that the pooled covariance counts for; None: d + 2
    """
    x = x.double()
    center = x.mean(0)
    x = x - center
    prior = x.shape[1] + 2.0 if prior is None else prior
    variance = float(x.square().mean()) or 1.0
    weigh = torch.nn.functional.one_hot(labels.long(), k).double()
    # few columns: the products of all pairs of them are made once
    pairs = None if x.shape[1] * x.numel() > BLOCK else (x[:, :, None] * x[:, None]).flatten(1)
    last, found, bound = -math.inf, None, -math.inf
    for _ in range(max_iter):
        found = _maximise(x, pairs, weigh, RIDGE * variance, prior)
        logs = found.log_joint(x)
        density = logs.logsumexp(1)
        bound = float(density.mean())
        if bound - last < tol:
            break
        last, weigh = bound, (logs - density[:, None]).exp_()
    return FullMixture(found.log_weights, found.means + center, found.whitening, bound)


def _maximise(x, pairs, weigh, ridge, prior):
    n, d = x.shape
    counts = weigh.sum(0) + 1e-10
    means = (weigh.T @ x) / counts[:, None]
    if pairs is not None:
        scatter = (weigh.T @ pairs).view(-1, d, d)
        scatter -= counts[:, None, None] * means[:, :, None] * means[:, None]
    else:
        scatter = x.new_empty(weigh.shape[1], d, d)
        for j, mean in enumerate(means):
            u = x - mean
            torch.mm(u.T, u * weigh[:, j : j + 1], out=scatter[j])
    cov = (scatter + prior / n * scatter.sum(0)) / (counts + prior)[:, None, None]
    cov.diagonal(dim1=1, dim2=2).add_(ridge)
    chol = torch.linalg.cholesky_ex(cov)[0]
    eye = torch.eye(d, dtype=x.dtype).expand_as(chol)
    turn = torch.linalg.solve_triangular(chol, eye, upper=False).transpose(1, 2)
    return FullMixture((counts / n).log(), means, turn, -math.inf)
