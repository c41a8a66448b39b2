"""Where k-means begins: greedy k-means++, for all restarts at once."""

import math

import numpy as np
import torch

WIDE_VALUES = 2**23  # of a pool, up to which float64 rows are kept: 64 MB
PART_VALUES = 2**17  # distances at a time, or values of rows that become float64: fits a cache


def far_rows(pool: torch.Tensor, k: int, seeds: list[int]) -> np.ndarray:
    """Rows of the pool (n, d) at which restarts begin, one restart for each seed: (r, k).

    The first row is drawn at random. The others are drawn in proportion to the squared distance
    from the nearest row that was taken, 2 + log(k) of them at a time, and the one that leaves the
    smallest sum of these distances is taken.

    Draws and sums are those of scikit-learn, and so are the rows. But one product serves all
    restarts, and rows become float64 once.
    """
    n, trials = len(pool), 2 + int(math.log(k))
    draws = [np.random.RandomState(seed) for seed in seeds]
    distances = _distances(pool)
    even = np.ones(n, pool.numpy().dtype)
    taken = np.empty((len(seeds), k), np.int64)
    taken[:, 0] = [draw.choice(n, p=even / even.sum()) for draw in draws]
    nearest = list(distances(taken[:, 0])[:, None])  # of each restart: (1, n)
    sums = [gaps @ even for gaps in nearest]
    for c in range(1, k):
        drawn = [
            np.searchsorted(gaps[0].cumsum(), draw.uniform(size=trials) * total)
            for draw, gaps, total in zip(draws, nearest, sums)
        ]
        drawn = np.minimum(drawn, n - 1)  # (r, trials); rounding may end behind the last row
        found = distances(drawn.ravel()).reshape(len(seeds), trials, n)
        for r, gaps in enumerate(found):
            np.minimum(gaps, nearest[r], out=gaps)
            left = gaps @ even[:, None]
            best = left.argmin()
            taken[r, c], nearest[r], sums[r] = drawn[r, best], gaps[best][None], left[best]
    return taken


def _distances(pool):
    """A function (m,) places -> (m, n): squared distances from these rows, of the pool's type.

    In between they are float64: float32 would draw other rows on another processor.
    """
    n, d = pool.shape
    wide = pool.double() if n * d <= WIDE_VALUES else None
    parts = pool.split(max(1, PART_VALUES // d))
    norms = torch.cat([part.double().square().sum(1) for part in parts])

    def from_rows(places: np.ndarray) -> np.ndarray:
        index = torch.from_numpy(places)
        rows, own = pool[index].double(), norms[index, None]
        out = torch.empty(len(index), n, dtype=pool.dtype)
        step = max(256, PART_VALUES // (len(index) if wide is not None else d))
        for start in range(0, n, step):
            part = slice(start, start + step)
            others = pool[part].double() if wide is None else wide[part]
            gaps = torch.addmm(norms[part], rows, others.T, alpha=-2).add_(own)
            out[:, part] = gaps.clamp_min_(0)
        return out.numpy()

    return from_rows
