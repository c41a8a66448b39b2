"""Which of the candidates is the result? Two questions, both without labels.

1. Is a mixture of k Gaussians all there is to say about the density of the rows? Then its
   components are the clusters, however much they overlap. The mixture learns from one half of the
   rows; its log-likelihood of the other half is compared with that of richer densities: mixtures of
   up to four times as many components and, in few columns, a kernel density.
2. If not, clusters are what the neighbour graph keeps apart: the lowest normalised cut wins.

Both are asked of tables only. Features of images, texts and counts have too many directions for a
density to be learned, and there the heads of the network are the best candidates throughout.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from ...math.full_mixture import full_mixture
from ...math.kmeans import kmeans

ADEQUATE = 0.05  # nats a row by which richer densities may be better than an adequate mixture
RICHER = (1.5, 2, 4)  # components of the richer mixtures, in parts of k
KERNEL_COLUMNS = 4  # up to here a kernel density is worth asking
WIDTHS = (0.05, 0.1, 0.2, 0.4)  # of its kernels; columns have deviations of about one
JUDGED_ROWS = 4000  # rows of both halves, at most
ROWS_EACH, LARGEST = 8, 1500  # rows for each component, at least; components times columns
MOST_SPLITS, SPLIT_ROWS = 5, 1000  # ways in which few rows are halved
EM_STEPS = 20


@dataclass(frozen=True)
class Verdict:
    """Name of the winner, the second, the gap to richer densities (NaN: not asked), and why."""

    winner: str
    second: str
    gap: float
    why: str


def decide(
    own: str,  # the network's own choice of its heads
    cuts: dict[str, float],
    z: torch.Tensor,
    mixture: torch.Tensor,  # (n,) labels
    k: int,
    rng: np.random.Generator,
) -> Verdict:
    """The verdict on candidates of which `cuts` has the normalised cut."""
    gap = density_gap(z, mixture, k, rng)
    order = sorted(cuts, key=lambda name: (cuts[name], name != own))
    if gap < ADEQUATE:
        why = (
            f"no richer density describes the rows better than {k} Gaussians "
            f"({gap:.3f} nats a row, less than {ADEQUATE:g})"
        )
        return Verdict("mixture", next(name for name in order if name != "mixture"), gap, why)
    why = (
        f"its clusters share the fewest neighbours ({100 * cuts[order[0]]:.1f} % of the edges "
        f"leave a cluster), and {k} Gaussians do not describe the rows (richer densities gain "
        f"{gap:.2f} nats a row)"
    )
    return Verdict(order[0], order[1], gap, why)


@torch.no_grad()
def density_gap(z, labels, k, rng):  # (n, m), (n,) -> float, nats a row
    """How much better the best richer density predicts rows than a mixture of k Gaussians.

    Few rows are halved several times, and densities compared by their means: the largest of many
    uncertain scores would be too large.
    """
    n, m = z.shape
    scores = []  # of each half: the mixture of k, then the richer ones
    for _ in range(max(1, min(MOST_SPLITS, SPLIT_ROWS // n))):
        halves = torch.from_numpy(rng.permutation(n)[:JUDGED_ROWS]).chunk(2)
        for seen, unseen in (halves, halves[::-1]):
            known, new = z[seen], z[unseen]
            found = [_score(known, labels[seen], k, new)]
            for c in sorted({math.ceil(part * k) for part in RICHER}):
                if ROWS_EACH * c <= n // 2 and c * m <= LARGEST:
                    start = kmeans(known, c, rng=rng, n_init=1, max_iter=20).labels
                    found.append(_score(known, start, c, new))
            if m <= KERNEL_COLUMNS:
                found += kernel_scores(known.double(), new.double())
            scores.append(found)
    means = np.mean(scores, 0)
    return float(means.max() - means[0])


def _score(known, labels, k, new):
    found = full_mixture(known, labels, k, max_iter=EM_STEPS)
    return float(found.log_density(new).mean())


def kernel_scores(known, new):  # (n, m), (b, m) -> list of float
    """Mean log-density of `new` under Gaussian kernels of each width on `known`."""
    m, gaps = known.shape[1], torch.cdist(known, new).square()
    constant = math.log(len(known)) + 0.5 * m * math.log(2 * math.pi)
    return [
        float(((gaps / (-2 * h * h)).logsumexp(0) - m * math.log(h)).mean() - constant)
        for h in WIDTHS
    ]
