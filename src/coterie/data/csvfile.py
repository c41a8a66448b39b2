"""CSV and TSV files, read in blocks with the csv module."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from .dataset import Dataset
from .errors import DataError
from .options import Options
from .ranges import narrow
from .tables import BadCells, from_table, refuse

_ROWS = 4096  # rows converted at once
_LARGEST = float(np.finfo(np.float32).max)


def read_csv(path: Path, ask: Options) -> Dataset:
    """Read a table of numbers with an optional header."""
    name = path.name.split(".")[0]
    return from_table(CsvTable(path, ask), ask, name, "csv")


def open_text(path: Path):
    """Open text, gzip or not; a byte-order mark is dropped."""
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


class CsvTable:
    """One file: its header is read at once, its rows when asked for."""

    def __init__(self, path: Path, ask: Options):
        self.path = path
        self.delimiter = "\t" if ".tsv" in path.suffixes else ","
        with open_text(path) as file:
            first = _first_line(file, path)
        if self.delimiter not in first:
            other = max(";\t,|", key=first.count)
            if other in first:
                self.delimiter = other
                ask.notice(f"{path.name}: columns are split at {other!r}")
        cells = next(csv.reader([first], delimiter=self.delimiter))
        cells = [cell.strip() for cell in cells]
        self.named = _is_header(cells)
        self.names = cells if self.named else [str(i) for i in range(len(cells))]
        if not self.named:
            ask.notice(f"{path.name}: the first line is numbers, so columns are named 0, 1, ...")
        elif all(_number(cell) is not None for cell in cells):
            ask.notice(f"{path.name}: the first line counts {cells[0]}, {cells[1]}, ...: a header")
        twice = {c for c in self.names if self.names.count(c) > 1} if self.named else None
        if twice:
            raise DataError(
                f"{path}: the header names column '{sorted(twice)[0]}' more than once; "
                "give every column its own name"
            )

    def read_lists(self, column: str) -> None:
        return None

    def read(
        self, numeric: list[str], strings: list[str], fitted: str | None = None
    ) -> tuple[np.ndarray, dict]:
        spots = [self.names.index(column) for column in numeric]
        bad = {spot: BadCells(self.names[spot], 0) for spot in spots}
        found: dict[str, list[str]] = {column: [] for column in strings}
        others = [(found[column], self.names.index(column)) for column in strings]
        blocks, done, exact = [], 0, fitted == "float64"
        for rows, lines in self._blocks():
            if spots:
                block = _convert(rows, lines, done, spots, len(self.names), bad)
                if not done and not fitted:  # a column that is wide here is wide in the file
                    exact = narrow(block.min(0), block.max(0)).any()
                blocks.append(block if exact else block.astype(np.float32))
            for cells, spot in others:
                cells.extend(row[spot].strip() for row in rows)
            done += len(rows)
        if not done:
            raise DataError(f"{self.path} has a header but no rows")
        wrong = [cells for cells in bad.values() if cells.first]
        for cells in wrong:
            cells.rows = done
        if wrong:
            refuse(str(self.path), wrong)
        X = np.concatenate(blocks) if blocks else np.empty((done, 0), np.float32)
        if exact and not fitted and not narrow(X.min(0), X.max(0)).any():
            X = X.astype(np.float32)
        return X, found

    def _blocks(self) -> Iterator[tuple[list[list[str]], list[int]]]:
        """Yield lists of rows, all of full width, with their line numbers."""
        width = len(self.names)
        with open_text(self.path) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            numbered = ((row, reader.line_num) for row in reader if row)
            try:
                if self.named:
                    next(numbered, None)
                while block := list(islice(numbered, _ROWS)):
                    for row, line in block:
                        if len(row) != width:
                            raise DataError(
                                f"{self.path}, line {line}: {len(row)} cells, but {width} columns; "
                                "repair this line (a missing cell or an unquoted "
                                f"{self.delimiter!r}?)"
                            )
                    rows, lines = zip(*block, strict=True)
                    yield list(rows), list(lines)
            except csv.Error as error:
                raise DataError(f"{self.path}, line {reader.line_num}: {error}") from None
            except UnicodeDecodeError as error:
                raise DataError(not_utf8(self.path, error)) from None


def not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    return f"{path} is not UTF-8 text ({error.reason}); save it as UTF-8"


def _first_line(file, path: Path) -> str:
    try:
        for line in file:
            if line.strip():
                return line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(path, error)) from None
    except (OSError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    raise DataError(f"{path} is empty")


def _number(cell: str) -> float | None:
    """Return the value of a finite number as people write them, else None."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) and "_" not in cell else None


def _is_header(cells: list[str]) -> bool:
    """Tell a header from a row of numbers; 0,1,2,... and 1,2,3,... count as headers."""
    if any(_number(cell) is None for cell in cells):
        return True
    counted = ([str(i + start) for i in range(len(cells))] for start in (0, 1))
    return len(cells) > 1 and cells in counted


def _convert(rows, lines, done: int, spots: list[int], width: int, bad: dict) -> np.ndarray:
    """Return float64 (rows, spots); cells that are not numbers are noted in `bad`."""
    if spots == list(range(width)):
        picked = rows
    else:
        pick = itemgetter(*spots)
        picked = [pick(row) for row in rows] if len(spots) > 1 else [[pick(row)] for row in rows]
    try:
        flat = list(chain.from_iterable(picked))
        if "_" in "".join(flat):
            raise ValueError  # float() reads 1_000, people who write codes do not mean it
        block = np.fromiter(map(float, flat), np.float64, len(flat))
        if np.abs(block).max() <= _LARGEST:  # False for NaN too
            return block.reshape(len(rows), len(spots))
    except ValueError:
        pass
    return _convert_slowly(rows, lines, done, spots, bad)


def _convert_slowly(rows, lines, done: int, spots: list[int], bad: dict) -> np.ndarray:
    block = np.zeros((len(rows), len(spots)))
    for i, (row, line) in enumerate(zip(rows, lines, strict=True)):
        for j, spot in enumerate(spots):
            value = _number(row[spot])
            if value is None or abs(value) > _LARGEST:
                bad[spot].add(row[spot], f"row {done + i + 1} (line {line})")
            else:
                block[i, j] = value
    return block
