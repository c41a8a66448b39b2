"""Does a cluster come back? The winner's way of clustering is repeated on parts of the rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from ...math.gaussians import gaussians
from ...math.graph import exact
from ...math.kmeans import kmeans
from ...math.merge import greedy_merge, joint, one_hot, spectral_merge
from ...math.spectral import spectral_labels
from .consensus import consensus
from .rivals import SPECTRAL_NEIGHBOURS, linkage

REFITS = 10
PART, MOST_ROWS = 0.8, 1000  # of the rows that a refit sees
SAME = 0.75  # Jaccard index from which on a cluster counts as the same

Refit = Callable[[torch.Tensor, int, np.random.Generator], torch.Tensor]


@dataclass(frozen=True)
class Stability:
    """How well a result comes back when its clustering is repeated on parts of the rows.

    overall : mean adjusted Rand index of the result and its refits
    clusters : (k,) of each cluster, mean Jaccard index with the cluster most like it in a refit
    reappears : (k,) refits that have the cluster, with a Jaccard index of 0.75 or more
    refits : their number
    """

    overall: float
    clusters: np.ndarray
    reappears: np.ndarray
    refits: int

    @classmethod
    def of(cls, overall: torch.Tensor, overlaps: torch.Tensor) -> "Stability":
        """From adjusted Rand indices (r,) and Jaccard indices (r, k); -1: no row was drawn."""
        held = overlaps.numpy()
        known = held >= 0
        mean = np.where(known, held, 0).sum(0) / np.maximum(known.sum(0), 1)
        return cls(float(overall.mean()), mean, (held >= SAME).sum(0), len(held))

    def __str__(self) -> str:
        shaky = [
            f"{j} ({n} of {self.refits})"
            for j, n in enumerate(self.reappears)
            if n < 0.8 * self.refits
        ]
        text = (
            f"{self.refits} refits on parts of the rows agree with it by {self.overall:.2f} (ARI)"
        )
        if not shaky:
            return f"{text}, and every cluster reappears in most of them"
        return f"{text}; clusters that often do not reappear: {', '.join(shaky)}"


@torch.no_grad()
def repeat(
    labels: torch.Tensor, k: int, refit: Refit, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Adjusted Rand index (r,) and overlap of each cluster (r, k) with refits on random rows."""
    n = len(labels)
    size = max(min(n, 2 * k), min(MOST_ROWS, round(PART * n)))
    rand, overlaps = [], []
    for turn in range(REFITS):
        rows = torch.from_numpy(np.sort(rng.choice(n, size, replace=False)))
        ours, theirs = labels[rows].long(), refit(rows, turn, rng).long()
        rand.append(adjusted_rand_score(ours.numpy(), theirs.numpy()))
        overlaps.append(overlap(ours, theirs, k))
    return torch.tensor(rand, dtype=torch.float32), torch.stack(overlaps)


def overlap(ours: torch.Tensor, theirs: torch.Tensor, k: int) -> torch.Tensor:  # (n,), (n,) -> (k,)
    """Jaccard index of each cluster with the other clustering's nearest; -1 without rows."""
    both = torch.bincount(ours * k + theirs, minlength=k * k).view(k, k).float()
    either = both.sum(1, keepdim=True) + both.sum(0) - both
    best = (both / either.clamp_min(1)).amax(1)
    return torch.where(both.sum(1) > 0, best, -1.0)


def way_of(
    name: str,
    k: int,
    z: torch.Tensor,
    h: torch.Tensor,
    graph: torch.Tensor,
    heads: list[list[torch.Tensor]],  # outputs (n, o) of direct heads, of over-heads
    voices: list[torch.Tensor],  # of the consensus, (n, o) each
    shape: str,
) -> Refit:
    """How the candidate `name` is made anew from some of the rows.

    Heads are not trained again: another direct head of the network takes the turn, or another
    over-head, whose outputs are merged by the edges at these rows alone.
    """
    direct, over = heads

    def by_direct(rows, turn, rng):
        return direct[turn % len(direct)][rows].argmax(1)

    def by_merging(rows, turn, rng):
        p = over[turn % len(over)]
        j = joint(p, graph, rows)
        names = spectral_merge(j, k, rng, n_init=5) if turn % 2 else greedy_merge(j, k, "mod")
        return (p[rows] @ one_hot(names, k)).argmax(1)

    def by_means(values):
        return lambda rows, _, rng: kmeans(values[rows], k, rng=rng, n_init=3).labels

    def by_vote(rows, turn, rng):  # of some of the voices
        some = rng.choice(len(voices), max(1, len(voices) * 3 // 4), replace=False)
        near = exact(z[rows], min(graph.shape[1], len(rows) - 1))
        return consensus([voices[i][rows] for i in some], near, k, rng)

    def by_mixture(rows, turn, rng):
        start = kmeans(z[rows], k, rng=rng, n_init=3).labels
        return gaussians(z[rows], start, k, shape, max_iter=40).log_joint(z[rows]).argmax(1)

    def by_graph(rows, turn, rng):
        near = exact(z[rows], min(SPECTRAL_NEIGHBOURS, len(rows) - 1))
        return spectral_labels(near, k, rng, n_init=3)

    return {
        "direct": by_direct,
        "merged": by_merging,
        "kmeans": by_means(z),
        "mixture": by_mixture,
        "spectral": by_graph,
        "linkage": lambda rows, _, rng: linkage(z[rows], k, rng),
        "consensus": by_vote,
        "embedding": by_means(h),
    }[name]
