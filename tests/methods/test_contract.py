"""Every registered method keeps scikit-learn's rules and ours; a new method needs no new test."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from conftest import KEYS, quick


# 4 clusters: the number of columns that the sparse check expects of predict_proba
@parametrize_with_checks([quick(key, 4) for key in KEYS])
def test_sklearn(estimator, check):
    check(estimator)


def stream():
    return np.random.get_state()[1].copy()  # noqa: NPY002


@pytest.mark.parametrize("key", KEYS)
def test_labels_are_predictions_and_inputs_stay_untouched(key, blobs):
    X = blobs[0].copy()
    X.setflags(write=False)
    state_np, state_torch = stream(), torch.get_rng_state().clone()
    model = quick(key).fit(X)
    assert np.array_equal(stream(), state_np)  # nobody's random stream moved
    assert torch.equal(torch.get_rng_state(), state_torch)
    assert np.array_equal(model.labels_, model.predict(X))
    assert np.array_equal(X, blobs[0])
    assert len(model.labels_) == len(X) and model.labels_.max() < 3
    proba = model.predict_proba(X)
    for one, alone in zip(model.predict_both(X), (model.labels_, proba)):
        assert np.array_equal(one, alone)
    assert proba.shape == (len(X), 3) and proba.dtype == np.float32
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-4)
    assert np.array_equal(proba.argmax(1), model.labels_)
    assert model.transform(X).dtype == np.float32 and sum(model.seconds_.values()) > 0


class Untouchable:
    """A label array that must never be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"fit looked at y ({name})")


@pytest.mark.parametrize("key", KEYS)
def test_y_is_never_looked_at(key, blobs):
    assert np.array_equal(
        quick(key).fit(blobs[0], Untouchable()).labels_, quick(key).fit(blobs[0]).labels_
    )


@pytest.mark.parametrize("key", KEYS)
def test_images_and_sparse_rows(key, digit_images):
    images = digit_images[0][:150]
    model = quick(key).fit(images)
    assert np.array_equal(model.labels_, model.predict(images))
    sparse = sp.random(80, 30, density=0.2, format="csr", random_state=0, dtype=np.float32)
    model = (quick(key, net="mlp") if "net" in model.get_params() else quick(key)).fit(sparse)
    np.testing.assert_allclose(
        model.transform(sparse), model.transform(sparse.toarray()), rtol=1e-4, atol=1e-5
    )


# one fresh interpreter for all methods: importing torch costs more than predicting
PREDICT = """
import sys, numpy as np, torch
torch.set_num_threads(1)
import coterie
root = sys.argv[1]
X = np.load(root + "/x.npy")
for key in sys.argv[2].split(","):
    m = coterie.load(root + "/" + key)
    np.savez(root + "/" + key, labels=m.predict(X), proba=m.predict_proba(X), z=m.transform(X),
             fitted=m.labels_)
"""


def test_saved_models_predict_the_same_bits_in_a_fresh_process(tmp_path, digit_images):
    images = digit_images[0][:120]
    np.save(tmp_path / "x.npy", images)
    models = {}
    for key in KEYS:
        models[key] = quick(key).fit(images)
        models[key].save(tmp_path / key)
        names = sorted(p.name for p in (tmp_path / key).iterdir())
        assert names == ["model.json", "model.safetensors"]
    subprocess.run([sys.executable, "-c", PREDICT, str(tmp_path), ",".join(KEYS)], check=True)
    for key, model in models.items():
        there = np.load(tmp_path / f"{key}.npz")
        assert np.array_equal(there["labels"], model.labels_), key
        assert np.array_equal(there["fitted"], model.labels_), key
        assert np.array_equal(there["proba"], model.predict_proba(images)), key
        assert np.array_equal(there["z"], model.transform(images)), key


@pytest.mark.parametrize("key", KEYS)
def test_same_seed_same_bits(key, blobs):
    a, b = quick(key).fit(blobs[0]), quick(key).fit(blobs[0])
    assert np.array_equal(a.transform(blobs[0]), b.transform(blobs[0]))
    assert np.array_equal(a.labels_, b.labels_)


@pytest.mark.parametrize("key", KEYS)
def test_constant_columns_and_duplicate_rows_work(key, blobs):
    X = np.repeat(blobs[0][:40], 3, axis=0)
    X[:, 2] = 7.0
    model = quick(key).fit(X)
    assert len(model.labels_) == len(X)
    assert np.isfinite(model.transform(X)).all() and np.isfinite(model.predict_proba(X)).all()


def test_public_names_resolve_and_import_is_light():
    for name in coterie.__all__:
        assert getattr(coterie, name) is not None
    for name, cls in coterie.list_methods().items():
        assert getattr(coterie, cls.__name__) is cls, name
    assert coterie.list_methods()  # importing the methods hides nothing
    code = "import sys, coterie; print(any(m in sys.modules for m in ('torch', 'sklearn')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
