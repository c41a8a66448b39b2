"""pandas, polars and pyarrow tables."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .dataset import Dataset
from .errors import DataError, listed
from .options import Options
from .ranges import narrow
from .tables import BadCells, from_table, refuse


def is_frame(source) -> bool:
    """Tell a data frame without importing its library."""
    library = type(source).__module__.split(".")[0]
    return library in ("pandas", "polars", "pyarrow") and hasattr(source, "columns")


def check_columns(frame) -> None:
    """Refuse columns that are no numbers: scikit-learn names none of them, and takes dates."""
    table = _table(frame, "X")
    bad = [column for column in table.suspects() if table._numbers(column) is None]
    if bad:
        raise DataError(
            f"X has {len(bad)} of {len(table.names)} columns that are not numbers: {listed(bad)}. "
            "Turn them into numbers (for example one 0/1 column per category, seconds for times) "
            f"or leave them out, as X.drop(columns={bad[:3]}) does in pandas"
        )


def from_frame(frame, ask: Options, name: str = "frame", source: str = "frame") -> Dataset:
    """Read a data frame; a pandas index other than 0, 1, 2, ... gives the ids."""
    return from_columns(_table(frame, name), ask, source)


def from_columns(table: _Columns, ask: Options, source: str) -> Dataset:
    name = table.name
    if not table.names:
        raise DataError(f"{name} has no columns")
    if not len(table):
        raise DataError(f"{name} has {len(table.names)} columns but no rows")
    twice = [column for column, count in Counter(table.names).items() if count > 1]
    if twice:
        raise DataError(f"{name} has column '{sorted(twice)[0]}' more than once; rename one")
    return from_table(table, ask, name, source, ids=table.ids())


def _table(frame, name: str) -> _Columns:
    library = type(frame).__module__.split(".")[0]
    if library == "polars" and hasattr(frame, "collect"):
        frame = frame.collect()
    return {"pandas": PandasTable, "polars": PolarsTable, "pyarrow": ArrowTable}[library](
        frame, name
    )


class _Columns:
    """Reading column by column; subclasses know one library."""

    named = True

    def __init__(self, frame, name: str):
        self.frame, self.name = frame, name
        self.names = [str(column) for column in self._keys()]
        self.places = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.frame)

    def ids(self) -> list[str] | None:
        return None

    def suspects(self) -> list[str]:
        """Return the columns that may hold something else than numbers."""
        return self.names

    def _keys(self):
        """Return the names of the columns."""
        raise NotImplementedError

    def _numbers(self, name: str) -> np.ndarray | None:
        """Return a column as float64 with NaN for gaps, or None when it holds no numbers."""
        raise NotImplementedError

    def _cells(self, name: str) -> list:
        """Return a column as Python values with None for gaps."""
        raise NotImplementedError

    def read(
        self, numeric: list[str], strings: list[str], fitted: str | None = None
    ) -> tuple[np.ndarray, dict]:
        X, bad, exact = np.empty((len(self), len(numeric)), np.float32), [], {}
        for j, column in enumerate(numeric):
            values = self._numbers(column)
            problem, precise = self.judge(column, values, fitted)
            if problem:
                bad.append(problem)
                continue
            X[:, j] = values
            if precise:
                exact[j] = values
        if bad:
            refuse(self.name, bad, again=fitted is not None)
        if exact:
            X = X.astype(np.float64)
            for j, values in exact.items():
                X[:, j] = values
        return X, {column: self._strings(column) for column in strings}

    def judge(self, column: str, values, fitted: str | None) -> tuple[BadCells | None, bool]:
        """Return what is wrong with a column, and whether float32 would round it away."""
        with np.errstate(over="ignore"):
            if values is None or not np.isfinite(values.astype(np.float32)).all():
                return self._diagnose(column, values), False
        return None, fitted == "float64" if fitted else bool(narrow(values.min(), values.max()))

    def read_lists(self, column: str) -> list | np.ndarray | None:
        cells = self._cells(column)
        return cells if all(isinstance(c, (list, tuple, np.ndarray)) for c in cells) else None

    def _diagnose(self, column: str, values) -> BadCells:
        bad = BadCells(column, len(self))
        cells = self._cells(column)
        texts = [values is None and not isinstance(c, (int, float, np.number)) for c in cells]
        if values is None and not any(texts):  # a category of numbers: all of them are names
            texts = [True] * len(cells)
        for row, (cell, odd) in enumerate(zip(cells, texts, strict=True)):
            if odd or not _fits(cell):
                bad.add(cell, f"row {row + 1}")
        return bad

    def _strings(self, column: str) -> list[str]:
        return ["" if c is None or c != c else str(c) for c in self._cells(column)]


def _fits(cell) -> bool:
    """Whether float32 can hold a number; a gap is none."""
    try:
        return bool(np.isfinite(np.float32(np.nan if cell is None else cell)))
    except OverflowError:  # Python's own numbers have no end
        return False


class PandasTable(_Columns):
    def _keys(self):
        return self.frame.columns

    def suspects(self) -> list[str]:
        kinds = [getattr(dtype, "kind", "O") for dtype in self.frame.dtypes]
        return [name for name, kind in zip(self.names, kinds, strict=True) if kind not in "fiub"]

    def _column(self, name: str):
        return self.frame.iloc[:, self.places[name]]

    def ids(self) -> list[str] | None:
        index = self.frame.index
        plain = index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index)))
        return None if plain else [str(label) for label in index]

    def _numbers(self, name: str):
        column = self._column(name)
        kind = getattr(column.dtype, "kind", "O")
        if kind in "mMc" or str(column.dtype) == "category":
            return None  # dates and categories would turn into numbers that mean nothing
        try:
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError):
            return None

    def _cells(self, name: str) -> list:
        column = self._column(name)
        return [None if missing else c for c, missing in zip(column, column.isna(), strict=True)]


class PolarsTable(_Columns):
    def _keys(self):
        return self.frame.columns

    def _numbers(self, name: str):
        column = self.frame[name]
        if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
            return None
        return column.cast(float).to_numpy()

    def _cells(self, name: str) -> list:
        return self.frame[name].to_list()


class ArrowTable(_Columns):
    def _keys(self):
        return self.frame.column_names

    def _column(self, name: str):
        return self.frame.column(name)

    def _numbers(self, name: str):
        import pyarrow as pa

        column = self._column(name)
        kind, types = column.type, pa.types
        if types.is_boolean(kind):
            column = column.cast(pa.uint8())
        elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
            return None
        return column.cast(pa.float64(), safe=False).to_numpy()

    def _cells(self, name: str) -> list:
        return self._column(name).to_pylist()

    def read_lists(self, column: str):
        import pyarrow as pa
        from pyarrow.compute import call_function

        cells, types = self._column(column), pa.types
        kind = cells.type
        if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
            return None
        numbers = types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
        lengths = call_function("list_value_length", [cells]).unique()
        if numbers and not cells.null_count and len(lengths) == 1:
            values = call_function("list_flatten", [cells]).cast(pa.float32(), safe=False)
            return values.to_numpy().reshape(len(self), -1)
        return super().read_lists(column)
