"""Counts of many columns, such as the genes of cells, as an autoencoder takes them.

Each row is divided by its total and multiplied by a usual one; of the logarithms the most variable
columns are kept. What a fit decides is `counting_`; predict repeats it, a saved model keeps it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ..math.features import WIDE
from ..math.guess import guess_kind
from ..math.log_counts import COLUMNS, logs_of, most_variable, relative, usual_total

LOOK_ROWS = 2000  # rows that tell whether dense ones are counts
MORE_THAN_ONE = 1.5  # zeros and ones say what is there, not how much of it


@dataclass
class Counting:
    """Counts -> log(1 + count / total * depth) of some columns."""

    columns: np.ndarray  # (m,) in ascending order
    depth: float  # total of a usual row
    width: int  # columns of the rows as they are given

    def apply(self, source: Any) -> Any:  # (n, width) -> (n, m) float32, sparse where source is
        part = logs_of(relative(_raw(source), self.depth, self.columns))
        return part if sp.issparse(source) else part.toarray()

    def undo(self, x: np.ndarray) -> np.ndarray:  # (b, m) -> (b, width)
        """Counts of a row with the usual total; 0 in the columns that were left out."""
        whole = np.zeros((len(x), self.width), np.float32)
        whole[:, self.columns] = np.expm1(np.maximum(x, 0))
        return whole


def counts_first(model: Any, source: Any) -> Any:
    """The rows of a fit; what was done to counts is kept in `counting_`."""
    vars(model).pop("counting_", None)
    asked = getattr(model, "counts", "raw")
    if asked == "auto":  # Kith takes counts as they are
        from_kith = model.init == "pretrained" and model.pretrain == "kith"
        asked = "log" if not from_kith and looks_counted(source) else "raw"
    if asked == "raw":
        return source
    _check(source)
    raw = _raw(source)
    depth = usual_total(raw)
    logs = logs_of(relative(raw, depth))
    columns = most_variable(logs, min(COLUMNS, raw.shape[1]))
    model.counting_ = Counting(columns, depth, raw.shape[1])
    return model.counting_.apply(source)


def counts_again(model: Any, source: Any) -> Any:
    """New rows as those of the fit were taken."""
    counting = getattr(model, "counting_", None)
    return source if counting is None else counting.apply(source)


def counts_back(model: Any, x: np.ndarray) -> np.ndarray:
    """Rebuilt rows in the shape of those that were given."""
    counting = getattr(model, "counting_", None)
    return x if counting is None else counting.undo(x)


def looks_counted(source: Any) -> bool:
    """Whole numbers, none negative, in many columns, most of them 0; a memory map stays one."""
    if source.ndim != 2 or source.shape[1] < 2 * WIDE or isinstance(source, np.memmap):
        return False
    values = source.data if sp.issparse(source) else source
    if values.size == 0 or values.min() < 0 or not MORE_THAN_ONE < values.max() < np.inf:
        return False
    if values.dtype.kind not in "iu" and not (values == np.rint(values)).all():
        return False
    if sp.issparse(source):
        return True
    sample = torch.from_numpy(np.array(source[:LOOK_ROWS], np.float32))
    return guess_kind(sample, False, source.shape[1:]) == "counts"


def _check(source: Any) -> None:
    values = source.data if sp.issparse(source) else source
    if source.ndim != 2 or isinstance(source, np.memmap):
        what = "a memory map" if isinstance(source, np.memmap) else f"rows of {source.shape[1:]}"
        raise ValueError(f"counts='log' takes a table in memory, X is {what}; use counts='raw'")
    if values.size and not values.min() >= 0:
        raise ValueError(f"counts='log' takes counts, but X has {values.min():g}; use counts='raw'")


def _raw(source: Any) -> sp.csr_matrix:
    return sp.csr_matrix(source, dtype=np.float32)
