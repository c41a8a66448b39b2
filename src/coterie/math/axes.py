"""The space (P, V, b) of ACe/DeC: axes in the columns of P V, how much each clusters in b.

`head` is anything with the tensors V (d, d), b (d,), the fixed frame P and its inverse (d, d) and,
for `masked`, the mean `shared` (d,). Rows are multiplied from the left: z @ P @ V.
"""

from typing import Any

import torch

from coterie.math.assign import squared_distances
from coterie.math.centers import cluster_sums, kmeans, within_scatter
from coterie.math.subspace import beta_optimum
from coterie.runtime.device import on_host, wide_dtype
from coterie.runtime.processes import row_count, row_mean, sum_parts

BETA_RATE = 10.0  # Adam moves all numbers at one pace: beta = sigmoid(10 b) learns 10 times faster
CLUSTER_AXIS = 0.55  # an axis belongs to the cluster space when its beta is larger
FLAT = 1e-3  # whitening stretches no direction beyond this share of the largest variance


def betas(head):  # -> (d,)
    return torch.sigmoid(BETA_RATE * head.b)


def logits(beta):  # (d,) -> (d,), the inverse; kept away from 0 and 1, where no gradient flows
    return torch.logit(beta.clamp(0.02, 0.98)) / BETA_RATE


def rotated(z, head):  # (n, d) -> (n, d)
    return z @ (head.frame @ head.V)


def space_map(head):  # -> (d, d)
    """Distances after z @ map are those of eq. 5 in the cluster space."""
    return head.frame @ (head.V * betas(head))


@torch.no_grad()
def nearest(z, head):  # (n, d) -> (n,)
    """Label of each row: nearest centre in the cluster space."""
    W = space_map(head)
    return squared_distances(z @ W, head.centers @ W).argmin(1)


def gates(head):  # -> (d,)
    """Share of each axis that belongs to the cluster space: 0 up to beta = 0.55, 1 at beta = 1."""
    return ((betas(head) - CLUSTER_AXIS) / (1 - CLUSTER_AXIS)).clamp(0, 1)


def masked(z, head, keep):  # (n, d), (d,) -> (n, d)
    """Code to rebuild z from: each axis keeps a share, the rest holds the mean of all rows."""
    return unrotated(rotated(z - head.shared, head) * keep + rotated(head.shared, head), head)


def unrotated(u, head):  # (n, d) -> (n, d), the inverse of `rotated` while V is a rotation
    return u @ (head.V.T @ head.unframe)


def axis_scatter(z, labels, centers, axes, mean):  # -> (d,), (d,)
    """Scatter along each axis: within clusters, and about the mean of all rows."""
    within = ((z - centers[labels]) @ axes).square().sum(0)
    return within, ((z - mean) @ axes).square().sum(0)


def whitening(z):  # (n, d) -> (d, d), (d, d)
    """Symmetric map under which the variance is 1 in every direction, and its inverse.

    z holds this process's rows.
    """
    rows = (z - row_mean(z)).to(wide_dtype(z.device))
    values, vectors = torch.linalg.eigh((sum_parts(rows.T @ rows) / row_count(z)).cpu())
    top = values[-1]
    if top <= 0:  # all rows are the same
        eye = torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        return eye, eye.clone()
    root = values.clamp_min(FLAT * float(top)).sqrt()
    there, back = (vectors * root**power @ vectors.T for power in (-1, 1))
    return there.to(z.device, z.dtype), back.to(z.device, z.dtype)


def random_rotation(d, rng):  # -> (d, d) float64
    return torch.linalg.qr(torch.from_numpy(rng.standard_normal((d, d)))).Q


def _orthonormal(columns):  # (d, m) -> (d, m)
    return on_host(lambda t: torch.linalg.qr(t).Q, columns)


@torch.no_grad()
def fit_space(white, k, rng, n_init):  # (n, d) -> (d, d), (d,), (k, d)
    """V, beta and centres of whitened rows: k-means and the best space, in turns.

    Where the variance is 1 along every axis, the second term of eq. 5 does not depend on V, and
    both have closed forms: V holds the eigenvectors of the scatter A within the clusters, the
    tightest first, and beta is 1 / (1 + A). Of n_init starts the one with the lowest cost wins.
    The first and every other one run k-means on half of the axes of a random rotation, as in the
    paper; those in between keep the cluster axes of the best so far and draw half of the rest:
    with many axes a start often finds some of the right ones, seldom all at once.
    """
    d = white.shape[1]
    best: Any = None
    for start in range(n_init):
        known = best[1][:, best[2] > CLUSTER_AXIS] if start % 2 else white.new_zeros(d, 0)
        drawn = random_rotation(d, rng)[:, : (d - known.shape[1] + 1) // 2].to(white)
        # by projection: eigenvectors have no sign, so coordinates in them would not repeat
        axes = torch.cat([known, _orthonormal(drawn - known @ (known.T @ drawn))], dim=1)
        labels = kmeans(white @ axes, k, rng=rng, n_init=1, max_iter=10).labels
        found = _alternate(white, labels, white[:k])
        if best is None or found[0] < best[0]:
            best = found
    _, V, beta, centers = best
    # at most k - 1 axes are told apart by the clusters; among the others eigh picks what rounding
    # suggests, so they are drawn, and the signs are fixed: the same data give the same start
    clear = beta > 0.5 + 1e-3
    known = V[:, clear] * V[:, clear].gather(0, V[:, clear].abs().argmax(0, keepdim=True)).sign()
    drawn = random_rotation(d, rng)[:, : d - known.shape[1]].to(white)
    rest = _orthonormal(drawn - known @ (known.T @ drawn))
    beta = torch.cat([beta[clear], beta.new_full((rest.shape[1],), 0.5)])
    return torch.cat([known, rest], dim=1), beta, centers


def _alternate(white, labels, centers, rounds=100):  # -> cost, (d, d), (d,), (k, d)
    k = len(centers)
    for _ in range(rounds):
        sums, counts = cluster_sums(white, labels, k)
        centers = torch.where(counts[:, None] > 0, sums / counts[:, None].clamp_min(1), centers)
        scatter = within_scatter(white, labels, centers).cpu().double() / len(white)
        V = torch.linalg.eigh(scatter).eigenvectors.to(white)
        A, B = axis_scatter(white, labels, centers, V, white.mean(0))
        beta = beta_optimum(A, B)
        W = V * beta
        old, labels = labels, squared_distances(white @ W, centers @ W).argmin(1)
        if torch.equal(old, labels):
            break
    return float((beta.square() * A + (1 - beta).square() * B).sum()), V, beta, centers


class Replaced:
    """A head or a view with some of its tensors replaced."""

    def __init__(self, whole: Any, **replaced: torch.Tensor):
        self._whole = whole
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)
