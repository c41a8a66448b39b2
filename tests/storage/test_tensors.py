"""Saved models: damaged, truncated or foreign files give a named error and never run code."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coterie
from conftest import quick
from coterie.storage.tensors import StateError, write_bytes


@pytest.fixture(scope="module")
def saved(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("model")
    quick("ae_kmeans").fit(blobs[0]).save(folder / "m")
    return folder / "m"


def copy(saved: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    for file in saved.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(where=st.floats(0, 1), bit=st.integers(0, 7), cut=st.booleans(), tensors=st.booleans())
def test_damage_is_always_named(saved, tmp_path, where, bit, cut, tensors):
    folder = copy(saved, tmp_path / "d")
    file = folder / ("model.safetensors" if tensors else "model.json")
    content = bytearray(file.read_bytes())
    at = min(int(where * len(content)), len(content) - 1)
    if cut:
        content = content[:at]
    else:
        content[at] ^= 1 << bit
    file.write_bytes(content)
    with pytest.raises(StateError):
        coterie.load(folder)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda f: (f / "model.json").unlink(), "model.json is missing"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda f: (f / "model.json").write_text("[1]"), "not a coterie model"),
        (lambda f: (f / "model.json").write_text("{"), "not readable as JSON"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x80\x04."), "digest does not match"),
    ],
)
def test_broken_folders(saved, tmp_path, break_it, message):
    folder = copy(saved, tmp_path / "b")
    break_it(folder)
    with pytest.raises(StateError, match=re.escape(message)):
        coterie.load(folder)


def test_a_newer_format_says_so(saved, tmp_path):
    folder = copy(saved, tmp_path / "n")
    about = json.loads((folder / "model.json").read_text()) | {"format": 99}
    (folder / "model.json").write_text(json.dumps(about))
    with pytest.raises(StateError, match="format 99, but 1 is read here"):
        coterie.load(folder)


def test_save_refuses_a_folder_with_other_files(blobs, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(StateError, match=r"thesis\.tex"):
        quick("kmeans").fit(blobs[0]).save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_model_is_replaced_on_demand_only(blobs, tmp_path):
    quick("kmeans").fit(blobs[0]).save(tmp_path / "m")
    other = quick("kmeans", n_clusters=2).fit(blobs[0])
    with pytest.raises(StateError, match=r"holds a model already; .* overwrite=True"):
        other.save(tmp_path / "m")
    assert coterie.load(tmp_path / "m").n_clusters == 3
    other.save(tmp_path / "m", overwrite=True)
    assert coterie.load(tmp_path / "m").n_clusters == 2


def test_the_model_of_a_run_is_never_replaced(blobs, tmp_path):
    from coterie.data import load
    from coterie.storage import runs

    with runs.writing(tmp_path / "r", {}) as path:
        runs.finish(path, quick("kmeans").fit(blobs[0]), load(blobs[0]), {})
    with pytest.raises(StateError, match="holds a finished run; give a new folder"):
        quick("kmeans", n_clusters=2).fit(blobs[0]).save(path, overwrite=True)
    assert coterie.load(path).n_clusters == 3


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_bytes(tmp_path / "f", b"old")
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        write_bytes(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_no_unsafe_loading_in_the_source():
    root = Path(coterie.__file__).parent
    bad = re.compile(
        r"\bpickle\.|torch\.load\((?!.*weights_only=True)|joblib\.load|allow_pickle=True"
        r"|(?<![.\w])(eval|exec)\("
    )
    found = [
        f"{p}:{i}"
        for p in root.rglob("*.py")
        for i, line in enumerate(p.read_text().split("\n"), 1)
        if bad.search(line)
    ]
    assert found == []


def test_numbers_of_numpy_are_saved_as_plain_ones(blobs, tmp_path):
    odd = {"hidden": (np.int64(16),), "lr": np.float32(0.5e-3)}
    model = quick("dec", checkpoint_dir=tmp_path / "k", **odd).fit(blobs[0])
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert again.hidden == (16,) and again.lr == np.float32(0.5e-3)
    prior = np.array([0.1, 0.2, 0.3])
    module = quick("cm", prior_strength=prior, checkpoint_dir=tmp_path / "cm").fit(blobs[0])
    module.save(tmp_path / "n")
    assert coterie.load(tmp_path / "n").prior_strength == (0.1, 0.2, 0.3)


def test_own_modules_are_asked_for_at_load(blobs, tmp_path):
    import torch

    def pair():
        return torch.nn.Linear(6, 2), torch.nn.Linear(2, 6)

    mine = pair()
    before = mine[0].weight.detach().clone()
    model = quick("dec", net=mine).fit(blobs[0])
    assert torch.equal(mine[0].weight, before)  # a copy was trained
    assert np.array_equal(model.fit(blobs[0]).labels_, model.labels_)
    assert len(model.get_feature_names_out()) == 2
    model.save(tmp_path / "m")
    with pytest.raises(StateError, match="net="):
        coterie.load(tmp_path / "m")
    again = coterie.load(tmp_path / "m", net=pair())
    assert np.array_equal(again.predict(blobs[0]), model.labels_)
