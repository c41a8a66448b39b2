"""Counts of many columns: shares of the total, logarithms, the most variable columns."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import coterie
from conftest import quick
from coterie import metrics
from coterie.estimator import counting


def cells(n=120, d=260, k=3, seed=0):
    """Cells of k types that differ in some genes, and in depth for no reason of their type."""
    rng = np.random.default_rng(seed)
    types = rng.integers(k, size=n)
    rates = rng.gamma(0.3, 0.6, size=d) + 4.0 * (rng.random((k, d)) < 0.05)
    depth = rng.lognormal(0, 1, size=(n, 1))
    return rng.poisson(rates[types] * depth).astype(np.float32), types


def loop_rows(raw, columns, depth):
    return [[math.log1p(row[j] * depth / max(sum(row), 1)) for j in columns] for row in raw]


@pytest.fixture(autouse=True)
def few_columns(monkeypatch):
    monkeypatch.setattr(counting, "COLUMNS", 50)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_network_sees_logarithms_of_variable_columns(form):
    raw, _ = cells()
    X = form(raw)
    model = quick("dec", scale="none").fit(X)
    assert model.settings_.counts == "log" and model.row_shape_ == (50,)
    assert model.n_features_in_ == 260 and model.input_shape_ == (260,)
    depth = float(np.median(raw.sum(1)))
    logs = np.array(loop_rows(raw.tolist(), range(260), depth))
    best = np.sort(np.argsort(-logs.var(0), kind="stable")[:50])
    assert model.counting_.depth == depth
    assert model.counting_.columns.tolist() == best.tolist()
    seen = model._rows(X).slice(0, 7).numpy()
    np.testing.assert_allclose(seen, logs[:7, best], rtol=1e-4, atol=1e-6)


def test_new_rows_and_saved_models_repeat_it(tmp_path):
    X, _ = cells()
    model = quick("idec").fit(sp.csr_matrix(X[:90]))
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    new = sp.csr_matrix(X[90:])
    assert np.array_equal(again.predict(new), model.predict(new))
    assert np.array_equal(again.predict(new[:1]), model.predict(new)[:1])
    assert np.array_equal(again.transform(new), model.transform(new))
    assert np.array_equal(again.fit(X[:, :100]).predict(X[:, :100]), again.labels_)
    assert not hasattr(again, "counting_")  # of the fit before


def test_depth_alone_separates_no_clusters():
    X, types = cells(n=240)
    settings = {"hidden": (64,), "pretrain_epochs": 30}
    log, raw = (
        metrics.nmi(types, quick("ae_kmeans", counts=c, **settings).fit(X).labels_)
        for c in ("auto", "raw")
    )
    assert log > raw + 0.2


def test_rebuilt_rows_are_counts_of_the_columns_given():
    X, _ = cells()
    model = quick("idec").fit(X)
    rebuilt = model.reconstruct(X)
    assert rebuilt.shape == X.shape and (rebuilt >= 0).all()
    left_out = np.setdiff1d(np.arange(260), model.counting_.columns)
    assert not rebuilt[:, left_out].any()
    there_and_back = model.counting_.undo(model.counting_.apply(X))[:, model.counting_.columns]
    share = X / X.sum(1, keepdims=True) * model.counting_.depth
    np.testing.assert_allclose(there_and_back, share[:, model.counting_.columns], rtol=1e-4)


def test_what_is_no_count_stays_as_it_is(tmp_path):
    X, _ = cells()
    path = tmp_path / "x.npy"
    np.save(path, X)
    assert counting.looks_counted(X) and counting.looks_counted(sp.csr_matrix(X.astype(np.int32)))
    for other in (X + 0.5, X - 1, X > 0, X[:, :150], np.load(path, mmap_mode="r"), X[:0]):
        assert not counting.looks_counted(other)
    assert not counting.looks_counted(sp.csr_matrix(X * 0.3))
    assert quick("dec", pretrain="kith").fit(X).settings_.counts == "raw"
    assert quick("dec", counts="raw").fit(X).row_shape_ == (260,)
    with pytest.raises(ValueError, match="takes counts, but X has -1; use counts='raw'"):
        quick("dec", counts="log").fit(X - 1)
    with pytest.raises(ValueError, match=r"table in memory, X is rows of \(8, 8\)"):
        quick("dec", counts="log").fit(X[:, :64].reshape(-1, 8, 8))


def test_an_exported_model_takes_counts(tmp_path):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra `onnx`")
    from coterie.export import OnnxModel, export_onnx

    X, _ = cells()
    model = quick("dec").fit(X)
    onnx = OnnxModel(export_onnx(model, tmp_path / "m.onnx"), threads=1)
    assert np.array_equal(onnx.predict(X), model.predict(X))
