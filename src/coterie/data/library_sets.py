"""Data sets of other libraries in memory: Hugging Face's, and those of torch."""

from __future__ import annotations

import numpy as np

from .dataset import Dataset
from .errors import DataError
from .options import TABLE, Options


def is_hugging_face(source) -> bool:
    """Tell a table of `datasets` without importing it."""
    return type(source).__module__.split(".")[0] == "datasets" and hasattr(source, "column_names")


def from_hugging_face(source, ask: Options) -> Dataset:
    """Read it as the Arrow table that it is; a dict of splits must be narrowed to one."""
    from .frames import from_frame

    if hasattr(source, "keys") and not hasattr(source, "with_format"):
        raise DataError(f"X is a dict of splits ({', '.join(source)}); give one, as X['train']")
    ask.only("a data set of Hugging Face", *TABLE)
    return from_frame(source.with_format("arrow")[:], ask, "dataset", "frame")


def is_torch_set(source) -> bool:
    """Tell a map-style data set of torch without importing it."""
    names = {f"{cls.__module__}.{cls.__name__}" for cls in type(source).__mro__}
    return "torch.utils.data.dataset.Dataset" in names


def torch_rows(source) -> np.ndarray:  # (n, ...)
    """Rows of a data set of torch: items, or the first of each pair (row, label)."""
    if not hasattr(source, "__len__"):
        raise DataError("X is a stream of rows without a length; collect them into an array first")
    rows = []
    for i in range(len(source)):
        item = source[i]
        row = item[0] if isinstance(item, (tuple, list)) else item
        rows.append(np.asarray(row.convert("RGB") if hasattr(row, "convert") else row))
    if len({row.shape for row in rows}) > 1:
        raise DataError(
            f"X has rows of {len({row.shape for row in rows})} shapes; bring them to one, for "
            "example with a transform that resizes"
        )
    return np.stack(rows)
