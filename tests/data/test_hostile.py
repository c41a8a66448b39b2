"""Damaged, hostile and absurd inputs: each ends in an error with a name, none in a crash."""

import gzip
import io
import json
import os
import struct
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

from coterie import KMeans
from coterie.data import DataError, Recipe, limits, load
from coterie.train.batch import TrainingError


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def stored(array) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def sparse_npz(indices, indptr, kind="csr", shape=(3, 4)) -> bytes:
    parts = {"format": kind.encode(), "shape": shape, "data": np.ones(3, np.float32)}
    parts |= {"indices": np.array(indices, np.int32), "indptr": np.array(indptr, np.int32)}
    return packed({f"{name}.npy": stored(np.array(value)) for name, value in parts.items()})


def png(width: int, height: int) -> bytes:
    """A valid white picture of bits, of a few bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    rows = zlib.compress(bytes(height * (1 + (width + 7) // 8)), 9)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


DEEP = "[" * 100_000
DIGITS = "9" * 5000
LINE = b'{"text": "some words here"}\n'
GZIP = gzip.compress(b"a,b\n" + b"1,2\n" * 3000)
BAD = {
    "indices.npz": sparse_npz([0, 1, 99], [0, 1, 2, 3]),
    "negative.npz": sparse_npz([0, -7, 1], [0, 1, 2, 3]),
    "pointers.npz": sparse_npz([0, 1, 2], [0, 900, 2, 3]),
    "columns.npz": sparse_npz([0, 1, 99], [0, 1, 2, 3, 3], "csc"),
    "wide.npz": sparse_npz([0, 1, 2], [0, 1, 2, 3, 3], "csc", (10**13, 4)),
    "kind.npz": sparse_npz([0, 1, 2], [0, 1, 2, 3], "zzz"),
    "header.npz": packed(
        {"data.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10")}
    ),
    "rows.npz": packed(
        {"data.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 9)}")}
    ),
    "cut.npz": packed({"data.npy": stored(np.ones((9, 9)))})[:-40],
    "rows.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 9)}", b"x"),
    "token.npy": npy("{'descr': '<f4', 'shape': (3, '''"),
    "nested.npy": npy("(" * 100),
    "kind.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': 'many'}"),
    "minus.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 2)}", b"x" * 24),
    "magic.npy": b"\x93NUMPY\x09\x09",
    "flip.csv.gz": GZIP[:20] + bytes([GZIP[20] ^ 255]) + GZIP[21:],
    "cut.csv.gz": GZIP[:-9],
    "none.csv.gz": b"no gzip at all",
    "flip.jsonl.gz": gzip.compress(LINE * 999)[:30] + b"\xff" * 30,
    "flip.txt.gz": gzip.compress(LINE * 999)[:30] + b"\xff" * 30,
    "deep.jsonl": DEEP.encode(),
    "digits.jsonl": f'{{"text": {DIGITS}}}'.encode(),
    "digits.csv": f"a\n{DIGITS}\n2\n".encode(),
    "foot.parquet": b"PAR1" + b"\xff" * 99 + b"PAR1",
    "eps.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "head.png": b"\x89PNG\r\n\x1a\n" + b"\x00" * 40,
    "head.tiff": b"II*\x00" + b"\xff" * 40,
    "head.webp": b"RIFF\xff\xff\xff\xffWEBPVP8 " + b"\xff" * 40,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named(name, tmp_path):
    (tmp_path / name).write_bytes(BAD[name])
    with pytest.raises(DataError, match=name.split(".")[0]):
        load(tmp_path / name)


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.jsonl", "x.png", "x.parquet", "x.npz"])
def test_pipes_and_devices_do_not_hang(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="not a regular file"):
        load(tmp_path / name)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "x.png")
    with pytest.raises(DataError, match="pipe or a device"):
        load(tmp_path / "folder")
    (tmp_path / f"zero-{name}").symlink_to("/dev/zero")
    with pytest.raises(DataError, match="pipe or a device"):
        load(tmp_path / f"zero-{name}")


def test_a_pipe_in_the_place_of_a_model_or_checkpoint(tmp_path):
    from coterie import load as load_model
    from coterie.storage import runs
    from coterie.storage.tensors import StateError, unpack

    for name in ("run.toml", "model.json", "model.safetensors", "recipe.json", "c.safetensors"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(runs.RunError):
        runs.read(tmp_path)
    with pytest.raises(StateError):
        load_model(tmp_path)
    with pytest.raises(StateError):
        unpack(tmp_path / "c.safetensors")
    with pytest.raises(DataError):
        Recipe.load(tmp_path)


@pytest.mark.parametrize(
    "name, content, rows",
    [
        ("x.npz", lambda: packed({"data.npy": stored(np.zeros((1000, 2000)))}), 1000),
        ("x.csv.gz", lambda: gzip.compress(b"a,b\n" + b"0,1\n" * 2_000_000), 2_000_000),
        ("x.png", lambda: png(9000, 9000), 1),
    ],
)
def test_bombs_are_told_with_numbers_and_can_be_allowed(name, content, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ROOM", 1 << 20)
    path = tmp_path / name
    path.write_bytes(content())
    size = path.stat().st_size
    with pytest.raises(DataError, match=rf"{size:,} bytes.*COTERIE_MAX_UNPACKED="):
        load(path)
    monkeypatch.setenv("COTERIE_MAX_UNPACKED", "4e8")
    assert len(load(path, notice=print)) == rows
    monkeypatch.setenv("COTERIE_MAX_UNPACKED", "plenty")
    with pytest.raises(DataError, match="'plenty' is not a number of bytes"):
        load(path)


def test_a_parquet_bomb(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = pa.table({"a": np.zeros(40_000_000, np.float32)})
    write_table(table, tmp_path / "x.parquet", compression="zstd")
    with pytest.raises(DataError, match="COTERIE_MAX_UNPACKED"):
        load(tmp_path / "x.parquet")


def test_a_damaged_unpacked_parquet_file_is_told(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("coterie.data.parquet.UNPACKED_ABOVE", 100)
    pd.DataFrame({"a": np.arange(99.0), "b": np.arange(99.0)}).to_parquet(tmp_path / "x.parquet")
    rows = np.array(load(tmp_path / "x.parquet", notice=print).X)
    (path,) = (tmp_path / "cache").glob("*.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    with pytest.raises(DataError, match=r"parquet-.* is damaged.*delete it"):
        load(tmp_path / "x.parquet")
    path.unlink()
    assert np.array_equal(load(tmp_path / "x.parquet", notice=print).X, rows)


def test_many_columns_take_time_in_proportion(tmp_path):
    """No list of names is searched for each name of it: that shows in the number of comparisons."""
    compared = [0]

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared[0] += 1
            return str.__eq__(self, other)

    from coterie.data.csvfile import CsvTable
    from coterie.data.options import Options
    from coterie.data.tables import from_table

    wide = 3000
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"c{i}" for i in range(wide)) + "\n" + ",".join(["1.5"] * wide) + "\n")
    ask = Options(notice=print)
    table = CsvTable(path, ask)
    table.names = [Name(n) for n in table.names]
    table.places = dict(zip(table.names, table.spots, strict=True))
    assert from_table(table, ask, "x", "csv").X.shape == (1, wide)
    assert compared[0] < 10 * wide


def test_malformed_sparse_matrices_in_memory(blobs):
    X = sp.csr_matrix(np.eye(9, dtype=np.float32))
    X.indices[3] = 10**6
    for use in (load, KMeans(2).fit):
        with pytest.raises(DataError, match="damaged sparse matrix"):
            use(X)
    model = KMeans(2, random_state=0).fit(sp.csr_matrix(np.eye(9, dtype=np.float32)))
    with pytest.raises(DataError, match="damaged sparse matrix"):
        model.predict(X)


@pytest.mark.parametrize("size", [8e37, 1e25, -3e38])
@pytest.mark.parametrize("scale", ["auto", "none"])
def test_numbers_whose_squares_overflow_are_refused(size, scale, blobs):
    with pytest.raises(ValueError, match=r"beyond 1\.8e19"):
        KMeans(3, scale=scale).fit(blobs[0] / 20 * np.float32(size))
    model = KMeans(3, scale=scale, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match=r"beyond 1\.8e19"):
        model.predict(blobs[0] / 20 * np.float32(size))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_result_that_is_not_a_number_is_refused(value, blobs, monkeypatch):
    fit = KMeans._fit

    def spoil(self, rows):
        fit(self, rows)
        self.head_.centers.data[0, 0] = value

    monkeypatch.setattr(KMeans, "_fit", spoil)
    with pytest.raises(TrainingError, match="centers of the fitted KMeans holds NaN or infinity"):
        KMeans(3, random_state=0).fit(blobs[0])


@pytest.mark.parametrize("ids, bad", [("=cmd|' /C calc'!A0", 1), ("@x", 1), ("+a", 1), ("-2+3", 1)])
def test_ids_that_a_spreadsheet_would_run_are_told(ids, bad, tmp_path):
    said = []
    (tmp_path / "t.csv").write_text(f'name,x\n"{ids}",1\n-5,2\n+1.5e3,2\n')
    load(tmp_path / "t.csv", id_column="name", notice=said.append)
    assert any(f"{bad} ids begin as a formula does" in text for text in said)
    said.clear()
    (tmp_path / "t.csv").write_text("name,x\na=b,1\n-5,2\n+1.5e3,2\n")
    load(tmp_path / "t.csv", id_column="name", notice=said.append)
    assert said == []


def test_embeddings_of_huge_integers(tmp_path):
    line = json.dumps({"embedding": [1, 10**400]})
    (tmp_path / "e.jsonl").write_text(f"{line}\n{line}\n")
    with pytest.raises(DataError, match="embedding"):
        load(tmp_path / "e.jsonl", embeddings=True)


def test_data_frames_of_huge_integers():
    import pandas as pd

    with pytest.raises(DataError, match="column 'a'"):
        load(pd.DataFrame({"a": pd.Series([1, 10**400], dtype=object), "b": [1, 2]}))


def test_a_recipe_that_was_changed_is_told(tmp_path, blobs):
    load(blobs[0]).recipe.save(tmp_path)
    path = tmp_path / "recipe.json"
    whole = path.read_text()
    for old, new in (('"vector"', '"table"'), ('"named": true', '"named": false'), ("6", "7")):
        assert old in whole
        path.write_text(whole.replace(old, new, 1))
        with pytest.raises(DataError, match=r"recipe.json is damaged"):
            Recipe.load(tmp_path)
    path.write_text(json.dumps({k: v for k, v in json.loads(whole).items() if k != "seal"}))
    assert Recipe.load(tmp_path).shape == [6]  # of the first version, which had no seal
    path.write_text(DEEP)
    with pytest.raises(DataError, match=r"recipe.json"):
        Recipe.load(tmp_path)
