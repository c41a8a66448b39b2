"""Sparse rows give what their dense copies give, and are not filled with zeros on the way."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from conftest import quick
from coterie.math.kmeans import kmeans
from coterie.nets.mlp import MLP
from coterie.nets.sparse import linear
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling


@pytest.fixture(scope="module")
def texts():
    """Three topics: each has its own third of 90 words, and some words of the others."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, 150)
    rate = np.where(np.arange(90) // 30 == topic[:, None], 0.25, 0.02)
    counts = (rng.random((150, 90)) < rate) * rng.random((150, 90))
    return sp.csr_matrix(counts.astype(np.float32)), topic


def test_linear_layer_and_its_gradient_equal_the_dense_ones(texts):
    X = texts[0][:20].astype(np.float64)
    layer = torch.nn.Linear(90, 7, dtype=torch.float64)
    grad = torch.randn(20, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = {}
    sparse, dense = linear(X, layer), layer(torch.tensor(X.toarray()))
    for name, out in {"sparse": sparse, "dense": dense}.items():
        layer.zero_grad()
        out.backward(grad)
        found[name] = [out, layer.weight.grad.clone(), layer.bias.grad.clone()]
    for a, b in zip(found["sparse"], found["dense"]):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("hidden", [(16,), ()])
def test_encode_takes_both(texts, hidden):
    net = MLP((90,), 4, hidden, "relu", "xavier", torch.Generator().manual_seed(0))
    dense = net.encode(torch.from_numpy(texts[0].toarray()))
    torch.testing.assert_close(net.encode(texts[0]), dense, rtol=1e-4, atol=1e-5)


class Stored:
    """Dense rows that are read in slices, as from disk."""

    def __init__(self, x):
        self.x, self.n = torch.from_numpy(x), len(x)

    def slice(self, start, stop):
        return self.x[start:stop]


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_kmeans_on_csr_equals_kmeans_on_its_dense_copy(texts, init):
    X = texts[0]
    options = {"n_init": 3, "init": init}
    dense = kmeans(Stored(X.toarray()), 5, rng=np.random.default_rng(1), **options)
    found = kmeans(X, 5, rng=np.random.default_rng(1), **options)
    assert torch.equal(found.labels, dense.labels)
    torch.testing.assert_close(found.centers, dense.centers, rtol=1e-3, atol=1e-5)
    assert found.inertia == pytest.approx(dense.inertia, rel=1e-4)
    assert found.n_iter == dense.n_iter


def test_kmeans_on_csr_seeds_an_empty_cluster_at_a_far_row(texts):
    far = sp.csr_matrix(([50.0], ([0], [3])), (1, 90), dtype=np.float32)
    X = sp.vstack([texts[0], far]).tocsr()
    start = torch.from_numpy(X[:3].toarray())
    start[2] = start[1]  # the second of two equal centres gets no rows
    found = kmeans(X, 3, rng=np.random.default_rng(0), init=start)
    assert found.labels.bincount(minlength=3).min() > 0
    assert (found.labels == found.labels[-1]).sum() == 1


@pytest.mark.parametrize("key", ["kmeans", "dec", "dcn"])
def test_methods_give_the_same_clusters(texts, key):
    X = texts[0]
    params = {"scale": "none", "augment": "none"} if key != "kmeans" else {"scale": "none"}
    dense = quick(key, **params).fit(X.toarray())
    sparse = quick(key, **params).fit(X)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.97
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-4)
    assert np.array_equal(sparse.labels_, sparse.predict(X))


def test_dec_fills_no_batch_with_zeros_where_no_reconstruction_asks_for_it(texts, monkeypatch):
    filled = []
    true = Rows._to_tensor
    monkeypatch.setattr(Rows, "_to_tensor", lambda s, b: filled.append(b.shape[0]) or true(s, b))
    monkeypatch.setattr("coterie.estimator.deep.clusters_kept", lambda *rows: 1.0)
    quick("dec", init="random").fit(texts[0])
    quick("kmeans").fit(texts[0]).predict(texts[0])
    assert sum(filled) == 300  # only k-means' own labels: twice all rows, in the end


def test_scaled_rows_are_those_of_the_dense_path(texts):
    rows = Rows(texts[0], fit_scaling(texts[0], "auto"))
    assert rows.scaling.factor != 1
    np.testing.assert_allclose(rows.csr.toarray(), rows.slice(0, rows.n).numpy(), rtol=1e-6)
