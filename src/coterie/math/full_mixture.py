"""EM for a Gaussian mixture with full covariances, from the labels of any clustering."""

import math
from dataclasses import dataclass

import torch

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
        x = x.double()
        d = x.shape[1]
        logs = x.new_empty(len(x), len(self.means))
        for j, (mean, turn) in enumerate(zip(self.means, self.whitening)):
            logs[:, j] = ((x - mean) @ turn).square().sum(1).mul_(
                -0.5
            ) + turn.diagonal().log().sum()
        return logs + self.log_weights - 0.5 * d * math.log(2 * math.pi)

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
    last, found, bound = -math.inf, None, -math.inf
    for _ in range(max_iter):
        found = _maximise(x, weigh, RIDGE * variance, prior)
        logs = found.log_joint(x)
        density = logs.logsumexp(1)
        bound = float(density.mean())
        if bound - last < tol:
            break
        last, weigh = bound, (logs - density[:, None]).exp_()
    return FullMixture(found.log_weights, found.means + center, found.whitening, bound)


def _maximise(x, weigh, ridge, prior):
    n, d = x.shape
    counts = weigh.sum(0) + 1e-10
    means = (weigh.T @ x) / counts[:, None]
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
