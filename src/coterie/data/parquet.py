"""Parquet: a file or a folder of files, here or in object storage; large ones as a memory map.

Numbers of more than `UNPACKED_ABOVE` bytes are written once, row by row, to a .npy file in the
cache folder and read from there: a batch then costs its own rows only, memory does not grow with
the data, and all processes of a fit share one file, which they write together.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from coterie.storage.seals import digest_of

from .dataset import Dataset
from .errors import DataError, listed
from .frames import ArrowTable, from_columns
from .limits import check_unpacked
from .object_storage import find_parquet, shown
from .options import TABLE, Options
from .ranges import narrow
from .tables import refuse, vectors
from .unpacking import Unpacking, cache_folder

UNPACKED_ABOVE = 1 << 30
PART_BYTES = 1 << 26  # of numbers that a process unpacks at a time
BLOCK_ROWS = 1 << 16


def read_parquet(source: Path | str, ask: Options) -> Dataset:
    """Read a parquet file, or all those of a folder in the order of their names."""
    ask.only("a table", *TABLE)
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(
            "reading parquet needs pyarrow: pip install pyarrow (or coterie[parquet])"
        ) from None
    try:
        files, name = find_parquet(source)
        return from_columns(ParquetTable(files, name, ask), ask, "parquet")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {shown(source)} as parquet: {error}") from None


def _check_seal(path: Path) -> None:
    """Refuse an unpacked file that is not what was written; the first version sealed none."""
    seal = path.with_suffix(".digest")
    if seal.is_file() and seal.read_bytes() != digest_of(path).encode():
        raise DataError(f"{path} is damaged: its digest does not match; delete it to unpack again")


class ParquetTable(ArrowTable):
    """The columns of all files together; a column is read when it is asked for."""

    def __init__(self, files: list[Any], name: str, ask: Options):
        from pyarrow.dataset import ParquetFileFormat

        self.notice, self.index = ask.notice, []
        self.seen = [(file.path, file.size, file.mtime_ns) for _, file in files]
        self.fragments = [
            ParquetFileFormat().make_fragment(file.path, storage) for storage, file in files
        ]
        schemas = [fragment.physical_schema for fragment in self.fragments]
        for fragment, schema, (path, size, _) in zip(self.fragments, schemas, self.seen):
            about = fragment.metadata
            check_unpacked(path, size, 8 * about.num_rows * about.num_columns)
            if set(schema.names) != set(schemas[0].names):
                other = sorted(set(schema.names) ^ set(schemas[0].names))
                raise DataError(
                    f"{self.seen[0][0]} has {len(schemas[0])} columns and {path} has "
                    f"{len(schema)}; only one of them has {listed(other)}. Give all files the "
                    "same columns"
                )
            # a counted index (0, 1, ...) is described there, any other is a column of the file
            index = (schema.pandas_metadata or {}).get("index_columns", ())
            self.index += [c for c in index if isinstance(c, str) and c not in self.index]
        self.rows = sum(fragment.metadata.num_rows for fragment in self.fragments)
        names = schemas[0].names
        # one that is named, now or at the fit, is a column like others
        fitted = ask.recipe.columns if ask.recipe is not None else None
        wanted = {*ask.named_columns(), *(fitted or ())}
        self.index = [c for c in names if c in self.index and c not in wanted]
        super().__init__([column for column in names if column not in self.index], name)
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

        chunks = [fragment.to_table(columns=[name]) for fragment in self.fragments]
        # a column may hold whole numbers in one file and fractions in another
        return pa.concat_tables(chunks, promote_options="permissive").column(0)

    def read(self, numeric: list[str], strings: list[str], fitted: str | None = None):
        if 4 * self.rows * len(numeric) <= UNPACKED_ABOVE:
            return super().read(numeric, strings, fitted)
        X = self._unpacked(numeric, len(numeric), fitted, self._numbers_of)
        return X, {name: self._strings(name) for name in strings}

    def read_lists(self, column: str):
        first = next(iter(self.fragments[0].head(1, columns=[column]).column(0)), None)
        width = len(first) if first is not None and hasattr(first, "values") else 0
        if 4 * self.rows * width <= UNPACKED_ABOVE:
            return super().read_lists(column)
        return self._unpacked([column], width, "float32", self._vectors_of)

    def _numbers_of(self, block: ArrowTable, columns, fitted, first: int) -> np.ndarray:
        found: list[Any] = [block._numbers(column) for column in columns]
        bad = [c for c, x in zip(columns, found, strict=True) if block.judge(c, x, fitted)[0]]
        if bad:  # in all files, so that the error can count
            problems = [self.judge(column, self._numbers(column), fitted)[0] for column in bad]
            refuse(self.name, [p for p in problems if p], again=fitted is not None)
        return np.stack(found, axis=1)

    def _vectors_of(self, block: ArrowTable, columns, fitted, first: int) -> np.ndarray:
        among = f"{self.name}, rows {first} to {first + len(block) - 1}"
        return vectors(block.read_lists(columns[0]), among, first)

    def _unpacked(self, columns: list[str], width: int, fitted: str | None, numbers) -> np.ndarray:
        """The numbers of all rows as a memory map, unpacked if they are not yet."""
        asked = repr((self.seen, columns, width, fitted == "float64"))
        key = hashlib.blake2b(asked.encode(), digest_size=12).hexdigest()
        path = cache_folder() / f"parquet-{key}.npy"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                self._unpack(path, columns, width, fitted, numbers)
            _check_seal(path)
        except OSError as error:
            raise DataError(
                f"{self.name} is too large for memory and cannot be unpacked into {path.parent}: "
                f"{error}. Set COTERIE_CACHE to a folder that can be written"
            ) from None
        return np.load(path, mmap_mode="r")

    def _unpack(self, path: Path, columns, width: int, fitted: str | None, numbers) -> None:
        parts = self._parts(width)
        sizes = [sum(rows for _, _, rows in part) for part in parts]

        def blocks(i: int) -> Iterator[np.ndarray]:
            first = sum(sizes[:i])
            for block in self._blocks(parts[i], columns):
                X = numbers(block, columns, fitted, first)
                if X.shape[1] != width:
                    raise DataError(
                        f"{self.name}: column '{columns[0]}' has lists of {width} and of "
                        f"{X.shape[1]} numbers; drop the rows that differ"
                    )
                yield X
                first += len(block)

        for dtype in ("float64",) if fitted == "float64" else ("float32", "float64"):
            work = Unpacking(path, dtype, width, sizes, self.name, self.notice)
            ranges = work.run(blocks)
            if ranges is None:
                return
            if fitted or dtype == "float64" or not narrow(*ranges).any():
                return work.finish()

    def _parts(self, width: int) -> list[list[tuple[int, int, int]]]:
        """Row groups (file, group, rows) that are unpacked together, in the order of the rows."""
        parts, size = [[]], 0
        for i, fragment in enumerate(self.fragments):
            for group in fragment.row_groups:
                if size > PART_BYTES:
                    parts.append([])
                    size = 0
                parts[-1].append((i, group.id, group.num_rows))
                size += 4 * width * group.num_rows
        return parts

    def _blocks(self, part: list[tuple[int, int, int]], columns: list[str]):
        import pyarrow as pa

        for i, groups in itertools.groupby(part, key=lambda group: group[0]):
            some = self.fragments[i].subset(row_group_ids=[group for _, group, _ in groups])
            for batch in some.to_batches(columns=columns, batch_size=BLOCK_ROWS):
                if len(batch):
                    yield ArrowTable(pa.Table.from_batches([batch]), self.name)
