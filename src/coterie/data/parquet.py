"""Parquet: a file or a folder of files, read column by column; large ones through a memory map.

Numbers of more than `UNPACKED_ABOVE` bytes are written once, row by row, to a .npy file in the
cache folder and read from there: a batch then costs its own rows only, memory does not grow with
the data, and all processes of a fit share one file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import numpy as np

from coterie.storage.atomic import sync_folder, write_atomic
from coterie.storage.seals import digest_of

from .chunks import release
from .dataset import Dataset
from .errors import DataError, listed
from .frames import ArrowTable, from_columns
from .limits import check_regular, check_unpacked
from .options import TABLE, Options
from .tables import refuse

UNPACKED_ABOVE = 1 << 30
BLOCK_ROWS = 1 << 16


def read_parquet(path: Path, ask: Options) -> Dataset:
    """Read a parquet file, or all parquet files of a folder in the order of their names."""
    ask.only("a table", *TABLE)
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(
            "reading parquet needs pyarrow: pip install pyarrow (or coterie[parquet])"
        ) from None
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    try:
        return from_columns(ParquetTable(files, path.stem, ask), ask, "parquet")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {path} as parquet: {error}") from None


def cache_folder() -> Path:
    """Where unpacked files are kept: $COTERIE_CACHE, else the user's cache folder."""
    if os.environ.get("COTERIE_CACHE"):
        return Path(os.environ["COTERIE_CACHE"]).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coterie"


def _check_seal(path: Path) -> None:
    """Refuse an unpacked file that is not what was written; the first version sealed none."""
    seal = path.with_suffix(".digest")
    if seal.is_file() and seal.read_bytes() != digest_of(path).encode():
        raise DataError(f"{path} is damaged: its digest does not match; delete it to unpack again")


class ParquetTable(ArrowTable):
    """The columns of all files together; a column is read when it is asked for."""

    def __init__(self, files: list[Path], name: str, ask: Options):
        from pyarrow.parquet import ParquetFile

        self.files, self.notice = files, ask.notice
        self.rows, schemas, self.index = 0, [], []
        for file in files:
            check_regular(file)
            with ParquetFile(file) as part:
                rows, columns = part.metadata.num_rows, part.metadata.num_columns
                check_unpacked(file, file.stat().st_size, 8 * rows * columns)
                self.rows += rows
                schemas.append(part.schema_arrow.names)
                about = part.schema_arrow.pandas_metadata or {}
                # a counted index (0, 1, ...) is described there, any other is a column of the file
                index = [c for c in about.get("index_columns", ()) if isinstance(c, str)]
                self.index += [c for c in index if c not in self.index]
        for file, names in zip(files, schemas, strict=True):
            if set(names) != set(schemas[0]):
                other = sorted(set(names) ^ set(schemas[0]))
                raise DataError(
                    f"{files[0]} has {len(schemas[0])} columns and {file} has {len(names)}; only "
                    f"one of them has {listed(other)}. Give all files the same columns"
                )
        # one that is named, now or at the fit, is a column like others
        fitted = ask.recipe.columns if ask.recipe is not None else None
        wanted = {*ask.named_columns(), *(fitted or ())}
        self.index = [c for c in schemas[0] if c in self.index and c not in wanted]
        super().__init__([column for column in schemas[0] if column not in self.index], name)
        if self.index:
            ask.notice(f"{name}: the index of the data frame is taken as the rows' ids")

    def ids(self) -> list[str] | None:
        if not self.index:
            return None
        columns = [self._strings(column) for column in self.index]
        return [", ".join(parts) for parts in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self.rows

    def _keys(self):
        return self.frame

    def _column(self, name: str):
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        chunks = []
        for file in self.files:
            with ParquetFile(file) as part:
                chunks.append(part.read(columns=[name]).select([name]))
        # a column may hold whole numbers in one file and fractions in another
        return pa.concat_tables(chunks, promote_options="permissive").column(0)

    def read(self, numeric: list[str], strings: list[str], fitted: str | None = None):
        if 4 * self.rows * len(numeric) <= UNPACKED_ABOVE:
            return super().read(numeric, strings, fitted)
        return self._unpacked(numeric, fitted), {name: self._strings(name) for name in strings}

    def _unpacked(self, numeric: list[str], fitted: str | None) -> np.ndarray:
        seen = [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in self.files]
        asked = repr((seen, numeric, fitted == "float64"))
        key = hashlib.blake2b(asked.encode(), digest_size=12).hexdigest()
        folder = cache_folder()
        path = folder / f"parquet-{key}.npy"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / f"parquet-{key}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # the other processes of a fit wait here
                if not path.exists():
                    self._unpack(path, numeric, fitted)
                _check_seal(path)
        except OSError as error:
            raise DataError(
                f"{self.name} is too large for memory and cannot be unpacked into {folder}: "
                f"{error}. Set COTERIE_CACHE to a folder that can be written"
            ) from None
        return np.load(path, mmap_mode="r")

    def _unpack(self, path: Path, numeric: list[str], fitted: str | None) -> None:
        checks = [self.judge(column, self._numbers(column), fitted) for column in numeric]
        bad = [problem for problem, _ in checks if problem]
        if bad:
            refuse(self.name, bad, again=fitted is not None)
        dtype = np.dtype(np.float64 if any(precise for _, precise in checks) else np.float32)
        size, free = dtype.itemsize * self.rows * len(numeric), shutil.disk_usage(path.parent).free
        if size > free:
            raise DataError(
                f"{self.name} holds {size / 1e9:.1f} GB of numbers, and {path.parent} has room for "
                f"{free / 1e9:.1f} GB. Set COTERIE_CACHE to a folder with more room"
            )
        self.notice(f"{self.name}: {size / 1e9:.1f} GB of numbers are unpacked once into {path}")
        unfinished = path.with_suffix(".part")
        out = np.lib.format.open_memmap(unfinished, "w+", dtype, (self.rows, len(numeric)))
        start = 0
        for block in self._blocks(numeric):
            for j, column in enumerate(numeric):
                out[start : start + len(block), j] = block._numbers(column)
            start += len(block)
            out.flush()
            release(out)
        write_atomic(path.with_suffix(".digest"), digest_of(unfinished).encode())
        os.replace(unfinished, path)
        sync_folder(path.parent)

    def _blocks(self, columns: list[str]):
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        for file in self.files:
            with ParquetFile(file) as part:
                for batch in part.iter_batches(BLOCK_ROWS, columns=columns):
                    yield ArrowTable(pa.Table.from_batches([batch]), self.name)
