"""EM for a Gaussian mixture with diagonal covariances: one pass over the rows an iteration.

Each block of rows is squared and weighed while it is in the cache, so nothing of the size of the
data is ever made; sums are in float64, rows may be float32.
"""

import math
from dataclasses import dataclass

import torch

from coterie.math.kmeans import kmeans

BLOCK_VALUES = 2**18  # values of a block: 2 MB of float64
EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class Mixture:
    """Weights (k,), means (k, d), variances (k, d), all float64, and the mean log-likelihood."""

    weights: torch.Tensor
    means: torch.Tensor
    variances: torch.Tensor
    bound: float = -math.inf

    @property
    def offset(self) -> torch.Tensor:  # (k,)
        """Log of the weight and of the density's constant."""
        volume = self.variances.log().sum(1) + self.means.shape[1] * math.log(2 * math.pi)
        return self.weights.log() - 0.5 * volume


@torch.no_grad()
def diagonal_mixture(x, k, *, rng, start, ridge, n_init=1, tol=1e-3, max_iter=100):
    """The best of `n_init` runs of EM on x (n, d); the rules are those of scikit-learn.

    Parameters
    ----------
    start : "kmeans" (its labels are the first responsibilities) or "random" (drawn at random).
    ridge : added to every variance.
    tol, max_iter : a run ends when the mean log-likelihood of a row gains less than `tol`.
    """
    center = x.mean(0, dtype=torch.float64)  # squares about the mean do not cancel
    runs = []
    for _ in range(n_init):
        if start == "kmeans":
            first = _by_label(kmeans(x, k, rng=rng, n_init=1).labels, k)
        else:
            first = _drawn(rng, k)
        mixture = _pass(x, k, center, ridge, first)
        last = -math.inf
        for _ in range(max_iter):
            mixture = _pass(x, k, center, ridge, _by_density(mixture))
            if abs(mixture.bound - last) < tol:
                break
            last = mixture.bound
        runs.append(mixture)
    best = max(runs, key=lambda run: run.bound)
    return Mixture(best.weights, best.means + center, best.variances, best.bound)


def _by_label(labels, k):
    """Labels (n,) as a first E step."""

    def weigh(at, block, square):
        own = torch.nn.functional.one_hot(labels[at : at + len(block)], k)
        return own.T.to(block.dtype, memory_format=torch.contiguous_format), 0.0

    return weigh


def _drawn(rng, k):
    """Responsibilities at random, drawn row by row as they are asked for."""

    def weigh(at, block, square):
        own = torch.from_numpy(rng.random((len(block), k)))
        return (own / own.sum(1, keepdim=True)).T.contiguous(), 0.0

    return weigh


def _by_density(mixture):
    """The E step of a mixture: (k, rows) responsibilities and the sum of the log-likelihoods."""
    precision = 1 / mixture.variances
    linear = mixture.means * precision
    offset = (mixture.offset - 0.5 * (mixture.means * linear).sum(1)).unsqueeze(1)

    def weigh(at, block, square):
        logs = torch.addmm(offset, linear, block.T).addmm_(precision, square.T, alpha=-0.5)
        density = logs.logsumexp(0)
        return logs.sub_(density).exp_(), density.sum().item()

    return weigh


def _pass(x, k, center, ridge, weigh):
    """The mixture after an E and an M step, means about `center`, with the bound before them.

    Clusters come first, (k, rows): products of few clusters with many rows are fastest that way.
    """
    n, d = x.shape
    rows = max(1, BLOCK_VALUES // max(d, k))
    counts, bound = center.new_zeros(k), 0.0
    sums, squares = center.new_zeros(k, d), center.new_zeros(k, d)
    for at in range(0, n, rows):
        block = x[at : at + rows].double() - center
        square = block * block
        own, likelihood = weigh(at, block, square)
        bound += likelihood
        counts += own.sum(1)
        sums.addmm_(own, block)
        squares.addmm_(own, square)
    counts += 10 * EPS
    means = sums / counts[:, None]
    variances = (squares / counts[:, None] - means.square()).clamp_min(0) + ridge
    return Mixture(counts / counts.sum(), means, variances, bound / n)
