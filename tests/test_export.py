"""ONNX: onnxruntime gives the labels of the model, for any number of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import KEYS, quick
from coterie.cli import main
from coterie.export import ExportError, OnnxModel, export_onnx

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package, reason="needs the extra `onnx`")

TRANSDUCTIVE = ("spectral", "umap_gmm", "leiden")


def same(model, X, path):
    onnx = OnnxModel(export_onnx(model, path), threads=1)
    for rows in (X, X[:1], X[:7]):
        assert np.array_equal(onnx.predict(rows), model.predict(rows))
    np.testing.assert_allclose(onnx.predict_proba(X), model.predict_proba(X), atol=1e-4)
    labels, proba = onnx.predict_both(X)
    assert np.array_equal(labels, onnx.predict(X))
    assert np.array_equal(proba, onnx.predict_proba(X))


@pytest.mark.parametrize("key", [k for k in KEYS if k not in TRANSDUCTIVE])
def test_labels_of_every_method_on_images(key, digit_images, tmp_path):
    X = digit_images[0][:90]
    same(quick(key).fit(X), X, tmp_path / "m.onnx")


@pytest.mark.parametrize("key", ["dec", "kith", "gmm"])
def test_labels_on_columns_with_their_own_scales(key, blobs, tmp_path):
    X = (blobs[0] * [1, 10, 100, 1, 1, 1] + 5).astype(np.float32)
    same(quick(key, scale="standard").fit(X), X, tmp_path / "m.onnx")


def test_colour_images_and_sparse_rows(digit_images, tmp_path):
    X = np.repeat(digit_images[0][:60, :, :, None], 3, axis=3)
    same(quick("dcec").fit(X), X, tmp_path / "c.onnx")
    X = sp.random(60, 30, density=0.2, format="csr", random_state=0, dtype=np.float32)
    same(quick("dec").fit(X), X, tmp_path / "s.onnx")


@pytest.mark.parametrize("key", ["kith", "feature_kmeans"])
def test_counts_dense_and_sparse(key, tmp_path):
    rates = np.where(np.arange(300) // 100 == np.repeat([0, 1, 2], 20)[:, None], 1.5, 0.3)
    X = np.random.default_rng(0).poisson(rates).astype(np.float32)
    model = quick(key).fit(sp.csr_matrix(X))
    assert model.kind_ == "counts"
    same(model, sp.csr_matrix(X), tmp_path / "s.onnx")
    same(quick(key, kind="counts").fit(X), X, tmp_path / "d.onnx")
    same(quick(key, kind="counts").fit(X + 0.5), X + 0.5, tmp_path / "f.onnx")  # no logarithms


@pytest.mark.parametrize("key", [k for k in TRANSDUCTIVE if k == "spectral"])
def test_methods_without_an_encoder_say_so(key, blobs, tmp_path):
    with pytest.raises(ExportError, match=f"{key} labels a new row by its nearest training rows"):
        export_onnx(quick(key).fit(blobs[0]), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path, blobs, capsys):
    np.save(tmp_path / "x.npy", blobs[0])
    data, run = str(tmp_path / "x.npy"), str(tmp_path / "run")
    flags = ["--clusters", "3", "--hidden", "16", "--pretrain-epochs", "2", "--epochs", "2"]
    assert main(["fit", data, "--method", "dec", "--out", run, "--quiet", *flags]) == 0
    assert main(["predict", run, data, "--onnx"]) == 2
    assert "coterie export" in capsys.readouterr().err
    assert main(["export", run]) == 2
    assert main(["export", run, "--onnx"]) == 0
    assert main(["export", run, "--onnx"]) == 2  # nothing is overwritten unasked
    tables = []
    for more in ([], ["--onnx"]):
        out = tmp_path / f"labels{len(more)}.csv"
        assert main(["predict", run, data, "--out", str(out), *more]) == 0
        tables.append([line.split(",")[:2] for line in out.read_text().splitlines()])
    assert tables[0] == tables[1]


def test_columns_that_float32_would_round_away_are_refused(blobs, tmp_path):
    X = blobs[0].astype(np.float64)
    X[:, 0] += 1.7e9
    with pytest.raises(ExportError, match="float32"):
        export_onnx(quick("kmeans").fit(X), tmp_path / "m.onnx")
