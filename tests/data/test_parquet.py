"""Parquet files, here and in object storage; large ones are unpacked once, by all who ask."""

import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from coterie.cli.source import short_name
from coterie.data import DataError, load, parquet, unpacking


@pytest.fixture
def table():
    return np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)


@pytest.fixture
def parts(tmp_path, table, monkeypatch):
    """A folder of three parquet files that is taken for a large one."""
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(parquet, "UNPACKED_ABOVE", 0)
    monkeypatch.setattr(parquet, "BLOCK_ROWS", 4)
    frame = pd.DataFrame(table, columns=list("abc")).assign(kind=["x", "y", "z"] * 10)
    (tmp_path / "parts").mkdir()
    for i, start in enumerate((0, 7, 20)):
        stop = (7, 20, 30)[i]
        frame[start:stop].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    return tmp_path / "parts"


def test_a_large_parquet_folder_is_unpacked_once_into_a_memory_map(parts, table, tmp_path):
    with pytest.warns(UserWarning, match="unpacked once into"):
        data = load(parts, label_column="kind")
    assert isinstance(data.X, np.memmap) and data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X, table)
    assert data.labels.tolist() == [0, 1, 2] * 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is unpacked again
        again = load(parts, drop="kind", recipe=data.recipe)
    np.testing.assert_array_equal(again.X, table)
    one = pd.read_parquet(parts / "1.parquet")
    one["a"] += 1
    one.to_parquet(parts / "1.parquet")  # other data: unpacked anew
    with pytest.warns(UserWarning, match="unpacked once into"):
        changed = load(parts, label_column="kind")
    assert changed.X[7, 0] == table[7, 0] + 1 and data.X[7, 0] == table[7, 0]
    left = {path.suffix for path in (tmp_path / "cache").iterdir()}
    assert left == {".npy", ".digest", ".lock"}


def test_a_large_parquet_folder_keeps_exact_numbers_and_refuses_bad_ones(parts, tmp_path):
    for i in range(3):
        frame = pd.read_parquet(parts / f"{i}.parquet").assign(kind=1.7e9 + i)
        frame.to_parquet(parts / f"{i}.parquet")
    data = load(parts, notice=str)
    assert data.X.dtype == np.float64 and data.X[-1, 3] == 1.7e9 + 2
    frame.loc[frame.index[2], "b"] = np.nan
    frame.to_parquet(parts / "2.parquet")
    with pytest.raises(DataError, match=r"column 'b': 1 of 30 cells missing.*row 23"):
        load(parts)
    assert not list((tmp_path / "cache").glob("*.float*"))  # nothing is left of the attempt
    frame.rename(columns={"b": "other"}).to_parquet(parts / "2.parquet")
    with pytest.raises(DataError, match="only one of them has b, other"):
        load(parts)


def test_a_large_parquet_folder_needs_room_in_the_cache(parts, monkeypatch, tmp_path):
    full = SimpleNamespace(free=100)
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda path: full)
    with pytest.raises(DataError, match="Set COTERIE_CACHE to a folder with more room"):
        load(parts, drop="kind")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot be unpacked into.*COTERIE_CACHE"):
        load(parts, drop="kind")


@pytest.fixture
def written(parts, monkeypatch):
    """Which thread wrote which part; every row group is one."""
    monkeypatch.setattr(parquet, "PART_BYTES", 0)
    write, calls = unpacking.Unpacking._write, []

    def told(self, i, blocks):
        calls.append((threading.get_ident(), i))
        time.sleep(0.1)
        write(self, i, blocks)

    monkeypatch.setattr(unpacking.Unpacking, "_write", told)
    return calls


def test_processes_that_read_the_same_folder_unpack_it_together(parts, table, written):
    barrier = threading.Barrier(2)

    def read(_):
        barrier.wait()
        return load(parts, drop="kind", notice=str).X

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(read, range(2)))
    assert sorted(part for _, part in written) == [0, 1, 2]  # each once
    assert len({thread for thread, _ in written}) == 2
    for X in found:
        np.testing.assert_array_equal(X, table)


def test_a_process_begins_at_the_parts_of_its_rank(parts, table, written, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    np.testing.assert_array_equal(load(parts, drop="kind", notice=str).X, table)
    assert [part for _, part in written] == [1, 2, 0]


def test_unpacking_goes_on_where_it_was_interrupted(parts, table, written, monkeypatch):
    write = unpacking.Unpacking._write

    def killed(self, i, blocks):
        if i == 1:
            next(iter(blocks(i)))
            raise KeyboardInterrupt
        write(self, i, blocks)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(unpacking.Unpacking, "_write", killed)
        load(parts, drop="kind", notice=str)
    np.testing.assert_array_equal(load(parts, drop="kind", notice=str).X, table)
    assert [part for _, part in written] == [0, 1, 2]  # the first is not written again


def test_embeddings_of_a_large_folder_are_unpacked_too(parts, table, tmp_path):
    wide = np.arange(120, dtype=np.float32).reshape(30, 4)
    for i, rows in enumerate(np.split(wide, [7, 20])):
        frame = pd.DataFrame({"id": [f"r{v[0]:.0f}" for v in rows], "embedding": list(rows)})
        frame.to_parquet(parts / f"{i}.parquet")
    data = load(parts, id_column="id", embeddings=True, notice=str)
    assert isinstance(data.X, np.memmap) and data.kind == "vector" and data.ids[1] == "r4"
    np.testing.assert_array_equal(data.X, wide)
    np.testing.assert_array_equal(load(parts, recipe=data.recipe, notice=str).X, wide)
    pd.DataFrame({"id": ["x"], "embedding": [[1.0, 2.0]]}).to_parquet(parts / "2.parquet")
    with pytest.raises(DataError, match="lists of 4 and of 2 numbers"):
        load(parts, id_column="id", embeddings=True, notice=str)
    pd.DataFrame({"id": ["x"], "embedding": [[1, 2, 3, np.nan]]}).to_parquet(parts / "2.parquet")
    with pytest.raises(DataError, match=r"1 values are missing.*in row 20, column 3"):
        load(parts, id_column="id", embeddings=True, notice=str)


@pytest.mark.parametrize("large", [True, False])
def test_an_address_names_what_a_path_names(parts, table, monkeypatch, large):
    if not large:
        monkeypatch.setattr(parquet, "UNPACKED_ABOVE", 1 << 30)
    (parts / "more").mkdir()
    (parts / "2.parquet").rename(parts / "more" / "2.parquet")
    (parts / "_log").mkdir()
    pd.DataFrame({"other": [1]}).to_parquet(parts / "_log" / "1.parquet")
    for place in (parts.as_uri(), parts.as_uri() + "/", parts, str(parts)):
        data = load(place, label_column="kind", notice=str)
        np.testing.assert_array_equal(data.X, table)
        assert data.name == "parts" and data.recipe.source == "parquet"
    one = load((parts / "1.parquet").as_uri(), drop="kind", notice=str)
    np.testing.assert_array_equal(one.X, table[7:20])


@pytest.mark.parametrize(
    "address, problem",
    [
        ("file:///no/such/folder", "there is no file or folder file:///no/such/folder"),
        ("s3://key:secret@bucket/folder", "holds a password.*AWS_SECRET_ACCESS_KEY"),
        ("ftp://here/folder", r"ftp://here/folder cannot be opened.*s3://, gs://"),
    ],
)
def test_an_address_that_cannot_be_read(address, problem):
    with pytest.raises(DataError, match=problem) as error:
        load(address)
    assert "secret@" not in str(error.value)


def test_a_folder_without_parquet_files_has_an_address_too(tmp_path):
    with pytest.raises(DataError, match=r"there are no \.parquet files in file://"):
        load(tmp_path.as_uri())


def test_a_run_is_not_named_after_the_settings_in_an_address():
    assert short_name("s3://bucket/cells.parquet?region=eu-central-1") == "cells"
    assert short_name("what?.csv") == "what?"
