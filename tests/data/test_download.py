"""Fetching a data set, from a server on this machine."""

import bz2
import gzip
import hashlib
import io
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from coterie.cli import main
from coterie.data import DataError, fetch, load
from coterie.data.sets import download, named, stored


@contextmanager
def serving(files, cut=None):
    """A server of `files` by name; `cut` breaks the connection after so many bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:cut])

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def pen_lines(seed, rows):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, 101, (rows, 16)), rng.integers(0, 10, rows)])
    lines = ("".join(f"{v:3d}," for v in row[:-1]) + f" {row[-1]}\n" for row in values.tolist())
    return values, "".join(lines).encode()


TRAIN, TRAIN_FILE = pen_lines(0, 7494)
TEST, TEST_FILE = pen_lines(1, 3498)
PEN = {"pendigits.tra": TRAIN_FILE, "pendigits.tes": TEST_FILE}


def offer(monkeypatch, name, url, files):
    """Let `name` come from `url`, with the sums of `files`."""
    sums = tuple((file, hashlib.sha256(content).hexdigest()) for file, content in files.items())
    source = replace(download.SOURCES[name], url=url, files=sums)
    monkeypatch.setitem(download.SOURCES, name, source)


def test_a_fetched_set_is_read_by_its_name(tmp_path, monkeypatch):
    told = []
    with serving(PEN) as url:
        offer(monkeypatch, "pendigits", url, PEN)
        folder = fetch("pendigits", tmp_path / "new", lambda *step: told.append(step))
    assert folder == tmp_path / "new" / "pendigits"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["pendigits"]
    assert told[-1] == ("pendigits.tes", len(TEST_FILE), len(TEST_FILE))
    data = load("pendigits", data_dir=tmp_path / "new")
    rows = np.concatenate([TRAIN, TEST])
    np.testing.assert_array_equal(data.X, rows[:, :-1].astype(np.float32) / np.float32(100))
    np.testing.assert_array_equal(data.labels, rows[:, -1])
    assert fetch("pendigits", tmp_path / "new") == folder  # the server is gone: nothing is asked


def test_other_bytes_are_refused_and_nothing_is_kept(tmp_path, monkeypatch):
    with serving({**PEN, "pendigits.tes": TEST_FILE[:-2] + b"x\n"}) as url:
        offer(monkeypatch, "pendigits", url, PEN)
        wanted = hashlib.sha256(TEST_FILE).hexdigest()
        with pytest.raises(DataError, match=rf"SHA-256 \w+, {wanted} was expected"):
            fetch("pendigits", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "files, cut, said", [(PEN, 1000, "after 1000 of 502098 bytes"), ({}, None, "Not Found")]
)
def test_a_broken_download_says_what_to_do_and_leaves_nothing(
    tmp_path, monkeypatch, files, cut, said
):
    with serving(files, cut) as url:
        offer(monkeypatch, "pendigits", url, PEN)
        with pytest.raises(DataError, match=rf"{said}.*pendigits/pendigits.npz .* into"):
            fetch("pendigits", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch, capsys):
    with serving({}) as url:
        pass  # a port that nobody listens on any more
    offer(monkeypatch, "pendigits", url, PEN)
    assert main(["datasets", "--fetch", "pendigits", "--data-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "Connection refused" in said and "try again with a network, or put pendigits/" in said
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_download_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(file, done, total):
        raise KeyboardInterrupt

    with serving(PEN) as url:
        offer(monkeypatch, "pendigits", url, PEN)
        with pytest.raises(KeyboardInterrupt):
            fetch("pendigits", tmp_path, interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_where_it_put_the_set(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stored, "user_folder", lambda: tmp_path / "user")
    with serving(PEN) as url:
        offer(monkeypatch, "pendigits", url, PEN)
        assert main(["datasets", "--fetch", "pendigit,digits"]) == 0
    out, err = capsys.readouterr()
    assert out == f"pendigits is in {tmp_path / 'user' / 'pendigits'}\ndigits is built in\n"
    assert "pendigits.tra" in err
    assert main(["datasets", "--fetch", "pendigits"]) == 0
    assert "nothing to fetch" in capsys.readouterr().out
    assert main(["datasets", "--fetch", "coil20"]) == 2
    assert "cannot be fetched (only mnist" in capsys.readouterr().err
    assert main(["datasets", "--fetch", "pendigits,nothing"]) == 2


def test_usps_lines_become_images(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(-1000, 1001, (50, 256)) / 1000
    lines = [
        f"{row % 10 + 1} " + " ".join(f"{i}:{v:g}" for i, v in enumerate(values, 1))
        for row, values in enumerate(X.tolist())
    ]

    parts = {"usps.bz2": range(7291), "usps.t.bz2": range(7291, 9298)}
    files = {
        name: bz2.compress("".join(f"{lines[row % 50]}\n" for row in rows).encode(), 1)
        for name, rows in parts.items()
    }
    with serving(files) as url:
        offer(monkeypatch, "usps", url, files)
        fetch("usps", tmp_path)
    data = load("usps", data_dir=tmp_path)
    rows = np.arange(9298)
    np.testing.assert_allclose(data.X.reshape(-1, 256), (X[rows % 50] + 1) / 2, atol=1e-6)
    np.testing.assert_array_equal(data.labels, rows % 10)


def test_news_are_put_in_order(tmp_path, monkeypatch):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name in ("test/b/7", "train/b/10", "train/a/3", "train/b/9", "test/a/1"):
            content = f"{name} café".encode("latin-1")
            info = tarfile.TarInfo(f"20news-bydate-{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    files = {"5975967": held.getvalue()}
    with serving(files) as url:
        offer(monkeypatch, "20newsgroups", url, files)
        fetch("20newsgroups", tmp_path)
    raw = stored.read("20newsgroups", tmp_path)
    order = ("train/a/3", "train/b/9", "train/b/10", "test/a/1", "test/b/7")
    assert raw.values == [f"{name} café" for name in order]
    assert raw.labels.tolist() == [0, 1, 1, 0, 1] and raw.names == ["a", "b"]


def test_files_that_need_no_change_are_stored_as_they_come(tmp_path, monkeypatch):
    files = {name: gzip.compress(name.encode()) for name, _ in download.SOURCES["mnist"].files}
    with serving(files) as url:
        offer(monkeypatch, "mnist", url, files)
        folder = fetch("mnist", tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_every_source_is_whole():
    for name, source in download.SOURCES.items():
        assert source.url.startswith("https://") and source.url.endswith("/")
        assert all(len(bytes.fromhex(digest)) == 32 for _, digest in source.files)
        wanted = len(stored.STORED[name].files)
        assert name in named.CATALOGUE and wanted == (1 if source.convert else len(source.files))


def uci_lines(raw, line):
    rows = raw.values.reshape(len(raw.values), -1).tolist()
    return "".join(line(row, label) for row, label in zip(rows, raw.labels.tolist())).encode()


@pytest.mark.data
@pytest.mark.parametrize(
    "name, border, line",
    [
        ("pendigits", 7494, lambda row, y: "".join(f"{v:3d}," for v in row) + f" {y}\n"),
        ("optdigits", 3823, lambda row, y: ",".join(map(str, row)) + f",{y}\n"),
    ],
)
def test_the_known_sums_are_those_of_the_real_sets(name, border, line, real_sets):
    """Written out as UCI writes them, the stored rows are the published files to the byte."""
    lines = uci_lines(stored.read(name, real_sets(name)), line).splitlines(keepends=True)
    parts = [b"".join(lines[:border]), b"".join(lines[border:])]
    found = [hashlib.sha256(part).hexdigest() for part in parts]
    assert found == [digest for _, digest in download.SOURCES[name].files]
