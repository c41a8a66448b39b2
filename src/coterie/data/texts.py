"""Texts in memory, whatever holds them: a list, an array, a column of pandas, polars or Arrow."""

from __future__ import annotations

import numpy as np

from .errors import DataError

_LIBRARIES = ("pandas", "polars", "pyarrow", "datasets")  # the last are Hugging Face's


def as_texts(X) -> list[str] | None:
    """Return the texts of X, or None when X holds something else.

    Only what has one dimension and begins with a text is taken for texts; a gap or a number among
    them is an error.
    """
    cells = _cells(X)
    if not cells or not any(isinstance(cell, str) for cell in cells[:100]):
        return None
    for row, cell in enumerate(cells):
        if not isinstance(cell, str):
            gap = cell is None or cell != cell
            raise DataError(
                f"X is texts, but row {row} is {'missing' if gap else type(cell).__name__}; "
                "fill it (an empty text '' is allowed) or leave it out"
            )
    return [str(cell) for cell in cells]


def _cells(X) -> list | None:
    if isinstance(X, (list, tuple)):
        return list(X)
    if isinstance(X, np.ndarray):
        return X.tolist() if X.ndim == 1 and X.dtype.kind in "OUT" else None
    library = type(X).__module__.split(".")[0]
    if library not in _LIBRARIES or getattr(X, "column_names", None) or hasattr(X, "columns"):
        return None
    if library == "pyarrow":
        return X.to_pylist()
    if hasattr(X, "dtype") and getattr(X.dtype, "kind", "O") in "fiub":
        return None  # a column of numbers
    return list(X)
