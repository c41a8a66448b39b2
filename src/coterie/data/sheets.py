"""Excel workbooks (.xlsx) and Arrow files (.feather, .arrow)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .dataset import Dataset
from .errors import DataError
from .frames import _Columns, from_columns, from_frame
from .limits import check_unpacked
from .options import TABLE, Options


def read_xlsx(path: Path, ask: Options) -> Dataset:
    """Read the first sheet: a header, then rows; values, not formulas."""
    ask.only("a table", *TABLE)
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError("reading .xlsx needs openpyxl: pip install 'coterie[xlsx]'") from None
    try:
        packed = path.stat().st_size
        with zipfile.ZipFile(path) as parts:
            check_unpacked(path, packed, sum(part.file_size for part in parts.infolist()))
        book = load_workbook(path, read_only=True, data_only=True)
        rows, cells = [], 0
        for row in book.worksheets[0].iter_rows(values_only=True):
            cells += len(row)  # all of them up to the last one: a cell far out makes a billion
            check_unpacked(path, packed, 8 * cells)
            if any(cell is not None for cell in row):
                rows.append(row)
        book.close()
    except DataError:
        raise
    except Exception as error:  # zip, xml and key errors of a damaged file
        raise DataError(f"cannot read {path} as an Excel workbook: {error}") from None
    if len(rows) < 2:
        raise DataError(f"{path}: the first sheet needs a header and rows; it has {len(rows)} rows")
    width = max(i for i, cell in enumerate(rows[0]) if cell is not None) + 1
    names = [str(cell) if cell is not None else f"column {i}" for i, cell in enumerate(rows[0])]
    columns = {
        name: [row[i] if i < len(row) else None for row in rows[1:]]
        for i, name in enumerate(names[:width])
    }
    if len(columns) < width:
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path} has column '{twice}' more than once; rename one")
    return from_columns(SheetTable(columns, path.stem), ask, "xlsx")


class SheetTable(_Columns):
    """Columns as lists of Python values."""

    def __len__(self) -> int:
        return len(next(iter(self.frame.values())))

    def _keys(self):
        return self.frame

    def _cells(self, name: str) -> list:
        return self.frame[name]

    def _numbers(self, name: str):
        cells = self.frame[name]
        if any(not isinstance(cell, (int, float, type(None))) for cell in cells):
            return None
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)


def read_arrow(path: Path, ask: Options) -> Dataset:
    """Read an Arrow IPC file or stream, which .feather files are too."""
    ask.only("a table", *TABLE)
    try:
        import pyarrow as pa
        from pyarrow import feather, ipc
    except ImportError:
        raise DataError(
            "reading Arrow files needs pyarrow: pip install pyarrow (or coterie[parquet])"
        ) from None
    try:
        with pa.OSFile(str(path)) as file:
            try:
                table = _batches(path, ipc.open_file(file))
            except pa.ArrowInvalid:  # a stream has no footer; the first feather had another form
                file.seek(0)
                try:
                    table = _batches(path, ipc.open_stream(file))
                except pa.ArrowInvalid:
                    table = feather.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {path} as an Arrow file: {error}") from None
    return from_frame(table, ask, path.stem, "arrow")


def _batches(path: Path, reader: Any):
    """Read batch by batch, to stop before far more comes out than the file has bytes."""
    import pyarrow as pa

    found, size, packed = [], 0, path.stat().st_size
    count = getattr(reader, "num_record_batches", None)
    for batch in reader if count is None else map(reader.get_batch, range(count)):
        size += batch.nbytes
        check_unpacked(path, packed, size)
        found.append(batch)
    return pa.Table.from_batches(found, reader.schema)
