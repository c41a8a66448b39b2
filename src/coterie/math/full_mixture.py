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
def full_mixture(x, labels, k, *, prior=0.0, tol=1e-3, max_iter=100):  # (n, d), (n,)
    """EM that starts from `labels`; ends when the mean log-likelihood gains less than `tol`.

    Parameters
    ----------
    prior : rows of the whole data's mean variance that every covariance is mixed with; steadies
        clusters of few rows
    """
    x = x.double()
    center = x.mean(0)
    x = x - center
    variance = float(x.square().mean()) or 1.0
    weigh = torch.nn.functional.one_hot(labels.long(), k).double()
    last, found = -math.inf, None
    for _ in range(max_iter):
        found = _maximise(x, weigh, variance, prior)
        logs = found.log_joint(x)
        density = logs.logsumexp(1)
        bound = float(density.mean())
        if bound - last < tol:
            break
        last, weigh = bound, (logs - density[:, None]).exp_()
    return FullMixture(found.log_weights, found.means + center, found.whitening, bound)


def _maximise(x, weigh, variance, prior):
    n, d = x.shape
    counts = weigh.sum(0) + 1e-10
    means = (weigh.T @ x) / counts[:, None]
    eye = torch.eye(d, dtype=x.dtype)
    turns = []
    for j in range(weigh.shape[1]):
        u = (x - means[j]) * weigh[:, j : j + 1].sqrt()
        cov = (u.T @ u + prior * variance * eye) / (counts[j] + prior) + RIDGE * variance * eye
        chol = torch.linalg.cholesky_ex(cov)[0]
        turns.append(torch.linalg.solve_triangular(chol, eye, upper=False).T)
    return FullMixture((counts / n).log(), means, torch.stack(turns), -math.inf)
