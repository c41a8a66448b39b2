"""Mixtures of Gaussians of four shapes, against scikit-learn, scipy and loops."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from coterie.math.gaussians import SHAPES, gaussians

THEIRS = {"diagonal": "diag", "tied": "tied", "free": "full"}


def stretched():
    X, y = make_blobs(400, 3, centers=3, cluster_std=[0.5, 1.5, 1.0], random_state=3)
    return X @ np.random.default_rng(0).normal(size=(3, 3)), y


def covariances(found):
    """(k, d, d), read from the scale as its docstring says."""
    k, d = found.means.shape
    scale = found.scale.numpy()
    if found.shape == "round":
        return np.stack([scale * np.eye(d)] * k)
    if found.shape == "diagonal":
        return np.stack([np.diag(row) for row in scale])
    scale = np.stack([scale] * k) if found.shape == "tied" else scale
    return np.linalg.inv(scale @ scale.transpose(0, 2, 1))


@pytest.mark.parametrize("shape", THEIRS)
def test_likelihood_is_that_of_scikit_learn(shape):
    X, y = stretched()
    found = gaussians(torch.from_numpy(X), torch.from_numpy(y), 3, shape, prior=0, tol=1e-6)
    means = [X[y == j].mean(0) for j in range(3)]
    twin = GaussianMixture(3, covariance_type=THEIRS[shape], tol=1e-6, means_init=means).fit(X)
    assert found.bound == pytest.approx(twin.score(X), abs=2e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_log_joint_is_weight_times_density(shape):
    X, y = stretched()
    found = gaussians(torch.from_numpy(X), torch.from_numpy(y), 3, shape)
    mine, means = found.log_joint(torch.from_numpy(X)).numpy(), (found.means + found.center).numpy()
    for j, cov in enumerate(covariances(found)):
        density = multivariate_normal(means[j], cov).logpdf(X)
        want = float(found.log_weights[j]) + density
        np.testing.assert_allclose(mine[:, j], want, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_step_against_a_loop(shape):
    X, y = make_blobs([20, 40], 2, centers=[[0, 0], [3, 1]], random_state=0)
    found = gaussians(torch.from_numpy(X), torch.from_numpy(y), 2, shape, prior=10, max_iter=1)
    scatter = [np.zeros((2, 2)) for _ in range(2)]
    for row, j in zip(X, y):
        u = row - X[y == j].mean(0)
        scatter[j] += np.outer(u, u)
    pooled = sum(scatter) / 60
    want = {
        "round": [np.trace(pooled) / 2 * np.eye(2)] * 2,
        "tied": [pooled] * 2,
        "free": [(s + 10 * pooled) / (n + 10) for s, n in zip(scatter, (20, 40))],
    }
    want["diagonal"] = [np.diag(np.diag(cov)) for cov in want["free"]]
    np.testing.assert_allclose(covariances(found), want[shape], rtol=1e-3)
    np.testing.assert_allclose(found.log_weights.exp(), [1 / 3, 2 / 3], rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_duplicate_rows_and_an_empty_component(shape):
    x = torch.zeros(20, 2)
    x[10:] = 1
    found = gaussians(x, torch.arange(20) // 10, 3, shape)
    assert bool(found.log_joint(x).isfinite().all())
    labels = found.log_joint(x).argmax(1)
    assert labels[0] != labels[-1]


def test_an_unknown_shape_names_the_known_ones():
    with pytest.raises(ValueError, match="round, diagonal, tied, free"):
        gaussians(torch.zeros(4, 1), torch.zeros(4), 1, "oval")
