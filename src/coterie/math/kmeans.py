"""K-means by Lloyd's iterations: all restarts advance together, rows may come from disk.

Several processes (`runtime.processes`) pass over a part of the rows each and add up sums and
counts: k (d + 1) numbers per restart and iteration, however many rows there are.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.cluster import kmeans_plusplus
from torch.nn import functional as F

from coterie.math.passes import CenteredRows, SparseRows, norms_of, square_sum
from coterie.math.seeding import far_rows
from coterie.runtime.device import to_numpy, wide_dtype
from coterie.runtime.processes import all_gather, row_count

SEEDING_ROWS = 100_000  # rows that the seeding looks at, at most
SEEDING_VALUES = 2**26  # and values: 256 MB of float32
# from 100 clusters on restarts differ little and cost much
MANY_CLUSTERS, THIN_EVERY = 100, 5  # after as many steps the worse half of the restarts ends
SEEDS_IN_ALL = 1000  # clusters times restarts: one restart of 1,000 clusters, ten of 100
SEEDING_MANY, SEEDING_EACH = 20_000, 40  # rows that the seeding looks at: in all, for each cluster
SMALLEST_STEP = 1e-4  # share of the inertia that a step must gain
CHUNK_VALUES = 2**19  # values per chunk of rows and per chunk of distances: fits a CPU cache


@dataclass(frozen=True)
class KMeansResult:
    """Centres (k, d), labels (n,) int64, inertia, and iterations of the best restart."""

    centers: torch.Tensor
    labels: torch.Tensor
    inertia: float
    n_iter: int


@torch.no_grad()
def kmeans(z, k, *, rng, n_init=10, max_iter=300, tol=1e-4, init=None, sample=None, part=False):
    """K-means with restarts.

    Parameters
    ----------
    z : tensor (n, d), a scipy CSR matrix, whose zeros cost nothing, or an object with ``.n`` and
        ``.slice(start, stop) -> tensor`` whose rows are read from disk; one pass over the rows
        serves all restarts.
    k : number of clusters.
    rng : numpy Generator; the only source of randomness.
    n_init : restarts; the one with the lowest inertia wins. From 100 clusters on, restarts differ
        little and cost much: there are at most 1,000 / k of them, and after every 5 steps the
        worse half ends.
    max_iter, tol : a restart ends when its centres move by less than `tol` times the mean
        variance of a feature (the rule of scikit-learn), or after `max_iter` steps; from 100
        clusters on also when a step gains less than 1e-4 of the inertia.
    init : "k-means++" (None means this), "random" (rows drawn at random), or a tensor (k, d) to
        start from, which makes one run.
    sample : rows that the seeding looks at, at most; None: 100,000, from 100 clusters on the larger
        of 20,000 and 40 for each cluster.
    part : z is a tensor with the rows of this process only, its span of those of all processes.

    Returns
    -------
    KMeansResult
        `labels`, one for each row of z, are the nearest of `centers`. An empty cluster is seeded
        again at a far row; it stays empty only if there are fewer distinct rows than clusters.
    """
    sparse = sp.issparse(z)
    n = z.shape[0] if sparse else len(z) if torch.is_tensor(z) else z.n
    n = row_count(z) if part else n  # of all processes
    if k < 1:
        raise ValueError(f"k={k} but at least 1 cluster is needed; raise k")
    if n < k:
        raise ValueError(f"z has {n} rows but k={k}; lower k or give more rows")
    many_clusters = k >= MANY_CLUSTERS
    restarts = min(n_init, -(-SEEDS_IN_ALL // k)) if many_clusters else n_init
    restarts = 1 if torch.is_tensor(init) else restarts
    if sparse:
        rows = SparseRows(z, max(256, CHUNK_VALUES // (restarts * k)))
    else:
        width = z.shape[1] if torch.is_tensor(z) else z.slice(0, 1).shape[1]
        rows = CenteredRows(z, max(256, CHUNK_VALUES // max(width, restarts * k)), part)
    centers = _seed(rows, k, rng, restarts, init, sample)  # (r, k, d)

    inertia = np.full(restarts, np.inf)
    n_iter = np.zeros(restarts, dtype=int)
    active = np.arange(restarts)
    smallest_gain = 1e-12 * rows.second_moment  # nearer than this is equal, up to rounding
    for step in range(1, max_iter + 1):
        old = centers[active]
        before = inertia[active]
        sums, counts, inertia[active] = _pass(rows, old)
        means = (sums / counts[..., None].clamp_min(1)).to(old.dtype)
        new = torch.where(counts[..., None] > 0, means, old)
        seeded = np.zeros(len(active), dtype=bool)
        for at in torch.nonzero((counts == 0).any(dim=1)).flatten().tolist():
            # one empty cluster per step: the next step already sees the new centre, so the
            # following one goes elsewhere and not beside it
            row, gain = _farthest(rows, old[at])
            seeded[at] = gain > smallest_gain
            if seeded[at]:
                new[at, counts[at].argmin()] = row
        centers[active] = new
        n_iter[active] = step
        moved = to_numpy((new - old).square().sum(dim=(1, 2))).astype(np.float64)
        moving = moved > tol * rows.variance
        if many_clusters and step > 1:
            moving &= inertia[active] < (1 - SMALLEST_STEP) * before
        active = active[moving | seeded]
        if many_clusters and step % THIN_EVERY == 0:
            better = np.argsort(inertia[active], kind="stable")[: -(-len(active) // 2)]
            active = active[np.sort(better)]
        if not len(active):
            break

    best = int(inertia.argmin())
    labels, total = _label(rows, centers[best])
    return KMeansResult(centers[best] + rows.mean, labels, total, int(n_iter[best]))


def _seed(rows, k, rng, restarts, init, sample):
    """Starting centres (r, k, d) in the centred frame."""
    if torch.is_tensor(init):
        if tuple(init.shape) != (k, rows.d):
            raise ValueError(
                f"init has shape {tuple(init.shape)} but k={k} and z has {rows.d} columns; "
                f"give a tensor of shape ({k}, {rows.d})"
            )
        return (init.detach().to(rows.device, rows.dtype) - rows.mean)[None].clone()
    if init not in (None, "k-means++", "random"):
        raise ValueError(f'init={init!r} is not "k-means++", "random" or a tensor (k, d)')
    most = SEEDING_ROWS if k < MANY_CLUSTERS else max(SEEDING_MANY, SEEDING_EACH * k)
    bound = sample or min(most, SEEDING_VALUES // rows.d)
    bound = min(rows.n, max(bound, k))
    if bound == rows.n and rows.ready:
        pool = rows.whole()
    else:
        pool = rows.take(np.sort(rng.choice(rows.n, bound, replace=False)))
    if sp.issparse(pool):
        return torch.stack([_sparse_start(pool, k, rng, init) for _ in range(restarts)])
    if init == "random":
        places = [rng.choice(bound, k, replace=False) for _ in range(restarts)]
    else:
        places = far_rows(pool.cpu(), k, [int(rng.integers(2**31 - 1)) for _ in range(restarts)])
    return pool[torch.from_numpy(np.stack(places)).to(pool.device)]


def _sparse_start(pool, k, rng, init):  # CSR (n, d) -> (k, d)
    if init == "random":
        found = pool[rng.choice(pool.shape[0], k, replace=False)].toarray()
    else:
        seed = int(rng.integers(2**31 - 1))
        found = kmeans_plusplus(pool, k, random_state=seed)[0]
    return torch.from_numpy(found)


def _scores(rows, centers):  # (b, d), (m, d) -> (m, b)
    """Squared distances less the norm of the row, which changes no argmin."""
    norms = centers.square().sum(dim=1, keepdim=True)
    if sp.issparse(rows):
        product = torch.from_numpy(rows @ centers.T.contiguous().numpy())
        return torch.add(norms, product.T, alpha=-2).contiguous()
    return torch.addmm(norms, centers, rows.T, alpha=-2)


def _sums(one_hot, rows):  # (m, b), (b, d) -> (m, d)
    """Sum of the rows of each cluster; `one_hot` has a single 1 per restart and row."""
    m, b = one_hot.shape
    if sp.issparse(rows):
        which, at = (t.numpy() for t in torch.nonzero(one_hot, as_tuple=True))
        picked = sp.csr_matrix((np.ones(len(at), rows.dtype), (which, at)), (m, b))
        return torch.from_numpy((picked @ rows).toarray())
    # both orders give the same sums; which one the BLAS runs faster depends on the shape
    return (rows.T @ one_hot.T).T if rows.shape[1] < m else one_hot @ rows


def _pass(rows, centers):
    """Sums (r, k, d) and counts (r, k) of the nearest rows, and inertia (r,), in one pass.

    Written for speed: clusters come first in every shape because a minimum over a leading axis
    runs many times faster, and without indices faster still; comparing with it in place gives
    the one-hot labels, and their product with the rows adds in a fixed order.
    """
    r, k, d = centers.shape
    wider = wide_dtype(rows.device)
    sums, counts, inertia = (
        torch.zeros(size, dtype=wider, device=rows.device) for size in ((r * k, d), (r, k), (r,))
    )
    for chunk in rows:
        b = chunk.shape[0]
        scores = _scores(chunk, centers.view(r * k, d)).view(r, k, b)
        nearest = scores.amin(dim=1, keepdim=True)
        inertia += nearest.sum(dim=(1, 2), dtype=wider)
        inertia += square_sum(chunk)
        one_hot = scores.eq_(nearest)
        found = one_hot.sum(dim=2)
        if float(found.sum(dtype=wider)) > r * b:  # equal centres: the first wins
            restart, row = torch.nonzero(one_hot.sum(dim=1) > 1, as_tuple=True)
            first = one_hot[restart, :, row].argmax(dim=1)
            one_hot[restart, :, row] = F.one_hot(first, k).to(one_hot.dtype)
            found = one_hot.sum(dim=2)
        counts += found
        sums += _sums(one_hot.view(r * k, b), chunk)
    if rows.world.size > 1:  # the parts of all processes, in one message
        flat = rows.world.sum(torch.cat([sums.flatten(), counts.flatten(), inertia]))
        sums, counts, inertia = flat.split([r * k * d, r * k, r])
    return sums.view(r, k, d), counts.view(r, k), to_numpy(inertia)


def _label(rows, centers):
    """Labels (n,) and inertia for one set of centres."""
    labels = torch.empty(rows.stop - rows.start, dtype=torch.int64, device=rows.device)
    total, start = 0.0, 0
    for chunk in rows:
        nearest, found = _scores(chunk, centers).min(dim=0)
        labels[start : start + len(found)] = found
        nearest = (nearest + norms_of(chunk)).clamp_min(0)
        total += float(nearest.sum(dtype=wide_dtype(rows.device)))
        start += len(found)
    world = rows.world
    total = float(world.sum(torch.tensor(total, dtype=torch.float64)))
    return labels if rows.part else world.concat(labels, rows.n), total


def _farthest(rows, centers):
    """The row that is farthest from its centre, and its squared distance."""
    best, farthest = centers[0], -1.0
    for chunk in rows:
        nearest, found = _scores(chunk, centers).min(dim=0)
        if sp.issparse(chunk):
            gain = nearest + norms_of(chunk)
        else:
            gain = (chunk - centers[found]).square().sum(dim=1)
        at = int(gain.argmax())
        if float(gain[at]) > farthest:
            row = chunk[at]
            best = torch.from_numpy(row.toarray()[0]) if sp.issparse(row) else row.clone()
            farthest = float(gain[at])
    gains = all_gather(rows.world, torch.tensor(farthest, dtype=torch.float64))
    winner = int(gains.argmax())
    return all_gather(rows.world, best)[winner], float(gains[winner])
