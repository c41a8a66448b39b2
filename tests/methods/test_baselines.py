"""k-means, PCA + k-means and spectral clustering: their formulas against numpy and loops."""

import numpy as np
import pytest
import scipy.linalg
import torch
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from conftest import quick
from coterie.methods.baselines.kmeans import principal_components
from coterie.methods.baselines.spectral import spectral_embedding
from reference import assign as twin


def test_kmeans_probabilities_are_those_of_round_gaussians_as_wide_as_the_clusters():
    X = make_blobs(60, 3, centers=3, cluster_std=3.0, random_state=0)[0]  # they overlap
    model = quick("kmeans", scale="none").fit(X)
    expected = twin.round_gaussians(X.tolist(), model.centers_in_input_space().tolist())
    assert np.mean(np.max(expected, 1) < 0.9) > 0.1
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)


# -- principal components -------------------------------------------------------------------------
@pytest.mark.parametrize("share", [0.3, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("n", [80, 5])  # also fewer rows than columns
def test_components_are_the_fewest_singular_vectors_that_hold_the_share(share, n):
    x = np.random.default_rng(0).normal(size=(n, 7)) * 2.0 ** -np.arange(7) + 5
    mean = x.mean(0)
    _, s, axes = np.linalg.svd(x - mean, full_matrices=False)
    m = next(m for m in range(1, 8) if sum(s[:m] ** 2) >= (share - 1e-9) * sum(s**2))
    found, components = principal_components(torch.from_numpy(x), share)
    np.testing.assert_allclose(found, mean)
    assert components.shape == (7, m)
    np.testing.assert_allclose(components @ components.T, axes[:m].T @ axes[:m], atol=1e-5)


def test_pca_kmeans_clusters_the_centred_rows_along_these_components(blobs):
    X = blobs[0]
    model = quick("pca_kmeans", scale="none").fit(X)
    mean, components = principal_components(torch.from_numpy(X), 0.9)
    assert 1 < components.shape[1] < X.shape[1]
    expected = (X - mean.numpy()) @ components.numpy()
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-4)


# -- spectral clustering --------------------------------------------------------------------------
@pytest.mark.parametrize("n", [40, 120])  # all eigenvectors at once, or the leading ones only
def test_spectral_embedding_solves_the_normalised_cut(n):
    X = make_blobs(n, 2, centers=3, cluster_std=2.0, random_state=1)[0]
    near = kneighbors_graph(X, 6, include_self=False)
    graph = (near + near.T) * 0.5
    weights = graph.toarray()
    degrees = [sum(weights[i][j] for j in range(n)) for i in range(n)]
    assert max(degrees) > 1.5 * min(degrees)
    # max v' A v with v' D v = 1: no root of a degree anywhere
    values, vectors = scipy.linalg.eigh(weights, np.diag(degrees))
    assert values[-3] > values[-4] + 1e-3
    mine = spectral_embedding(graph, 3, np.random.default_rng(0))
    theirs = vectors[:, -3:]
    np.testing.assert_allclose(mine @ mine.T, theirs @ theirs.T, atol=1e-5)


def test_umap_of_a_graph_in_pieces_does_not_ask_a_solver_without_a_seed(monkeypatch):
    """UMAP starts such a graph by an eigsh that no seed reaches, and labels did not repeat."""
    spectral = pytest.importorskip("umap.spectral")
    X, y = make_blobs(180, 12, centers=[[0] * 12, [40] * 12, [80] * 12], random_state=0)

    def unseeded(*args, **kwargs):
        raise AssertionError("the solver has no seed")

    monkeypatch.setattr(spectral.scipy.sparse.linalg, "eigsh", unseeded)
    model = quick("umap_gmm").fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
