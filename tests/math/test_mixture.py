"""EM with diagonal covariances against scikit-learn's from the same start."""

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from coterie.math import mixture as module
from coterie.math.kmeans import kmeans
from coterie.math.mixture import diagonal_mixture

K, RIDGE = 4, 1e-4


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    centers = rng.normal(0, 2, (K, 6))
    x = centers[rng.integers(0, K, 500)] + rng.normal(0, rng.uniform(0.3, 1.5, 6), (500, 6))
    return (x + 50).astype(np.float32)  # far from zero


def sklearn_from(rows, first, **settings):
    """Their EM after an M step from responsibilities `first` (n, k)."""
    x, counts = rows.astype(np.float64), first.sum(0)
    means = first.T @ x / counts[:, None]
    variances = np.stack([(first[:, j] @ (x - means[j]) ** 2) / counts[j] for j in range(K)])
    model = GaussianMixture(
        K,
        covariance_type="diag",
        weights_init=counts / len(x),
        means_init=means,
        precisions_init=1 / (variances + RIDGE),
        reg_covar=RIDGE,
        **settings,
    )
    return model.fit(x)


@pytest.mark.parametrize("block", [7 * 6, 2**17])
@pytest.mark.parametrize("start", ["kmeans", "random"])
def test_same_as_scikit_learn_from_the_same_start(rows, start, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_VALUES", block)
    x = torch.from_numpy(rows)
    if start == "kmeans":
        first = np.eye(K)[kmeans(x, K, rng=np.random.default_rng(0), n_init=1).labels.numpy()]
    else:
        first = np.random.default_rng(0).random((len(rows), K))
        first /= first.sum(1, keepdims=True)
    theirs = sklearn_from(rows, first)
    ours = diagonal_mixture(x, K, rng=np.random.default_rng(0), start=start, ridge=RIDGE)
    np.testing.assert_allclose(ours.weights, theirs.weights_, rtol=1e-5)
    np.testing.assert_allclose(ours.means, theirs.means_, rtol=1e-6)
    np.testing.assert_allclose(ours.variances, theirs.covariances_, rtol=1e-4)
    assert ours.bound == pytest.approx(theirs.lower_bound_, rel=1e-6)


def test_many_clusters_stay_within_a_block(rows, monkeypatch):
    """Responsibilities of a block are (k, rows): their number is what has to be bounded."""
    sizes = []
    made = module._by_density
    monkeypatch.setattr(
        module, "_by_density", lambda m: lambda *a: sizes.append(len(a[1])) or made(m)(*a)
    )
    monkeypatch.setattr(module, "BLOCK_VALUES", 100)
    x = torch.from_numpy(rows)
    diagonal_mixture(x, 50, rng=np.random.default_rng(0), start="kmeans", ridge=1e-2, max_iter=2)
    assert max(sizes) == 2


def test_restarts_keep_the_most_likely(rows):
    x = torch.from_numpy(rows)
    settings = {"start": "random", "ridge": RIDGE, "max_iter": 5}
    rng = np.random.default_rng(1)
    single = [diagonal_mixture(x, K, rng=rng, **settings).bound for _ in range(4)]
    several = diagonal_mixture(x, K, rng=np.random.default_rng(1), n_init=4, **settings)
    assert several.bound == max(single) > min(single)


def test_a_constant_column_and_a_cluster_of_one_row_stay_finite():
    x = torch.cat([torch.zeros(20, 3), torch.full((1, 3), 9.0)])
    x[:, 1] = 5.0
    found = diagonal_mixture(x, 3, rng=np.random.default_rng(0), start="kmeans", ridge=1e-6)
    assert all(t.isfinite().all() for t in (found.means, found.variances, found.offset))
    assert found.weights.sum().item() == pytest.approx(1)
