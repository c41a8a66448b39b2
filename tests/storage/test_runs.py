"""Run folders, atomic files and TOML."""

import os
import tomllib
from contextlib import nullcontext as nothing
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.storage import runs
from coterie.storage.atomic import TEMP, atomic, sweep, to_toml, write_atomic

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
    with runs.writing(tmp_path / "r", {"method": "m"}, resume=True):
        pass  # the lock went with its holder


class Wrong(ValueError):
    """What goes wrong inside of a fit."""


def failing(path, error, *, checkpoint=False, **flags):
    """A fit that raises `error` when it has written some files."""
    with pytest.raises(type(error)), runs.writing(path, {}, **flags) as folder:
        (folder / "labels.csv").write_text("half")
        if checkpoint:
            (folder / "checkpoint").mkdir()
            (folder / "checkpoint/checkpoint.safetensors").write_bytes(b"x")
        raise error


def test_an_error_leaves_nothing_or_a_run_that_can_go_on(tmp_path):
    failing(tmp_path / "a", Wrong())
    assert not (tmp_path / "a").exists()
    failing(tmp_path / "b", Wrong(), checkpoint=True)
    assert runs.peek(tmp_path / "b")["status"] == "running"
    failing(tmp_path / "c", Wrong(), checkpoint=True, hopeless=Wrong)
    assert not (tmp_path / "c").exists()


def test_an_error_after_a_resume_removes_nothing_that_was_there(tmp_path):
    with pytest.raises(KeyboardInterrupt), runs.writing(tmp_path / "r", {}) as path:
        (path / "checkpoint").mkdir()
        (path / "checkpoint/checkpoint.safetensors").write_bytes(b"dear")
        raise KeyboardInterrupt
    for flags in ({}, {"hopeless": Wrong}):
        failing(tmp_path / "r", Wrong(), resume=True, **flags)
        assert (path / "checkpoint/checkpoint.safetensors").read_bytes() == b"dear"
        assert runs.peek(path)["status"] == "running"


@pytest.fixture
def finished(tmp_path, blobs):
    """A finished run, and a function that fits it again with another number of clusters."""
    from coterie import KMeans
    from coterie.data import load

    X, _ = blobs

    def fit(path, k, **flags):
        model = KMeans(k, random_state=0, n_init=1).fit(X)
        with runs.writing(path, {"method": "kmeans"}, **flags) as folder:
            runs.finish(folder, model, load(X), {"method": "kmeans"})

    fit(tmp_path / "r", 3)
    return tmp_path / "r", fit


def content(folder) -> dict:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_failed_overwrite_leaves_the_old_run_as_it_was(finished, monkeypatch):
    """The disk is full at each single write and rename in turn."""
    path, fit = finished
    before, calls, full_at = content(path), [0], [0]

    def full_when_due(function):
        def call(*args, **kwargs):
            calls[0] += 1
            if calls[0] == full_at[0]:
                raise OSError(28, "No space left on device")
            return function(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "rename", "mkdir"):
        monkeypatch.setattr(f"os.{name}", full_when_due(getattr(os, name)))
    committed = 0
    for moment in range(1, 200):
        calls[0], full_at[0] = 0, moment
        with suppress(OSError):
            fit(path, 2, overwrite=True)
        if calls[0] < moment:
            break
        else:
            full_at[0] = 0
            labels = set(runs.read(path).labels)  # moves in what was decided
            runs.read(path).verify()
            if labels == {0, 1}:
                committed += 1
                fit(path, 3, overwrite=True)
            else:
                assert content(path).keys() == before.keys(), moment
                assert content(path)["labels.csv"] == before["labels.csv"], moment
    assert moment > 20 and committed > 3 and set(runs.read(path).labels) == {0, 1}


def test_a_swap_that_was_killed_at_any_step_is_finished_by_the_next_reader(finished, monkeypatch):
    path, fit = finished

    class Killed(BaseException):
        pass

    replace, count, due = os.replace, [0], [0]

    def kill(*args):
        count[0] += 1
        if count[0] == due[0]:
            raise Killed
        return replace(*args)

    monkeypatch.setattr("os.replace", kill)
    outcomes = set()
    for moment in range(1, 40):
        count[0], due[0] = 0, moment
        try:
            fit(path, 2, overwrite=True)
            break
        except Killed:
            due[0] = 0
            with pytest.warns() if (path / ".coterie-new/run.toml").exists() else nothing():
                run = runs.read(path)
            run.verify()
            outcomes.add(len(set(run.labels)))
            fit(path, 3, overwrite=True)
    assert moment > 10 and outcomes == {2, 3}


def test_what_the_old_run_had_and_the_new_one_has_not_goes_with_it(finished):
    path, fit = finished
    (path / "report.html").write_text("of the old run")
    (path / "thesis.txt").write_text("mine")
    fit(path, 2, overwrite=True)
    assert not (path / "report.html").exists() and (path / "thesis.txt").read_text() == "mine"
    assert not any(p.name.startswith(".coterie") for p in path.iterdir())


def test_the_target_is_checked_again_under_the_lock(finished, tmp_path):
    """A quick fit ends while a slow one still reads its data."""
    _, fit = finished
    path = tmp_path / "shared"
    assert runs.check_target(path) is None  # the slow one looks
    fit(path, 2)  # the quick one is done
    before = content(path)
    with pytest.raises(runs.RunError, match="holds a run already; use --overwrite"):
        fit(path, 3)
    with pytest.raises(runs.RunError, match="finished by another process"):
        fit(path, 3, resume=True)
    assert content(path) == before


def test_a_run_that_became_another_is_not_resumed(tmp_path):
    with pytest.raises(KeyboardInterrupt), runs.writing(tmp_path / "r", {"seed": 1}):
        raise KeyboardInterrupt
    with (
        pytest.raises(runs.RunError, match="another run by now: seed differs"),
        runs.writing(tmp_path / "r", {"seed": 2}, resume=True),
    ):
        pass


def test_the_files_of_killed_writers_are_swept_and_those_at_work_are_not(tmp_path):
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / f"{TEMP}dead").write_bytes(b"half")
    with atomic(folder / "at-work") as file:
        file.write(b"x")
        sweep(folder)
        assert len(list(folder.iterdir())) == 1  # its temporary file
    with runs.writing(folder / "run", {}) as path:
        (path / f"{TEMP}dead").write_bytes(b"half")
        (path / "checkpoint").mkdir()
        (path / "checkpoint" / f"{TEMP}dead").write_bytes(b"half")
    with runs.writing(folder / "run", {}, resume=True):
        assert {p.name for p in path.rglob("*")} == {".lock", "run.toml", "checkpoint"}


def test_two_threads_may_write_the_same_file(tmp_path):
    with atomic(tmp_path / "f") as one, atomic(tmp_path / "f") as two:
        one.write(b"1" * 9)
        two.write(b"2" * 9)
    assert (tmp_path / "f").read_bytes() in (b"1" * 9, b"2" * 9)


@pytest.mark.parametrize(
    "name", ["labels.csv", "embedding.npy", "history.jsonl", "model.json", "recipe.json"]
)
def test_every_file_of_a_run_is_sealed(finished, name):
    path, _ = finished
    whole = (path / name).read_bytes()
    run = runs.read(path)
    run.verify()
    for at in range(0, len(whole), max(1, len(whole) // 7)):
        (path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(runs.RunError, match=name):
            run.verify()
    (path / name).unlink()
    with pytest.raises(runs.RunError, match=f"{name} is missing"):
        run.verify(name)


def test_no_single_bit_of_run_toml_changes_unseen(finished):
    path, _ = finished
    whole = (path / "run.toml").read_bytes()
    meta = runs.peek(path)
    for at in range(len(whole)):
        (path / "run.toml").write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        )
        with suppress(runs.RunError):
            assert runs.peek(path) is None or runs.peek(path) == meta, at


def test_a_run_of_the_first_format_has_no_digests_and_loads(finished):
    path, _ = finished
    meta = runs.peek(path)
    meta.pop("files")
    (path / "run.toml").write_text(to_toml(meta | {"coterie_run": 1}))
    run = runs.read(path)
    run.verify()
    assert set(run.labels) == {0, 1, 2}


def test_a_folder_of_a_killed_start_is_free_again(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / f"{TEMP}123").write_bytes(b"half")
    (tmp_path / ".coterie-new").mkdir()
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
    monkeypatch.setattr("coterie.train.rows.ENCODE_ROWS", 50)
    with runs.writing(tmp_path / "r", {}) as path:
        runs.finish(path, model, load(X), {})
    run = runs.read(path)
    np.testing.assert_allclose(run.embedding, model.transform(X), rtol=1e-6)
    np.testing.assert_allclose(run.confidence, model.predict_proba(X).max(1), rtol=1e-4)
