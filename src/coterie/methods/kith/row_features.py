"""From the rows of a fit to the features that Kith and its graph rivals share."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from ...math import features as kinds
from ...math.augment import moved, transforms
from ...math.guess import guess_kind
from ...runtime.device import to_numpy
from ...runtime.rng import numpy_rng, torch_rng
from ...train.rows import ENCODE_ROWS, Rows

FAR = 1000  # deviations between zero and the mean of a column whose size tells nothing
SAMPLE_VALUES = 2**26  # values of the sample that features are learned from, at most
FEW_ROWS = 2000
LOST = {"text": 0.7, "counts": 0.5}  # share of words and of genes that a view loses


def usual_neighbours(n: int) -> int:
    """Neighbours of each row, by the number of rows."""
    return 10 if n >= FEW_ROWS else 5


def sample_rows(rows: Rows, seed: int, csr: Any = None) -> Any:
    """The rows from which features are learned: all, or a fixed number at random."""
    most = kinds.SAMPLE_ROWS
    if csr is None:
        most = min(most, max(2000, SAMPLE_VALUES // math.prod(rows.shape)))
    if rows.n <= most:
        return rows.slice(0, rows.n) if csr is None else csr
    picked = np.sort(numpy_rng(seed, "sample").choice(rows.n, most, replace=False))
    return rows.take(torch.from_numpy(picked)) if csr is None else csr[picked]


def sparse_rows(rows: Rows, kind: str) -> Any:
    """The rows as CSR where features take them so, else None."""
    return rows.csr if kind in LOST else None


def thin_rows(features: Any, rows: Rows) -> Any:  # -> CSR (n, d')
    """What views of texts and counts lose entries of: words, or relative counts of few genes."""
    csr = sparse_rows(rows, features.kind)
    if features.kind == "text" and csr is not None:
        return csr
    take = rows.slice if csr is None else lambda a, b: csr[a:b]
    text = features.kind == "text"
    make = (lambda t: sp.csr_matrix(to_numpy(t))) if text else features.counts.cut
    step = min(ENCODE_ROWS, rows.chunk)
    return sp.vstack([make(take(a, a + step)) for a in range(0, rows.n, step)], format="csr")


def words_in(rows: Rows) -> Any:  # -> CSR (n, d)
    """The words of all texts as they were given: scaling fills the zeros of dense rows.

    None where every text has every word: then columns are no words.
    """
    if rows.csr is not None:
        return rows.csr
    starts = range(0, rows.n, rows.chunk)
    parts = (np.asarray(rows.source[a : a + rows.chunk]) for a in starts)
    there = sp.vstack([sp.csr_matrix(part.reshape(len(part), -1) != 0) for part in parts], "csr")
    return there if there.nnz < rows.n * math.prod(rows.shape) else None


def find_kind(rows: Rows, asked: str) -> str:
    if asked != "auto":
        return asked
    raw = rows.source[: min(rows.n, 2000)]
    sparse = hasattr(raw, "toarray")
    raw = torch.from_numpy(np.array(raw.toarray() if sparse else raw, np.float32))
    return guess_kind(raw, sparse, rows.shape)


def fit_features(features: Any, rows: Rows, seed: int) -> None:
    """Learn the features' axes from a sample of the rows."""
    csr = sparse_rows(rows, features.kind)
    undo = {}
    if len(rows.shape) == 1:
        shift, factor = rows.scaling.shift, rows.scaling.factor
        if shift.dtype == np.float64:  # zero is too far away to matter, and float32 to count from
            shift = np.where(np.abs(shift * factor) > FAR, 0, shift).astype(np.float32)
        undo = {"origin": shift, "unit": 1 / factor}
    features.fit(sample_rows(rows, seed, csr), torch_rng(seed, "features"), **undo)


def all_features(features: Any, rows: Rows, seed: int, world: Any) -> torch.Tensor:  # (n, m)
    """Learn the features and compute those of all rows."""
    fit_features(features, rows, seed)
    world.broadcast(list(features.state_dict().values()))
    csr = sparse_rows(rows, features.kind)
    take = rows.slice if csr is None else lambda a, b: csr[a:b]
    return _in_parts(features, rows, world, take)


def moved_features(
    features: Any, rows: Rows, seed: int, world: Any, outside: str
) -> torch.Tensor:  # (n, m)
    """Features of every image after a small turn, shift, slant and change of size of its own."""
    h, w = rows.shape[1:]
    theta = transforms(rows.n, h, w, torch_rng(seed, "moved"))

    def take(a: int, b: int) -> torch.Tensor:
        return moved(rows.slice(a, b), theta[a:b], outside)

    return _in_parts(features, rows, world, take)


@torch.no_grad()
def _in_parts(features: Any, rows: Rows, world: Any, take: Callable[[int, int], Any]):
    """Features of `take(start, stop)` for all rows, (n, m); each process does its part."""
    start, stop = world.span(rows.n)
    step = min(ENCODE_ROWS, rows.chunk)
    out = torch.empty(stop - start, features.size, device=rows.device)
    for a in range(start, stop, step):
        b = min(a + step, stop)
        out[a - start : b - start] = features(take(a, b))
    return world.concat(out, rows.n)
