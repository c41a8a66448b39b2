"""Scaling of the input: shift and factor, found from the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from coterie.runtime.processes import all_gather, current

from ..data.chunks import chunk_rows, release
from ..data.ranges import narrow, warn_lone_value


@dataclass
class Scaling:
    """x -> (x - shift) * factor; both are scalars or one number per column.

    `shift` is float64 where columns are too far from zero for float32, else float32.
    """

    choice: str
    shift: np.ndarray
    factor: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:  # (b, ...) any dtype -> float32
        if self.shift.dtype == np.float64:  # the difference fits into float32, x does not
            x = np.subtract(x, self.shift, out=np.empty(x.shape, np.float32), casting="same_kind")
        else:
            x = x.astype(np.float32)
            if self.shift.any():
                x -= self.shift
        if (self.factor != 1).any():
            x *= self.factor
        return x

    def undo(self, x: np.ndarray) -> np.ndarray:
        return x / self.factor + self.shift


def fit_scaling(source: Any, choice: str) -> Scaling:
    """Find shift and factor for `choice`; "auto" picks by the shape and the spread of the columns.

    auto      images to 0..1; sparse rows to a mean square of 1; vectors as "global" when their
              columns share a unit, otherwise "standard"
    global    columns centred, one factor for all: mean variance 1 (k-means does not notice)
    standard  each column centred and divided by its own deviation
    unit      divided by the largest absolute value
    symmetric from the smallest value at -1 to the largest at 1 (USPS in the DKM paper)
    none      as given
    """
    one, zero = np.float32(1), np.float32(0)
    if choice == "none":
        check_finite(source)
        return Scaling("none", np.asarray(zero), np.asarray(one))
    if sp.issparse(source):
        check_finite(source)
        if choice in ("standard", "symmetric"):
            raise ValueError(
                f"scale={choice!r} would fill every zero of a sparse matrix; "
                "use scale='auto', or X.toarray() if it fits in memory"
            )
        values = source.data.astype(np.float64)
        size = source.shape[0] * source.shape[1]
        spread = np.sqrt(np.square(values).sum() / max(size, 1))
        if choice == "unit":
            spread = np.abs(values).max(initial=0)
        return Scaling("global", np.asarray(zero), np.asarray(_inverse(spread)))
    stats = _column_statistics(source)
    if source.ndim == 2:
        warn_lone_value(source, stats.mean, stats.variance, stats.low, stats.high)
    image = len(source.shape) > 2
    if choice == "unit" or (choice == "auto" and image):
        largest = max(abs(stats.low.min()), abs(stats.high.max()))
        if choice == "auto":
            is_byte = source.dtype == np.uint8 or (largest > 1 and largest <= 255 and stats.whole)
            largest = 255.0 if is_byte and largest > 16 else max(largest, 1.0)
        return Scaling("unit", np.asarray(zero), np.asarray(_inverse(largest)))
    if choice == "symmetric":
        low, high = stats.low.min(), stats.high.max()
        middle = np.asarray((low + high) / 2)
        middle = middle if narrow(stats.low, stats.high).any() else middle.astype(np.float32)
        return Scaling("symmetric", middle, _inverse((high - low) / 2))
    if choice == "auto":
        choice = "global" if stats.share_a_unit() else "standard"
    far = narrow(stats.low, stats.high).any()
    shift = stats.mean if far else stats.mean.astype(np.float32)
    if choice == "global":
        spread = np.sqrt(stats.variance.mean())
        return Scaling("global", shift, np.asarray(_inverse(spread)))
    return Scaling("standard", shift, _inverse(np.sqrt(stats.variance)))


def check_finite(source: Any) -> None:
    if sp.issparse(source):
        if not _finite(source.data):
            spot = int(np.argmin(_usable(source.data)))
            row = int(np.searchsorted(source.indptr, spot, side="right")) - 1
            _refuse(source.data[spot], row, [source.indices[spot]])
        return
    step = chunk_rows(source.shape[1:])
    for start in range(0, source.shape[0], step):
        block = np.asarray(source[start : start + step])
        if not _finite(block):
            row, *place = np.argwhere(~_usable(block))[0]
            _refuse(block[(row, *place)], start + int(row), place)
        if isinstance(source, np.memmap):
            release(source)


LARGEST = float(np.sqrt(np.finfo(np.float32).max))


def _finite(x: np.ndarray) -> bool:
    """All are numbers whose squares float32, in which networks count, can hold?"""
    return x.dtype.kind in "biu" or bool(_usable(x).all())


def _usable(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float32) if x.dtype.itemsize < 4 else x  # float16 has no such limit
    return np.abs(x) <= LARGEST


def _refuse(value: Any, row: int, place: Any) -> None:
    where = f"{'column' if len(place) == 1 else 'pixel'} {', '.join(str(int(p)) for p in place)}"
    raise ValueError(
        "Input X contains NaN, infinity or a number beyond 1.8e19, whose square float32 cannot "
        f"hold: {value:.4g} in row {row}, {where} (counted from 0); drop such rows, fill the gaps, "
        "or divide before fit"
    )


@dataclass
class _Columns:
    mean: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    whole: bool  # only integers

    def share_a_unit(self) -> bool:
        """One unit for all columns? Bounded alike (pixels, shares), or deviations of one size."""
        low, high = self.low.min(), self.high.max()
        if low >= 0 and high <= 255 and self.whole and high > 16:
            return True
        spread = np.sqrt(self.variance)
        # columns of 1e-4 beside one of 1 have a bound in common, but no unit
        reach = np.maximum(np.abs(self.low), np.abs(self.high))[spread > 0]
        spread = spread[spread > 0]
        if spread.size == 0:
            return True
        if low >= -1 and high <= 1 and np.median(reach) >= 0.1 * reach.max():
            return True
        return spread.max() <= 10 * np.quantile(spread, 0.1, method="lower")


def _column_statistics(source: np.ndarray) -> _Columns:
    """Mean, variance and range per column in one pass over blocks (float64 sums)."""
    n, world = source.shape[0], current()
    first, last = world.span(n)
    step = max(1, chunk_rows(source.shape[1:]) // 8)  # float64 and a few copies of it
    origin = np.asarray(source[0], dtype=np.float64)  # sums about the first row do not cancel
    total = np.zeros_like(origin)
    square = np.zeros_like(origin)
    low, high, whole, finite = origin.copy(), origin.copy(), True, True
    for start in range(first, last, step):
        block = np.asarray(source[start : min(start + step, last)]).astype(np.float64)
        finite = _finite(block)
        if not finite:
            break
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
        whole = whole and bool((block == np.rint(block)).all())
        block -= origin
        total += block.sum(0)
        square += np.square(block).sum(0)
        if isinstance(source, np.memmap):
            release(source)
    if world.size > 1:
        flags = torch.tensor([whole, finite], dtype=torch.float64)
        whole, finite = (all_gather(world, flags).amin(0) > 0).tolist()
        total, square = world.sum(torch.from_numpy(np.stack([total, square]))).numpy()
        low = all_gather(world, torch.from_numpy(low)).amin(0).numpy()
        high = all_gather(world, torch.from_numpy(high)).amax(0).numpy()
    if not finite:  # told to all processes first: none may wait for one that has given up
        check_finite(source)  # which finds the place
    offset = total / n
    variance = np.maximum(square / n - offset**2, 0)
    variance[high == low] = 0  # rounding must not make a constant column look alive
    return _Columns(origin + offset, variance, low, high, whole)


def _inverse(spread: Any) -> np.ndarray:
    spread = np.asarray(spread, dtype=np.float64)
    return np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 1).astype(np.float32)
