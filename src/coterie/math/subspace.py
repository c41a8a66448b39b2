"""Rotated spaces: SubKmeans, the frozen target of DEKM, the weighted axes of ACe/DeC."""

from dataclasses import dataclass

import torch

from coterie.math.assign import hard, squared_distances
from coterie.math.centers import cluster_sums, draw_far_rows, kmeans, within_scatter
from coterie.runtime.device import on_host, wide_dtype
from coterie.runtime.processes import current, row_count, sum_parts


@dataclass(frozen=True)
class SubKMeansResult:
    """Rotation (d, d) with axes in columns, cluster axes `m` (the first ones), centres, labels."""

    rotation: torch.Tensor
    m: int
    centers: torch.Tensor  # (k, d), not rotated
    labels: torch.Tensor
    cost: float


@torch.no_grad()
def subkmeans(z, k, rng, n_init=10, max_iter=300):
    """SubKmeans: a rotation whose first m axes hold the clusters and whose rest holds one mean.

    Minimises the scatter about the cluster centres on the first m axes plus the scatter about the
    overall mean on the others. It alternates assignment, centres, and the eigenvectors of
    ``sum of cluster scatters - total scatter``; m counts the negative eigenvalues. That matrix
    is minus the between-cluster scatter, so the vectors come from an SVD of the k weighted centres
    and m is at most k - 1. Outside of the cluster space the centres then equal the mean: with every
    negative eigenvalue kept, the cost is that of k-means for the same labels.

    Parameters
    ----------
    z : tensor (n, d).
    k : number of clusters.
    rng : numpy Generator.
    n_init : restarts, each from a random rotation; the lowest cost wins.
    max_iter : steps per restart; it ends earlier when no label changes.
    """
    if len(z) < k:
        raise ValueError(f"z has {len(z)} rows but k={k}; lower k or give more rows")
    mean = z.mean(dim=0, dtype=wide_dtype(z.device)).to(z.dtype)
    rows, basis = z - mean, None
    if len(z) < z.shape[1]:  # a few large images: all that differs lies in the span of the rows
        basis = on_host(_row_space, rows)
        rows = rows @ basis
    best = min((_one_start(rows, k, rng, max_iter) for _ in range(n_init)), key=lambda r: r.cost)
    rotation, centers = best.rotation, best.centers
    if basis is not None:
        rotation, centers = _complete(basis @ rotation[:, : best.m]), centers @ basis.T
    return SubKMeansResult(rotation, best.m, centers + mean, best.labels, best.cost)


def _one_start(rows, k, rng, max_iter):  # rows have mean 0
    d = rows.shape[1]
    random = torch.from_numpy(rng.standard_normal((d, d))[:, : max(1, d // 2)])
    axes = torch.linalg.qr(random).Q.to(rows.device, rows.dtype)
    # one Lloyd step: k-means++ seeds in the random subspace, and their labels
    labels = kmeans(rows @ axes, k, rng=rng, n_init=1, max_iter=1).labels
    for _ in range(max_iter):
        centers, counts = _filled_centers(rows, labels, k, axes, rng)
        axes = _cluster_axes(centers, counts, float(rows.square().sum()))
        old, labels = labels, hard(-squared_distances(rows @ axes, centers @ axes))
        if torch.equal(old, labels):
            break
    m = axes.shape[1]
    rotation = _complete(axes)
    inside = (rows - centers[labels]) @ axes
    outside = rows @ rotation[:, m:]
    cost = float(inside.square().sum(dtype=wide_dtype(rows.device)))
    cost += float(outside.square().sum(dtype=wide_dtype(rows.device)))
    return SubKMeansResult(rotation, m, centers, labels, cost)


def _filled_centers(rows, labels, k, axes, rng):
    """Means of the clusters; an empty one gets a row that is far in the cluster space."""
    sums, counts = cluster_sums(rows, labels, k)
    centers = sums / counts[:, None].clamp_min(1)
    empty = torch.nonzero(counts == 0).flatten()
    if len(empty):
        far = draw_far_rows(rows @ axes, centers[counts > 0] @ axes, len(empty), rng)
        centers[empty] = rows[far]
    return centers, counts


def _cluster_axes(centers, counts, total):  # (k, d), (k,) -> (d, m)
    device, (centers, counts) = centers.device, (centers.cpu(), counts.cpu())
    weighted = centers.double() * counts.double().sqrt()[:, None]
    _, singular, axes = torch.linalg.svd(weighted, full_matrices=False)
    m = int((singular.square() > 1e-7 * total).sum())  # relative: rounding must not add axes
    # m = 0: the centres coincide; keep one axis
    return axes[: max(1, m)].T.to(device, centers.dtype)


def _complete(axes):  # (d, m) -> (d, d)
    """A full rotation whose first m columns are `axes`."""
    rotation = torch.linalg.qr(axes.cpu().double(), mode="complete").Q.to(axes.device, axes.dtype)
    rotation[:, : axes.shape[1]] = axes  # QR may flip their signs
    return rotation


def _row_space(rows):  # (n, d) -> (d, n)
    return torch.linalg.svd(rows, full_matrices=False).Vh.T


def beta_optimum(within, total):  # (d,), (d,) -> (d,)
    """Weight of the cluster space on each axis that minimises ``b^2 within + (1-b)^2 total``.

    It is ``total / (within + total)``; an axis without any scatter gets 1/2.
    """
    both = within + total
    return torch.where(both > 0, total / both.where(both > 0, torch.ones_like(both)), 0.5)


def scatter_axes(z, labels, centers):  # (n, e), (n,), (k, e) -> (e,), (e, e)
    """Eigenvalues (ascending) and eigenvectors (columns) of the within-cluster scatter over n.

    z holds this process's rows.
    """
    wider = wide_dtype(z.device)
    scatter = sum_parts(within_scatter(z.to(wider), labels, centers.to(wider))) / row_count(z)
    values, vectors = on_host(lambda t: tuple(torch.linalg.eigh(t)), scatter)
    values, vectors = values.clamp_min(0).to(z.dtype), vectors.to(z.dtype).contiguous()
    current().broadcast([values, vectors])  # their signs are up to the machine
    return values, vectors


def rotated_target(z, labels, centers, rotation, axes):  # -> (n, e)
    """Rotated rows whose coordinates in `axes` are those of their centre (eq. 6)."""
    target = z @ rotation
    target[:, axes] = (centers @ rotation)[labels][:, axes]
    return target
