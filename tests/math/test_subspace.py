"""SubKmeans, ACe/DeC's weights."""

import numpy as np
import pytest
import torch

from coterie.math.centers import align, kmeans, within_scatter
from coterie.math.subspace import beta_optimum, subkmeans
from reference import spaces as twin


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(rng(seed).standard_normal(shape)).to(dtype)


def hidden_plane(noise_axes=6, spread=3.0, seed=0):
    """Four clusters in a plane; all other axes hold the same wide noise in every cluster.

    The noise is repeated cluster by cluster, so that cluster means differ in the plane only and
    the right answer is exact. A random rotation hides the plane.
    """
    corners = torch.tensor([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
    labels = torch.arange(4).repeat_interleave(100)
    inside = corners[labels] + normal(100, 2, seed=seed, dtype=torch.float32).repeat(4, 1)
    noise = spread * normal(100, noise_axes, seed=seed + 1, dtype=torch.float32).repeat(4, 1)
    rotation = torch.linalg.qr(normal(2 + noise_axes, 2 + noise_axes, seed=seed + 2)).Q.float()
    return torch.cat([inside, noise], dim=1) @ rotation, labels, rotation[:2].T


@pytest.mark.parametrize("seed", range(3))
def test_subkmeans_finds_the_cluster_axes_exactly(seed):
    z, labels, plane = hidden_plane(seed=seed)
    result = subkmeans(z, 4, rng(seed))
    assert result.m == 2
    found = result.rotation[:, :2]
    torch.testing.assert_close(found @ found.T, plane @ plane.T, atol=1e-4, rtol=0)
    assert np.array_equal(align(result.labels, labels, 4), labels)
    torch.testing.assert_close(result.rotation.T @ result.rotation, torch.eye(8), atol=1e-5, rtol=0)


def test_subkmeans_cost_twin():
    z, _, _ = hidden_plane()
    result = subkmeans(z, 4, rng())
    expected = twin.subkmeans_cost(
        z.tolist(), result.labels.tolist(), result.centers.tolist(), result.rotation.tolist(), 2
    )
    assert result.cost == pytest.approx(expected, rel=1e-4)


def test_subkmeans_with_fewer_rows_than_columns():
    """In the span of the rows: the same cost as a loop over all columns gives."""
    z = torch.randn(20, 50, generator=torch.Generator().manual_seed(0))
    result = subkmeans(z, 3, rng())
    eye = torch.eye(50)
    torch.testing.assert_close(result.rotation.T @ result.rotation, eye, atol=1e-5, rtol=0)
    expected = twin.subkmeans_cost(
        z.tolist(), result.labels.tolist(), result.centers.tolist(), result.rotation.tolist(),
        result.m,
    )  # fmt: skip
    assert result.cost == pytest.approx(expected, rel=1e-4)


def test_subkmeans_cost_is_the_kmeans_cost_of_its_labels():
    # all centres lie in the cluster space, so outside of it they equal the mean
    z = normal(300, 7, dtype=torch.float32)
    result = subkmeans(z, 4, rng())
    inertia = float((z - result.centers[result.labels]).square().sum())
    assert result.cost == pytest.approx(inertia, rel=1e-4)
    assert result.cost <= 1.05 * kmeans(z, 4, rng=rng()).inertia


def test_axes_are_the_negative_eigenvectors_of_the_paper():
    z = normal(200, 6, dtype=torch.float32)
    result = subkmeans(z, 3, rng(), n_init=2)
    within = within_scatter(z, result.labels, result.centers).double()
    values, vectors = torch.linalg.eigh(within - len(z) * torch.cov(z.T.double(), correction=0))
    assert int((values < -1e-2).sum()) == result.m == 2
    ours, theirs = result.rotation[:, :2].double(), vectors[:, :2]
    torch.testing.assert_close(ours @ ours.T, theirs @ theirs.T, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    "z, k",
    [
        (torch.zeros(20, 3), 2),
        (torch.ones(20, 1), 3),
        (normal(20, 3, dtype=torch.float32), 1),
        (normal(5, 3, dtype=torch.float32), 5),
        (normal(4, 2, dtype=torch.float32).repeat(5, 1), 6),
        (normal(30, 4, dtype=torch.float32) * torch.tensor([1.0, 0.0, 1.0, 0.0]), 3),
    ],
    ids=["zeros", "one axis", "k=1", "k=n", "duplicates", "constant features"],
)
def test_subkmeans_edges(z, k):
    result = subkmeans(z, k, rng(), n_init=2)
    assert result.m >= 1 and result.rotation.shape == (z.shape[1],) * 2
    assert result.rotation.isfinite().all() and np.isfinite(result.cost)
    assert int(result.labels.max()) < k
    identity = result.rotation.T @ result.rotation
    torch.testing.assert_close(identity, torch.eye(z.shape[1]), atol=1e-5, rtol=0)


def test_subkmeans_repeats_and_says_what_is_wrong():
    z, _, _ = hidden_plane()
    first, second = subkmeans(z, 4, rng(3), n_init=2), subkmeans(z, 4, rng(3), n_init=2)
    assert torch.equal(first.rotation, second.rotation)
    assert torch.equal(first.labels, second.labels)
    with pytest.raises(ValueError, match="400 rows but k=500"):
        subkmeans(z, 500, rng())


def test_hard_weights_in_a_rotated_space_are_the_subkmeans_cost():
    z, _, _ = hidden_plane()
    result = subkmeans(z, 4, rng(), n_init=2)
    rotated, centers = z @ result.rotation, result.centers @ result.rotation
    beta = (torch.arange(8) < result.m).float()
    own = (beta * (rotated - centers[result.labels])).square()
    shared = ((1 - beta) * (rotated - rotated.mean(dim=0))).square()
    assert float(own.sum() + shared.sum()) == pytest.approx(result.cost, rel=1e-4)


def test_beta_optimum_minimises_the_loss():
    within, total = torch.tensor([1.0, 1.0, 4.0, 0.0]), torch.tensor([2.0, 5.0, 4.0, 3.0])
    best = beta_optimum(within, total)
    torch.testing.assert_close(best, torch.tensor([2 / 3, 5 / 6, 0.5, 1.0]))
    torch.testing.assert_close(best[:3], (total / within)[:3].log().sigmoid())
    grid = torch.linspace(0, 1, 1001)[:, None]
    losses = grid.square() * within + (1 - grid).square() * total
    torch.testing.assert_close(grid[losses.argmin(dim=0), 0], best, atol=1e-3, rtol=0)
    assert beta_optimum(torch.zeros(1), torch.zeros(1)).item() == 0.5
