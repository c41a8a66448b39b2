"""The graph of nearest neighbours: exact in blocks, by cells when there are many rows."""

import numpy as np
import torch
from torch.nn import functional as F

from coterie.runtime.processes import World

from .assign import squared_distances
from .kmeans import kmeans
from .nearest import Pool

BLOCK = 2**22  # distances held at a time: more would leave the cache
EXACT_ROWS = 30_000  # beyond, the work of comparing all pairs would outgrow the training
CELL_ROWS = 400  # rows of a cell, on average
ALONE = World()
PROBES = 12  # cells that are searched for the neighbours of a cell's rows


@torch.no_grad()
def neighbours(z, k, rng, exact_rows=EXACT_ROWS, world=ALONE):  # (n, d) -> (n, k) int64
    """The k nearest other rows of each row, nearest first; approximate above `exact_rows`.

    Each process of the world searches for a part of the rows; all get the whole graph.
    """
    n = len(z)
    if not 1 <= k < n:
        raise ValueError(f"k={k} neighbours of {n} rows: choose k between 1 and {n - 1}")
    return exact(z, k, world) if n <= exact_rows else by_cells(z, k, rng, world=world)


def exact(z, k, world=ALONE):  # (n, d) -> (n, k)
    """Compare all pairs, a block of rows at a time."""
    n, pool = len(z), Pool(z, k)
    start, stop = world.span(n)
    out = torch.empty(stop - start, k, dtype=torch.int64, device=z.device)
    for rows in torch.arange(start, stop, device=z.device).split(max(1, BLOCK // n)):
        out[rows - start] = pool.nearest(rows)
    return world.concat(out, n)


def by_cells(z, k, rng, cell_rows=CELL_ROWS, probes=PROBES, world=ALONE):  # (n, d) -> (n, k)
    """Search the cells around a row's own cell only; work grows with n, not with its square.

    Cells are those of a short k-means on a sample. The neighbours of all rows of a cell are
    looked for in the `probes` cells with the nearest centres.
    """
    n = len(z)
    z = z - z.mean(0)
    count = max(2, round(n / cell_rows))
    sample = torch.from_numpy(np.sort(rng.choice(n, min(n, 40 * count), replace=False)))
    centers = kmeans(z[sample.to(z.device)], count, rng=rng, n_init=1, max_iter=5).centers
    cell = torch.cat([squared_distances(part, centers).argmin(1) for part in z.split(8192)])
    world.broadcast([cell])  # machines round differently, and a row is in one cell only
    order = torch.argsort(cell, stable=True)
    ends = torch.bincount(cell, minlength=count).cumsum(0).tolist()
    members = [order[a:b] for a, b in zip([0, *ends], ends)]
    near = squared_distances(centers, centers).argsort(dim=1, stable=True)
    out = torch.zeros(n, k, dtype=torch.int64, device=z.device)
    for c, rows in enumerate(members):
        if not len(rows) or c % world.size != world.rank:
            continue
        found, total = [], 0
        for p, other in enumerate(near[c].tolist()):
            if p >= probes and total > k:
                break
            found.append(members[other])
            total += len(members[other])
        places, _ = torch.cat(found).sort()
        pool = Pool(z[places], k)
        for part in rows.split(max(1, BLOCK // len(places))):
            out[part] = places[pool.nearest(torch.searchsorted(places, part))]
    return world.sum(out)


@torch.no_grad()
def smooth(values, graph, rows=None):  # (n, c), (n, k) -> (n, c)
    """Mean over the neighbours of each row (or of `rows`)."""
    return F.embedding_bag(graph if rows is None else graph[rows], values, mode="mean")
