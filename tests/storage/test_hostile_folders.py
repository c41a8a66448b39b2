"""Folders that are not as we left them, and processes that come in between."""

import fcntl
import os
import threading
from contextlib import suppress

import numpy as np
import pytest

from coterie.cli import main
from coterie.storage import runs, swap
from coterie.storage.atomic import TEMP, atomic, scratch_folder, write_atomic
from coterie.storage.locks import locked


@pytest.fixture
def run(tmp_path, blobs):
    np.save(tmp_path / "x.npy", blobs[0])
    words = ["fit", tmp_path / "x.npy", "--method", "kmeans", "--clusters", "3", "--quiet"]
    words = [str(w) for w in [*words, "--no-baseline", "--out", tmp_path / "run"]]
    assert main(words) == 0
    return tmp_path / "run", words


def decided(folder, drop=(), **files):
    """A replacement that was decided and not yet moved in."""
    ready = folder / swap.READY
    (ready / swap.DROPPED).mkdir(parents=True)
    for name in drop:
        (ready / swap.DROPPED / name).touch()
    for name, text in files.items():
        (ready / name).write_text(text)
    return ready


def test_of_two_that_move_files_in_the_slower_harms_nothing(tmp_path, monkeypatch):
    """It has listed what is to be dropped; meanwhile the other is done and writes that file."""
    decided(tmp_path, drop=["report"], labels="new")
    remove, others = swap.remove, []

    def slow(path):
        if not others:
            others.append(threading.Thread(target=meanwhile))
            others[0].start()
            others[0].join(timeout=1)  # it has to wait for us
        remove(path)

    def meanwhile():
        swap.complete(tmp_path)
        (tmp_path / "report").write_text("of the new run")

    monkeypatch.setattr(swap, "remove", slow)
    swap.complete(tmp_path)
    others[0].join()
    assert (tmp_path / "report").read_text() == "of the new run"
    assert (tmp_path / "labels").read_text() == "new"


def test_a_folder_in_the_place_of_a_file_does_not_stop_a_decided_swap(run):
    path, words = run
    (path / "labels.csv").unlink()
    (path / "labels.csv").mkdir()
    assert main([*words, "--overwrite"]) == 0
    runs.read(path).verify()


def test_a_lock_that_is_a_link_or_a_pipe(tmp_path, run):
    path, words = run
    (tmp_path / "dear.txt").write_text("mine")
    (path / ".lock").unlink()
    (path / ".lock").symlink_to(tmp_path / "dear.txt")
    assert main([*words, "--overwrite"]) == 2
    assert (tmp_path / "dear.txt").read_text() == "mine"
    (path / ".lock").unlink()
    os.mkfifo(path / ".lock")
    with locked(path):  # does not wait for somebody to read the pipe
        pass


def test_devices_are_not_replaced_by_files(tmp_path, run, capsys):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_atomic(tmp_path / "pipe", b"x")
    path, _ = run
    words = ["predict", str(path), str(tmp_path / "x.npy"), "--overwrite", "--out"]
    assert main([*words, str(tmp_path / "pipe")]) == 2
    assert (tmp_path / "pipe").is_fifo() and "pipe or a device" in capsys.readouterr().err
    assert main([*words, str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_temporary_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def swept_first(file, how):
        if not calls:
            calls.append(how)
            for temp in tmp_path.glob(f"{TEMP}*"):
                temp.unlink()
        return flock(file, how)

    monkeypatch.setattr(fcntl, "flock", swept_first)
    write_atomic(tmp_path / "f", b"whole")
    assert calls and (tmp_path / "f").read_bytes() == b"whole"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_scratch_folders_of_killed_processes_are_swept_and_those_in_use_are_not(tmp_path):
    left = tmp_path / f"{TEMP}zip-dead"
    left.mkdir()
    (left / "picture.png").write_bytes(b"x")
    with scratch_folder("zip", tmp_path) as mine:
        assert not left.exists()
        (mine / "f").write_bytes(b"x")
        with scratch_folder("zip", tmp_path) as other:
            assert mine.is_dir() and other != mine
    assert not list(tmp_path.iterdir())


def test_renames_that_fail_as_on_a_network_leave_one_of_the_two_runs(run, monkeypatch):
    path, words = run
    words[words.index("3")] = "2"
    replace, rename, count, due = os.replace, os.rename, [0], [0]

    def stale(function):
        def call(*args, **kwargs):
            count[0] += 1
            if count[0] == due[0]:
                raise OSError(116, "Stale file handle")
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(os, "replace", stale(replace))
    monkeypatch.setattr(os, "rename", stale(rename))
    sizes = []
    for moment in range(1, 60):
        count[0], due[0] = 0, moment
        code = main([*words, "--overwrite"])
        if count[0] < moment:
            break
        due[0] = 0
        assert code == 2, moment
        run = runs.read(path)
        run.verify()
        sizes.append(len(set(run.labels)))
    assert sizes == sorted(sizes, reverse=True) and set(sizes) == {2, 3}


def test_a_run_through_a_link(run, tmp_path):
    path, words = run
    link = tmp_path / "link"
    link.symlink_to(path)
    words[words.index(str(path))] = str(link)
    assert main(words) == 2
    assert main([*words, "--overwrite"]) == 0
    assert link.is_symlink() and len(runs.read(link).labels) == 120
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    words[words.index(str(link))] = str(tmp_path / "gone")
    with suppress(OSError):
        assert main(words) in (0, 2)


def test_pipes_and_devices_as_settings(run, tmp_path, capsys):
    _, words = run
    os.mkfifo(tmp_path / "pipe")
    for flag in ("--config", "--names"):
        for place in (tmp_path / "pipe", "/dev/zero"):
            again = [*words[:-1], str(tmp_path / "other"), flag, str(place)]
            assert main(again) == 2
            assert "not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["--threads", "100000"],
        ["--threads", "9" * 30],
        ["--hidden", "9" * 30],
        ["--devices", "9" * 9],
    ],
)
def test_numbers_that_are_too_large_are_named(flags, run, tmp_path, capsys):
    _, words = run
    words[words.index("kmeans")] = "dec"
    assert main([*words[:-1], str(tmp_path / "other"), *flags]) == 2
    said = capsys.readouterr().err
    assert "at most" in said or "over 1024" in said
    assert not (tmp_path / "other").exists()


def test_no_memory_is_told_as_such(run, tmp_path, capsys, monkeypatch):
    from coterie import KMeans

    def full(self, rows):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes")

    monkeypatch.setattr(KMeans, "_fit", full)
    _, words = run
    assert main([*words[:-1], str(tmp_path / "other")]) == 2
    assert "not enough memory" in capsys.readouterr().err


def test_atomic_writes_into_a_folder_are_refused_by_name(tmp_path):
    with pytest.raises(OSError), atomic(tmp_path) as file:
        file.write(b"x")
    assert tmp_path.is_dir()


def test_a_commit_that_was_killed_before_it_decided_is_made_again(tmp_path):
    (tmp_path / "report").write_text("old")
    new = swap.begin(tmp_path)
    (new / "labels").write_text("new")
    (new / swap.DROPPED).mkdir()  # here the first one was killed
    (new / swap.DROPPED / "labels").touch()
    swap.commit(new, drop=["report", "labels"])
    assert (tmp_path / "labels").read_text() == "new" and not (tmp_path / "report").exists()
