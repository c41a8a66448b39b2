"""Centres, scatter and labels: what the centroid methods share."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from coterie.math.assign import squared_distances
from coterie.math.kmeans import KMeansResult, kmeans
from coterie.runtime.device import to_numpy

__all__ = [
    "KMeansResult",
    "align",
    "cluster_sums",
    "draw_far_rows",
    "first_centers",
    "kmeans",
    "reseed_empty",
    "running_mean",
    "within_scatter",
]


def first_centers(z, k, kind, rng, n_init=1):  # (n, d) -> (k, d)
    """Where the centres of a deep method start.

    Parameters
    ----------
    z : embedding of this process's rows
    kind : "kmeans" on the embedding; "glorot", uniform within ``sqrt(6 / (k + d))``, as a layer's
        weights start; or "uniform" in -1..1. The last two do not look at the embedding.
    """
    if kind == "kmeans":
        return kmeans(z, k, rng=rng, n_init=n_init, part=True).centers
    bound = (6 / (k + z.shape[1])) ** 0.5 if kind == "glorot" else 1.0
    drawn = rng.uniform(-bound, bound, (k, z.shape[1]))
    return torch.from_numpy(drawn).to(z.device, z.dtype)


def cluster_sums(z, labels, k):  # (n, d), (n,) -> (k, d), (k,)
    """Sum and number of the rows of each cluster.

    A matrix product with the one-hot labels: fast, and it adds in the same order every time.
    """
    one_hot = torch.zeros(k, len(z), dtype=z.dtype, device=z.device)
    one_hot.scatter_(0, labels[None].long(), 1.0)
    return one_hot @ z, one_hot.sum(dim=1)


def running_mean(centers, counts, z, labels, add_up=lambda t: t):
    """DCN's centre update for a whole batch at once: (k, d), (k,), (n, d), (n,) -> (k, d), (k,).

    Adding rows one by one with rate 1/count equals the count-weighted mean
    ``(count_k c_k + sum of new rows) / (count_k + n_k)``. A centre without rows stays.
    `add_up` adds sums of processes that hold a part of the rows each.
    """
    sums, new = map(add_up, cluster_sums(z, labels, len(centers)))
    total = counts + new
    moved = (counts[:, None] * centers + sums) / total[:, None].clamp_min(1)
    return torch.where(new[:, None] > 0, moved.to(centers.dtype), centers), total


def within_scatter(z, labels, centers):  # (n, d), (n,), (k, d) -> (d, d)
    """Sum over rows of ``(z - c)(z - c)'`` with c the centre of the row's cluster."""
    residual = z - centers[labels]
    return residual.T @ residual


def align(labels, reference, k, add_up=lambda t: t):  # (n,), (n,) -> (n,)
    """Labels renamed so that they agree with `reference` as often as possible (Hungarian).

    Needed before counting changed labels when k-means starts afresh: it numbers clusters at will.
    `add_up` adds counts of processes that hold a part of the rows each.
    """
    ours, theirs = _pair(labels, reference)
    pairs = torch.from_numpy(np.bincount(ours * k + theirs, minlength=k * k))
    table = add_up(pairs).numpy().reshape(k, k)
    old, new = linear_sum_assignment(table, maximize=True)
    names = np.empty(k, dtype=np.int64)
    names[old] = new
    renamed = names[ours]
    return torch.from_numpy(renamed).to(labels.device) if torch.is_tensor(labels) else renamed


def _pair(labels, reference):
    ours, theirs = (
        x.detach().cpu().numpy() if torch.is_tensor(x) else np.asarray(x)
        for x in (labels, reference)
    )
    if len(ours) != len(theirs):
        raise ValueError(
            f"labels has {len(ours)} rows but reference has {len(theirs)}; "
            "give both for the same rows"
        )
    return ours.astype(np.int64), theirs.astype(np.int64)


@torch.no_grad()
def reseed_empty(centers, counts, z, rng):  # (k, d), (k,), (n, d) -> (k, d), list
    """Move each centre without rows onto a row that the other centres serve badly.

    Returns
    -------
    centers : a new tensor; the given one is not changed.
    reseeded : list of the moved clusters.
    """
    empty = torch.nonzero(counts <= 0).flatten().tolist()
    centers = centers.detach().clone()
    if empty:
        chosen = draw_far_rows(z, centers[counts > 0], len(empty), rng)
        centers[empty] = z[chosen].to(centers.dtype)
    return centers, empty


def draw_far_rows(z, centers, m, rng):  # (n, d), (k, d) -> list of m rows
    """Draw rows as k-means++ does: in proportion to the squared distance from the nearest centre.

    So a new centre lands where it helps, yet not always on an outlier.
    """
    nearest = z.new_ones(len(z)) if len(centers) == 0 else squared_distances(z, centers).amin(dim=1)
    chosen = []
    for _ in range(m):
        weight = to_numpy(nearest).astype(np.float64)
        total = weight.sum()
        row = int(rng.choice(len(z), p=weight / total if total > 0 else None))
        chosen.append(row)
        nearest = torch.minimum(nearest, (z - z[row]).square().sum(dim=1))
    return chosen
