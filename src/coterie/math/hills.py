"""How many hills does the density of the rows have, and how deep are the valleys between them?

The density at a row is told by the distance r to its K-th nearest row: log f = -d log r, where d is
the intrinsic dimension of the rows (Levina, Bickel 2004). Rows are then flooded from the densest
downwards along the graph of nearest neighbours (Chazal, Guibas, Oudot, Skraba 2013): a row without
a higher neighbour begins a hill, a row between two hills is their saddle, and the lower hill ends
there. Its prominence is log f(top) - log f(saddle). K rows tell log f with a deviation of about
1 / sqrt(K), which is the unit of prominences here.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from .assign import squared_distances

FEWEST, MOST = 10, 40  # neighbours that tell the density
LINKS = 10  # neighbours that join rows
BLOCK = 2**22  # distances held at a time
HIGHEST = 99.0  # prominence of a hill that nothing joins to a higher one


@dataclass(frozen=True)
class Hills:
    """Hills by falling prominence, in deviations of the density; the first is the whole."""

    prominence: np.ndarray  # (h,)
    size: np.ndarray  # (h,) rows when the hill ended
    rows: int
    voters: int  # K
    dimension: float  # d

    def count(self, least: float, share: float = 0.0) -> int:
        """Hills of at least this prominence that hold at least this share of the rows; 1 or more.

        A small hill that nothing joins to the others is far off, not a cluster.
        """
        large = self.size >= max(5, share * self.rows)
        return max(1, int((large & (self.prominence > least)).sum()))


def find_hills(z: torch.Tensor) -> Hills:  # (n, m)
    n = len(z)
    voters = min(n - 1, max(FEWEST, min(MOST, round(math.sqrt(n)))))
    far, near = nearest(z, max(voters, min(LINKS, n - 1)))
    far = np.maximum(far[:, :voters], 1e-12)
    d = min(float(z.shape[1]), dimension(far))
    height = -d * np.log(far[:, -1])
    prominence, size = flood(height, near[:, :LINKS])
    prominence = np.minimum(prominence * math.sqrt(voters), HIGHEST)
    order = np.argsort(-prominence, kind="stable")
    return Hills(prominence[order], size[order], n, voters, d)


@torch.no_grad()
def nearest(z, k):  # (n, m) -> (n, k) float64 distances, (n, k) int64, nearest first
    z = (z - z.mean(0)).double()
    far, near = [], []
    step = max(1, BLOCK // len(z))
    for start in range(0, len(z), step):
        gaps = squared_distances(z[start : start + step], z)
        rows = torch.arange(len(gaps))
        gaps[rows, start + rows] = torch.inf
        found = gaps.topk(k, largest=False)
        far.append(found.values.sqrt())
        near.append(found.indices)
    return torch.cat(far).numpy(), torch.cat(near).numpy()


def dimension(far):  # (n, k) distances to the k nearest, nearest first -> float
    """Median over rows of (k - 1) / sum of log(r_k / r_j)."""
    total = np.log(far[:, -1:] / far[:, :-1]).sum(1)
    local = (far.shape[1] - 1) / total[total > 1e-9]
    return float(np.median(local)) if len(local) else 1.0


def flood(height, near):  # (n,), (n, g) -> (h,), (h,)
    """Prominence of each hill, infinite where nothing joins it to a higher one, and its rows."""
    n = len(height)
    order = np.argsort(-height, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    # each edge is met at its lower end
    a, b = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    low, high = np.where(rank[a] > rank[b], a, b), np.where(rank[a] > rank[b], b, a)
    by_low = np.argsort(rank[low], kind="stable")
    ends = np.cumsum(np.bincount(rank[low], minlength=n)).tolist()
    high = high[by_low].tolist()
    root, size, ended = list(range(n)), [1] * n, []

    def top(row):
        while root[row] != row:
            root[row] = root[root[row]]
            row = root[row]
        return row

    start = 0
    for row, end in zip(order.tolist(), ends):
        hills = sorted({top(other) for other in high[start:end]}, key=rank.__getitem__)
        start = end
        if not hills:
            continue
        first = hills[0]
        root[row] = first
        size[first] += 1
        for lower in hills[1:]:
            ended.append((height[lower] - height[row], size[lower]))
            root[lower] = first
            size[first] += size[lower]
    ended += [(np.inf, size[row]) for row in range(n) if root[row] == row]
    prominence, sizes = np.array(ended).T
    return prominence, sizes.astype(np.int64)
