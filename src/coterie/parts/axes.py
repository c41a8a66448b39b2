"""The space (P, V, b) of ACe/DeC: axes in the columns of P V, how much each clusters in b.

`head` is anything with the tensors V (d, d), b (d,), the fixed frame P and its inverse (d, d) and,
for `masked`, the mean `shared` (d,). Rows are multiplied from the left: z @ P @ V.
"""

import torch

from coterie.parts.assign import squared_distances
from coterie.parts.centers import cluster_sums, kmeans, within_scatter
from coterie.parts.spaces import beta_optimum

BETA_RATE = 10.0  # Adam moves all numbers at one pace: beta = sigmoid(10 b) learns 10 times faster
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


def gates(head):  # -> (d,)
    """Share of each axis that belongs to the cluster space: 0 at beta = 1/2, 1 at beta = 1."""
    return (2 * betas(head) - 1).clamp(0, 1)


def masked(z, head, keep):  # (n, d), (d,) -> (n, d)
    """Code to rebuild z from: each axis keeps a share, the rest holds the mean of all rows."""
    return unrotated(rotated(z - head.shared, head) * keep + rotated(head.shared, head), head)


def unrotated(u, head):  # (n, d) -> (n, d), the inverse of `rotated` while V is a rotation
    return u @ (head.V.T @ head.unframe)


def axis_scatter(z, labels, centers, axes):  # -> (d,), (d,)
    """Scatter along each axis: within clusters, and about the mean of all rows."""
    within = ((z - centers[labels]) @ axes).square().sum(0)
    return within, ((z - z.mean(0)) @ axes).square().sum(0)


def whitening(z):  # (n, d) -> (d, d), (d, d)
    """Symmetric map under which the variance is 1 in every direction, and its inverse."""
    rows = (z - z.mean(0)).double()
    values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
    top = values[-1]
    if top <= 0:  # all rows are the same
        eye = torch.eye(z.shape[1], dtype=z.dtype)
        return eye, eye.clone()
    root = values.clamp_min(FLAT * float(top)).sqrt()
    there, back = (vectors * root**power @ vectors.T for power in (-1, 1))
    return there.to(z.dtype), back.to(z.dtype)


def random_rotation(d, rng):  # -> (d, d) float64
    return torch.linalg.qr(torch.from_numpy(rng.standard_normal((d, d)))).Q


@torch.no_grad()
def settle(white, k, rng, n_init, rounds=100):  # (n, d) -> (d, d), (d,), (k, d)
    """V, beta and centres of whitened rows: k-means and the best space, in turns.

    Where the variance is 1 along every axis, the second term of eq. 5 does not depend on V, and
    both have closed forms: V holds the eigenvectors of the scatter A within the clusters, the
    tightest first, and beta is 1 / (1 + A). Each start draws a rotation and runs k-means on half
    of its axes, as in the paper; the one with the lowest cost, the sum of A / (1 + A), wins.
    """
    n, d = white.shape
    best = None
    for _ in range(n_init):
        half = random_rotation(d, rng)[:, : max(1, d // 2)].to(white.dtype)
        labels = kmeans(white @ half, k, rng=rng, n_init=1).labels
        centers = white[:k].clone()
        for _ in range(rounds):
            sums, counts = cluster_sums(white, labels, k)
            centers = torch.where(counts[:, None] > 0, sums / counts[:, None].clamp_min(1), centers)
            A, V = torch.linalg.eigh(within_scatter(white, labels, centers).double() / n)
            A, V = A.clamp_min(0).to(white.dtype), V.to(white.dtype)
            beta = beta_optimum(A, torch.ones_like(A))
            W = V * beta
            old, labels = labels, squared_distances(white @ W, centers @ W).argmin(1)
            if torch.equal(old, labels):
                break
        cost = float((A / (1 + A)).sum())
        if best is None or cost < best[0]:
            best = cost, V, beta, centers
    return best[1:]


def error(x, rebuilt):  # -> (); sum over features, mean over rows
    return (x - rebuilt).square().flatten(1).sum(1).mean()
