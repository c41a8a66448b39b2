"""Embeddings as a kind of data: told by their look, compared by angle, in any number type."""

import math

import numpy as np
import pytest
import torch

import coterie
from conftest import quick
from coterie import metrics
from coterie.math.features import Features
from coterie.math.guess import guess_kind


def embeddings(n=240, d=96, k=3, seed=0, length=True):
    """Rows around k directions; lengths vary by a tenth unless they are one."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    x = rng.normal(size=(k, d))[y] + 0.5 * rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return (x if length else x * rng.normal(7, 0.7, (n, 1))).astype(np.float32), y


def guess(x):
    return guess_kind(torch.from_numpy(np.asarray(x, np.float32)), False, x.shape[1:])


def test_embeddings_are_recognised_by_their_lengths():
    unit, other = embeddings()[0], embeddings(length=False)[0]
    assert guess(unit) == guess(other) == "vector"
    assert guess(np.abs(unit)) == "vector"  # behind a ReLU, but put at unit length
    assert guess(unit.astype(np.float16)) == "vector"
    assert guess((127 * unit / np.abs(unit).max()).round().astype(np.int8)) == "vector"
    silent = unit.copy()
    silent[3] = 0
    assert guess(silent) == "vector"


def test_tables_are_not_taken_for_embeddings():
    rng = np.random.default_rng(0)
    x = embeddings(length=False)[0]
    assert guess(x[:, :40]) == "table"  # too narrow
    assert guess(np.abs(x)) == "table"  # one sign
    assert guess(x * rng.lognormal(0, 1, (len(x), 1))) == "table"  # some rows are large in all
    heavy = x.copy()
    heavy[:, 5] *= 20  # one column has most of the squares
    assert guess(heavy) == "table"
    assert guess(np.zeros((5, 80), np.float32)) == "table"


def test_features_are_angles_between_unit_rows():
    x, _ = embeddings(60, 80)
    x = x * np.linspace(0.5, 30, 60, dtype=np.float32)[:, None]  # lengths tell nothing
    made = Features("vector", (80,)).fit(torch.from_numpy(x), torch.Generator().manual_seed(0))
    z = made(torch.from_numpy(x)).numpy()
    unit = [[float(v) / math.sqrt(sum(float(u) ** 2 for u in row)) for v in row] for row in x]
    mean = [sum(column) / len(unit) for column in zip(*unit)]
    centred = [[v - m for v, m in zip(row, mean)] for row in unit]
    for i, j in ((0, 1), (2, 40), (59, 7)):
        dot = sum(a * b for a, b in zip(centred[i], centred[j]))
        norms = [math.sqrt(sum(a * a for a in centred[row])) for row in (i, j)]
        assert math.isclose(float(z[i] @ z[j]), dot / (norms[0] * norms[1]), abs_tol=1e-4)


@pytest.mark.parametrize("key", ["kith", "feature_kmeans", "feature_gmm"])
def test_kind_vector_finds_directions_and_is_kept(key, tmp_path):
    x, y = embeddings(length=False)
    model = quick(key).fit(x)
    assert model.kind_ == "vector" and metrics.nmi(y, model.labels_) > 0.9
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert again.kind_ == "vector" and np.array_equal(again.predict(x), model.labels_)


def test_lengths_and_number_types_do_not_matter():
    x, _ = embeddings()
    rows = {
        "float32": x,
        "float16": x.astype(np.float16),
        "int8": (127 * x / np.abs(x).max()).round().astype(np.int8),
        "longer": 12 * x,
    }
    found = {name: quick("feature_kmeans").fit(r).labels_ for name, r in rows.items()}
    for name, labels in found.items():
        assert metrics.ari(found["float32"], labels) == 1, name
