"""Run folders, atomic files and TOML."""

import os
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.storage import runs
from coterie.storage.atomic import atomic, to_toml, write_atomic

KEYS = st.text(min_size=1, max_size=8)
SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
TABLES = st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=2), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(KEYS, SCALARS | TABLES, max_size=4))
def test_toml_round_trip(data):
    text = to_toml(data).encode("utf-8", "replace").decode()
    assert tomllib.loads(text) == data


def test_toml_of_numpy_and_none():
    data = {"p": {"a": np.float32(0.5), "b": np.arange(2), "c": None, "d": (1, "x")}, "n": None}
    data["p"] |= {"scale": "none", "e": {"f": None, "g": 1}}
    assert tomllib.loads(to_toml(data)) == {
        "p": {"a": 0.5, "b": [0, 1], "d": [1, "x"], "scale": "none", "e": {"g": 1}}
    }


def test_atomic_keeps_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / "f"
    write_atomic(path, b"old")
    with pytest.raises(RuntimeError), atomic(path) as file:
        file.write(b"new, but only ha")
        raise RuntimeError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["f"]


def test_labels_csv_quotes_and_formats():
    text = runs.labels_csv(["a,b", 'say "x"'], np.array([1, 0]), np.array([0.25, 1 / 3])).decode()
    assert text == 'id,label,confidence\n"a,b",1,0.25\n"say ""x""",0,0.333333\n'
    assert runs.labels_csv(range(1), [2]).decode() == "id,label,confidence\n0,2,\n"


def test_one_writer_at_a_time(tmp_path):
    with runs.writing(tmp_path / "r", {"method": "m"}) as path:
        assert runs.peek(path)["status"] == "running"
        with pytest.raises(runs.RunError, match="another process"), runs.writing(path, {}):
            pass
    with runs.writing(tmp_path / "r", {"method": "m"}):
        pass  # the lock went with its holder


def test_withdraw_leaves_nothing_or_a_run_that_can_go_on(tmp_path):
    with runs.writing(tmp_path / "a", {}) as path:
        runs.withdraw(path)
    assert not path.exists()
    with runs.writing(tmp_path / "b", {}) as path:
        (path / "checkpoint").mkdir()
        (path / "checkpoint/checkpoint.safetensors").write_bytes(b"x")
        runs.withdraw(path)
    assert runs.peek(path)["status"] == "running"


def test_a_folder_of_a_killed_start_is_free_again(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.toml.tmp-123").write_bytes(b"half")
    assert runs.check_target(tmp_path) is None
    (tmp_path / "labels.csv").touch()
    with pytest.raises(runs.RunError, match="not a coterie run"):
        runs.check_target(tmp_path)


def test_a_newer_format_is_refused(tmp_path):
    (tmp_path / "run.toml").write_text('coterie_run = 99\nstatus = "done"\n')
    with pytest.raises(runs.RunError, match="99"):
        runs.read(tmp_path)


def test_a_run_reads_back(tmp_path, blobs):
    from coterie import KMeans
    from coterie.data import load

    X, _ = blobs
    model, dataset = KMeans(3, random_state=0, n_init=1).fit(X), load(X)
    with runs.writing(tmp_path / "r", {"method": "kmeans"}) as path:
        runs.finish(path, model, dataset, {"method": "kmeans"})
    run = runs.read(path)
    assert (run.labels == model.labels_).all() and run.ids[:2] == ["0", "1"]
    np.testing.assert_array_equal(run.embedding, model.transform(X))
    np.testing.assert_allclose(run.confidence, model.predict_proba(X).max(1), rtol=1e-5)
    assert run.history == model.history_


def test_an_embedding_in_pieces_is_the_embedding(tmp_path, blobs, monkeypatch):
    from coterie import KMeans
    from coterie.data import load

    X, _ = blobs
    model = KMeans(3, random_state=0, n_init=1).fit(X)
    monkeypatch.setattr(runs, "CHUNK", 50)
    with runs.writing(tmp_path / "r", {}) as path:
        runs.finish(path, model, load(X), {})
    run = runs.read(path)
    np.testing.assert_allclose(run.embedding, model.transform(X), rtol=1e-6)
    np.testing.assert_allclose(run.confidence, model.predict_proba(X).max(1), rtol=1e-4)
