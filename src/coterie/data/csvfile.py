"""CSV and TSV files, read in blocks with the csv module."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from .dataset import Dataset
from .errors import DataError
from .limits import Unzipped, check_regular
from .options import TABLE, Options
from .ranges import COARSE, narrow
from .tables import MISSING, BadCells, from_table, refuse

_ROWS = 4096  # rows converted at once
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_FRACTION = re.compile(r"-\d+|[+-]?\d*[.,]\d+(e[+-]?\d+)?", re.IGNORECASE)
_TRUTH = {"true": 1.0, "false": 0.0}
_LARGEST = float(np.finfo(np.float32).max)


def read_csv(path: Path, ask: Options) -> Dataset:
    """Read a table of numbers with an optional header."""
    ask.only("a table", *TABLE)
    name = path.name.split(".")[0]
    before = csv.field_size_limit(2**31 - 1)  # cells with documents are longer than 128 KB
    try:
        return from_table(CsvTable(path, ask), ask, name, "csv")
    finally:
        csv.field_size_limit(before)


def open_text(path: Path):
    """Open text, gzip or not; a byte-order mark is dropped."""
    check_regular(path)
    if path.suffix == ".gz":
        return io.TextIOWrapper(Unzipped(path), encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


class CsvTable:
    """One file: its header is read at once, its rows when asked for."""

    def __init__(self, path: Path, ask: Options):
        self.path, self.notice, self.commas = path, ask.notice, False
        usual = "\t" if ".tsv" in path.suffixes else ","
        self.delimiter = _delimiter(path, usual)
        if self.delimiter != usual:
            ask.notice(f"{path.name}: columns are split at {self.delimiter!r}")
        cells = [cell.strip() for cell in next(_records(path, self.delimiter))[0]]
        self.width = len(cells)
        self.named = _is_header([_point(c) for c in cells] if self.delimiter == ";" else cells)
        self.spots = self._filled(cells)
        self.names = [cells[i] if self.named else str(i) for i in self.spots]
        if not self.named:
            ask.notice(f"{path.name}: the first line is numbers, so columns are named 0, 1, ...")
        elif all(_number(cell) is not None for cell in cells):
            ask.notice(f"{path.name}: the first line counts {cells[0]}, {cells[1]}, ...: a header")
        elif row_like := [cell for cell in cells if _FRACTION.fullmatch(cell)]:
            ask.notice(
                f"{path.name}: the first line is taken as a header, though it holds {row_like[0]}; "
                "if it is a row, put a line of names above it"
            )
        twice = [c for c, count in Counter(self.names).items() if count > 1 and self.named]
        self.places = dict(zip(self.names, self.spots, strict=True))
        if twice:
            raise DataError(
                f"{path}: the header names column '{sorted(twice)[0]}' more than once; "
                "give every column its own name"
            )

    def _filled(self, first: list[str]) -> list[int]:
        """Return the columns without those that hold nothing, as a comma at the end of lines makes.

        The file is read once more only if a cell of its first line is empty; the first cell does
        not count, pandas leaves it empty above the index.
        """
        blank = {i for i, cell in enumerate(first) if i and not cell}
        for row, _ in _records(self.path, self.delimiter) if blank else ():
            blank = {i for i in blank if not "".join(row[i : i + 1]).strip()}
        if blank:
            self.notice(f"{self.path.name}: {len(blank)} empty columns without a name left out")
        return [i for i in range(len(first)) if i not in blank]

    def read_lists(self, column: str) -> None:
        return None

    def read(
        self, numeric: list[str], strings: list[str], fitted: str | None = None
    ) -> tuple[np.ndarray, dict]:
        spots = [self.places[column] for column in numeric]
        bad = [BadCells(column, 0) for column in numeric]
        found: dict[str, list[str]] = {column: [] for column in strings}
        others = [(found[column], self.places[column]) for column in strings]
        blocks, done, exact = [], 0, fitted == "float64"
        for rows, lines in self._blocks():
            if spots:
                block = _convert(self._cells(rows, spots), lines, done, bad)
                if not done and not fitted:  # a column that is wide here is wide in the file
                    low, high = block.min(0), block.max(0)
                    still = (low == high) & (np.abs(low) > COARSE)  # and may move further down
                    exact = (narrow(low, high) | still).any()
                blocks.append(block if exact else block.astype(np.float32))
            for cells, spot in others:
                cells.extend(row[spot].strip() for row in rows)
            done += len(rows)
        if not done:
            raise DataError(f"{self.path} has a header but no rows")
        wrong = [cells for cells in bad if cells.first]
        for cells in wrong:
            cells.rows = done
        if wrong:
            refuse(str(self.path), wrong, again=fitted is not None)
        X = np.concatenate(blocks) if blocks else np.empty((done, 0), np.float32)
        if exact and not fitted and not narrow(X.min(0), X.max(0)).any():
            X = X.astype(np.float32)
        return X, found

    def _cells(self, rows: list[list[str]], spots: list[int]) -> list[str]:
        """Return the cells of some columns, row by row, with points for decimal commas."""
        if spots == list(range(self.width)):
            flat = list(chain.from_iterable(rows))
        elif len(spots) > 1:
            flat = list(chain.from_iterable(map(itemgetter(*spots), rows)))
        else:
            flat = [row[spots[0]] for row in rows]
        # where columns are split at ";", the comma was taken
        if self.delimiter == ";" and any("," in cell for cell in flat):
            pointed = [_point(cell) for cell in flat]
            if not self.commas and pointed != flat:
                self.commas = True
                self.notice(f"{self.path.name}: numbers like 1,5 are read as 1.5")
            return pointed
        return flat

    def _blocks(self) -> Iterator[tuple[list[list[str]], list[int]]]:
        """Yield lists of rows, all of full width, with their line numbers."""
        records = _records(self.path, self.delimiter)
        if self.named:
            next(records, None)
        while block := list(islice(records, _ROWS)):
            for row, line in block:
                if len(row) != self.width:
                    raise DataError(
                        f"{self.path}, line {line}: {len(row)} cells, but {self.width} columns; "
                        f"repair this line (a missing cell or an unquoted {self.delimiter!r}?)"
                    )
            rows, lines = zip(*block, strict=True)
            yield list(rows), list(lines)


def not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    return f"{path} is not UTF-8 text ({error.reason}); save it as UTF-8"


def _records(path: Path, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Yield the rows that are not blank lines, with the number of the line that each ends in."""
    line = 0
    try:
        with open_text(path) as file:
            reader = csv.reader(file, delimiter=delimiter)
            for row in reader:
                line = reader.line_num
                if len(row) > 1 or (row and not row[0].isspace()):
                    yield row, line
    except csv.Error as error:
        raise DataError(f"{path}, line {line + 1}: {error}") from None
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(path, error)) from None
    except (EOFError, zlib.error) as error:
        raise DataError(damaged_gzip(path, error)) from None


def damaged_gzip(path: Path, error: Exception) -> str:
    return f"{path} is a damaged gzip file ({error}); pack it again, or give the file in it"


def _delimiter(path: Path, usual: str) -> str:
    """Return the usual delimiter if it splits the first two rows alike, else what does it best."""

    def split(delimiter: str) -> list[list[str]]:
        return [row for row, _ in islice(_records(path, delimiter), 2)]

    def order(delimiter: str) -> tuple[int, int]:  # cells in both rows, cells in the first
        widths = [len(row) for row in split(delimiter)]
        return widths[0] if widths[0] == widths[-1] else 1, widths[0]

    rows = split(usual)
    if not rows:
        raise DataError(f"{path} is empty")
    if any(";" in cell for cell in rows[-1]) and order(";")[0] > 1:
        cells = [cell.strip() for cell in split(";")[-1]]
        if all(_number(_point(cell)) is not None for cell in cells if cell):
            return ";"  # 1,5;2,5 is two numbers
    if order(usual)[0] > 1:
        return usual
    best = max((usual, *";\t,|"), key=order)
    return best if order(best)[1] > 1 else usual


def _point(cell: str) -> str:
    """Return 1.5 for 1,5, and anything else as it is."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def _number(cell: str) -> float | None:
    """Return the value of a finite number as people write them, else None."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) and "_" not in cell else None


def _is_header(cells: list[str]) -> bool:
    """Tell a header from a row of numbers; 0,1,2,... and 1,2,3,... count as headers.

    Two numbers are as likely a row, unless they follow the empty cell above pandas' index.
    """
    given = [cell for cell in cells if cell]
    if any(_number(cell) is None for cell in given if cell.lower() not in MISSING):
        return True
    counted = ([str(i + start) for i in range(len(given))] for start in (0, 1))
    return given in counted and (len(given) > 2 or not cells[0])


def _convert(flat: list[str], lines: list[int], done: int, bad: list[BadCells]) -> np.ndarray:
    """Return float64 (rows, columns); cells that are not numbers are noted in `bad`."""
    try:
        if "_" in "".join(flat):
            raise ValueError  # float() reads 1_000, people who write codes do not mean it
        block = np.fromiter(map(float, flat), np.float64, len(flat))
        if np.abs(block).max() <= _LARGEST:  # False for NaN too
            return block.reshape(len(lines), len(bad))
    except ValueError:
        pass
    return _convert_slowly(flat, lines, done, bad)


def _convert_slowly(flat, lines: list[int], done: int, bad: list[BadCells]) -> np.ndarray:
    block = np.zeros((len(lines), len(bad)))
    for spot, cell in enumerate(flat):
        i, j = divmod(spot, len(bad))
        value = _TRUTH.get(cell.strip().lower(), _number(cell))
        if value is None or abs(value) > _LARGEST:
            bad[j].add(cell, f"row {done + i + 1} (line {lines[i]})")
        else:
            block[i, j] = value
    return block
