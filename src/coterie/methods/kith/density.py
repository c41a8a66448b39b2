"""Are k Gaussians all there is to say about the rows? Asked of rows that they have not seen.

Mixtures of k Gaussians of four shapes learn from one half of the rows; the mean log-likelihood of
the other half says which shape fits best. The same is asked of richer densities: mixtures of more
components and, in few columns, a kernel density. Where none of them is better, the k components are
the clusters, however much they overlap. Where one is, clusters have other shapes than Gaussians.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from ...math.gaussians import SHAPES, Gaussians, gaussians
from ...math.kmeans import kmeans

RICHER = (1.5, 2, 4)  # components of the richer mixtures, in parts of k
KERNEL_COLUMNS = 4  # up to here a kernel density is worth asking
WIDTHS = (0.05, 0.1, 0.2, 0.4)  # of its kernels; columns have deviations of about one
TRIAL_ROWS, JUDGED_ROWS = 2000, 3000  # rows that starts are tried on; rows of both halves, at most
ROWS_EACH = 4  # rows for each component, at least
FREE_NUMBERS = 40_000  # in all covariances of their own, at most
MOST_SPLITS, SPLIT_ROWS = 6, 3000  # ways in which few rows are halved
EM_STEPS, HALF_STEPS = 40, 20


@dataclass(frozen=True)
class Description:
    """The best k Gaussians, and how much better the best richer density is, in nats a row."""

    mixture: Gaussians
    gap: float

    def labels(self, z: torch.Tensor) -> torch.Tensor:  # (n, m) -> (n,)
        return torch.cat([self.mixture.log_joint(part).argmax(1) for part in z.split(16384)])


@torch.no_grad()
def describe(
    z: torch.Tensor,  # (n, m) features
    k: int,
    starts: list[torch.Tensor],  # labels (n,) from which EM begins
    rng: np.random.Generator,
) -> Description:
    """The k Gaussians that describe the rows best, compared with richer densities.

    Few rows are halved several times, and densities compared by their means: the largest of many
    uncertain scores would be too large.
    """
    n, m = z.shape
    picked = torch.from_numpy(rng.permutation(n)[: max(TRIAL_ROWS, JUDGED_ROWS)])
    x, starts = unrounded(z[picked], rng), [start[picked] for start in starts]
    few = slice(0, TRIAL_ROWS)
    best = {
        shape: max(
            (gaussians(x[few], start[few], k, shape, max_iter=EM_STEPS) for start in starts),
            key=lambda found: found.bound,
        )
        for shape in _affordable(k, m)
    }
    scores = []  # of each half: the k Gaussians by shape, then the richer densities
    for _ in range(max(1, min(MOST_SPLITS, SPLIT_ROWS // n))):
        halves = torch.from_numpy(rng.permutation(len(x))[:JUDGED_ROWS]).chunk(2)
        for seen, unseen in (halves, halves[::-1]):
            known, new = x[seen], x[unseen]
            found = [_score(known, best[s].log_joint(known).argmax(1), k, s, new) for s in best]
            scores.append(found + _richer(known, new, k, rng))
    means = np.mean(scores, 0)
    top = int(means[: len(best)].argmax())
    richer = means[len(best) :]
    gap = float(richer.max() - means[top]) if len(richer) else 0.0
    return Description(list(best.values())[top], gap)


def _affordable(k: int, m: int) -> list[str]:
    return [s for s in SHAPES if s != "free" or k * m * m <= FREE_NUMBERS]


def _richer(known, new, k, rng):  # -> list of float
    found = []
    for c in sorted({math.ceil(part * k) for part in RICHER}):
        if ROWS_EACH * c <= len(known):
            start = kmeans(known, c, rng=rng, n_init=1, max_iter=20).labels
            found += [_score(known, start, c, s, new) for s in _affordable(c, known.shape[1])]
    if known.shape[1] <= KERNEL_COLUMNS:
        found += kernel_scores(known.double(), new.double())
    return found


def _score(known, labels, k, shape, new):
    found = gaussians(known, labels, k, shape, max_iter=HALF_STEPS)
    return float(found.log_density(new).mean())


def kernel_scores(known, new):  # (n, m), (b, m) -> list of float
    """Mean log-density of `new` under Gaussian kernels of each width on `known`."""
    m, gaps = known.shape[1], torch.cdist(known, new).square()
    constant = math.log(len(known)) + 0.5 * m * math.log(2 * math.pi)
    return [
        float(((gaps / (-2 * h * h)).logsumexp(0) - m * math.log(h)).mean() - constant)
        for h in WIDTHS
    ]


def unrounded(x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:  # (n, m) -> (n, m)
    """Rows with their rounding undone: noise as wide as the smallest step of each column.

    A column of two values would otherwise be the likeliest of all for a component that has only one
    of them. Columns without rounding have steps of about nothing and stay as they are.
    """
    ordered = x.sort(0).values
    steps = ordered.diff(dim=0)
    span = ordered[-1] - ordered[0]
    steps = torch.where(steps > 1e-5 * span, steps, torch.inf).amin(0)
    steps = torch.where(steps.isfinite(), steps, 0)
    return x + steps * torch.from_numpy(rng.uniform(-0.5, 0.5, x.shape)).to(x.dtype)
