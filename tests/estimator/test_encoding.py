"""Texts and encoders in fit and predict, and in saved models."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import coterie
from conftest import KEYS, quick
from coterie import KMeans
from coterie.data.texts import as_texts
from coterie.encoders.base import EncoderError
from encoders.models import bert_folder, onnx_means

TEXTS = [
    "the cat sat on a mat",
    "a cat and a dog on the mat",
    "dog and cat sleep",
    "stocks and shares fell",
    "shares rose while markets fell",
    "markets and stocks rose",
] * 4


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))


def coloured(n=24):
    """Small images, red ones and blue ones by turns."""
    X = np.random.default_rng(0).integers(0, 60, (n, 5, 5, 3), dtype=np.uint8)
    X[::2, ..., 0] += 180
    X[1::2, ..., 2] += 180
    return X


class Lengths:
    """Stands for a column of a Hugging Face data set."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


Lengths.__module__ = "datasets.arrow_dataset"

FORMS = {
    "list": lambda t: t,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda t: np.array(t, object),
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda t: pa.chunked_array([t[:3], t[3:]]),
    "hugging face": Lengths,
}


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_any_form(form):
    model = KMeans(2, random_state=0, n_init=2).fit(TEXTS)
    assert as_texts(FORMS[form](TEXTS)) == TEXTS
    assert np.array_equal(model.predict(FORMS[form](TEXTS[:7])), model.labels_[:7])


def test_what_is_no_text_is_left_alone():
    others = [np.ones((3, 2)), [1, 2], pd.Series([1.0, 2]), pa.array([1]), [], np.array([1.5])]
    assert all(as_texts(other) is None for other in others)
    assert as_texts(pd.DataFrame({"a": ["x"]})) is None
    for gap in (None, float("nan"), 3):
        with pytest.raises(ValueError, match=r"row 2 is (missing|int).*fill it"):
            as_texts(["a", "b", gap])


@pytest.mark.parametrize("key", KEYS)
def test_every_method_takes_texts_and_predicts_new_ones(key):
    more = {"net": "mlp"} if "net" in quick(key).get_params() else {}
    model = quick(key, 2, **more).fit(TEXTS)
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert model.predict(["a dog on a mat", ""]).shape == (2,)
    words = coterie.load_data(TEXTS, words=type(model).words)
    assert np.array_equal(quick(key, 2, **more).fit(words.X).labels_, model.labels_)
    assert np.array_equal(model.predict(words.X), model.labels_)  # rows of the same recipe


def test_a_model_of_numbers_refuses_texts(blobs):
    model = quick("kmeans").fit(blobs[0])
    with pytest.raises(ValueError, match="X is 2 texts, but KMeans was fitted on numbers"):
        model.predict(["a", "b"])
    fitted = KMeans(2, random_state=0).fit(TEXTS)
    fitted.fit(blobs[0])  # a second fit forgets the first
    assert not hasattr(fitted, "encoding_")


PREDICT = """
import sys, json, coterie
model = coterie.load(sys.argv[1])
print(json.dumps(model.predict(json.loads(sys.argv[2])).tolist()))
"""


@pytest.mark.parametrize("encoder", [None, "folder"])
def test_saved_text_models_take_texts_in_a_fresh_process(encoder, tmp_path):
    if encoder:
        pytest.importorskip("tokenizers")
        encoder = str(bert_folder(tmp_path / "bert"))
    import json

    model = KMeans(2, random_state=0, n_init=2, encoder=encoder).fit(TEXTS)
    model.save(tmp_path / "m")
    command = [sys.executable, "-c", PREDICT, str(tmp_path / "m"), json.dumps(TEXTS[:6])]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert json.loads(out.stdout) == model.labels_[:6].tolist()


def test_no_text_of_the_data_is_stored_but_the_words(tmp_path):
    KMeans(2, random_state=0).fit([*TEXTS, "secretword"]).save(tmp_path / "m")
    stored = (tmp_path / "m" / "model.json").read_text()
    assert "secretword" in stored  # a word of the vocabulary, told in the docs
    assert "sat on a mat" not in stored


@pytest.mark.parametrize("key", KEYS)
def test_every_method_takes_an_encoder(key, tmp_path):
    pytest.importorskip("onnxruntime")
    path, X = onnx_means(tmp_path / "m.onnx"), coloured()
    model = quick(key, 2, encoder=str(path)).fit(X)
    assert model.n_features_in_ == 3 and np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "saved")
    again = coterie.load(tmp_path / "saved")
    assert np.array_equal(again.predict(X), model.labels_)
    assert np.array_equal(again.transform(X), model.transform(X))


def test_relative_paths_hold_from_elsewhere(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    onnx_means(tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    model = KMeans(2, random_state=0, encoder="m.onnx").fit(coloured())
    model.save(tmp_path / "saved")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert np.array_equal(coterie.load(tmp_path / "saved").predict(coloured()), model.labels_)


def test_missing_moved_and_changed_encoders(tmp_path):
    pytest.importorskip("onnxruntime")
    path, X = onnx_means(tmp_path / "m.onnx"), coloured()
    model = KMeans(2, random_state=0, encoder=str(path)).fit(X)
    model.save(tmp_path / "saved")
    path.rename(tmp_path / "moved.onnx")
    with pytest.raises(EncoderError, match=r"m\.onnx, is not there.*coterie\.load\(folder, enc"):
        coterie.load(tmp_path / "saved").predict(X)
    moved = coterie.load(tmp_path / "saved", encoder=str(tmp_path / "moved.onnx"))
    assert np.array_equal(moved.predict(X), model.labels_)
    onnx_means(path, side=9)
    with pytest.raises(EncoderError, match=r"is not the one.*SHA-256 is .*it was.*fit again"):
        coterie.load(tmp_path / "saved").predict(X)


def test_modules_and_functions_must_be_brought_along(tmp_path):
    X = coloured()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(75, 4))
    model = KMeans(2, random_state=0, encoder=net).fit(X)
    model.save(tmp_path / "module")
    stored = (tmp_path / "module" / "model.json").read_text()
    assert model.encoding_.digest in stored and "Flatten" not in stored  # a digest, no code
    with pytest.raises(EncoderError, match=r"encoder of your own, Sequential.*load\(folder, enc"):
        coterie.load(tmp_path / "module").predict(X)
    again = coterie.load(tmp_path / "module", encoder=net)
    assert np.array_equal(again.predict(X), model.labels_)
    other = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(75, 4))
    with pytest.raises(EncoderError, match="is not the one"):
        coterie.load(tmp_path / "module", encoder=other).predict(X)
    model = KMeans(2, random_state=0, encoder=lambda rows: rows.mean((1, 2))).fit(X)
    model.save(tmp_path / "function")
    wide = coterie.load(tmp_path / "function", encoder=lambda rows: rows.reshape(len(rows), -1))
    with pytest.raises(EncoderError, match="75 numbers a row, the model was fitted on 3"):
        wide.predict(X)


def test_encoders_and_rows_that_do_not_fit(tmp_path):
    pytest.importorskip("onnxruntime")
    path = str(onnx_means(tmp_path / "m.onnx"))
    with pytest.raises(EncoderError, match=r"takes images, but X is 24 texts.*encoder='text'"):
        KMeans(2, encoder=path).fit(TEXTS)
    with pytest.raises(EncoderError, match=r"needs images.*shape \(24, 75\)"):
        KMeans(2, encoder=path).fit(coloured().reshape(24, -1))
    pytest.importorskip("tokenizers")
    with pytest.raises(EncoderError, match=r"takes texts, but X is an array of shape \(24, 5,"):
        KMeans(2, encoder=str(bert_folder(tmp_path / "b"))).fit(coloured())
    with pytest.raises(EncoderError, match="nor a known name"):
        KMeans(2, encoder="magic").fit(TEXTS)


def test_pixels_keep_the_unit_of_the_fit(tmp_path):
    pytest.importorskip("onnxruntime")
    X = coloured()
    model = KMeans(2, random_state=0, encoder=str(onnx_means(tmp_path / "m.onnx"))).fit(X)
    dark = (X // 100).astype(np.uint8)  # largest value 2: still bytes
    assert np.isfinite(model.transform(dark)).all()
    assert model.encoding_.settings["unit"] == 255


def test_importing_coterie_brings_no_encoder():
    code = (
        "import sys, coterie; names = ('torch', 'tokenizers', 'onnxruntime', 'anndata',"
        " 'coterie.encoders', 'scipy'); print([n for n in names if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
