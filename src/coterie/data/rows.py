"""Rows: what the engine sees of the data, n float32 rows of one shape, in memory or streamed.

Dense arrays are scaled once and kept as a float32 tensor. Memory maps and sparse matrices stay
where they are; a batch is cut, scaled and, unless the caller can do with less, densified when it
is asked for.
"""

import hashlib
import math
import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from coterie.sharing import current, everyone

from .ranges import narrow

ENCODE_ROWS = 4096  # rows per forward pass without gradient
CHUNK_BYTES = 64 << 20  # what a full pass holds in memory at a time
VARIANCE_ROWS, VARIANCE_VALUES = 5000, 2**25  # what the total variance is measured on, at most


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


@dataclass
class Ready:
    """Rows whose features need not be computed again."""

    features: torch.Tensor  # (b, m)


class Rows:
    """A row source: `take(index)` for batches, `slice(start, stop)` for full passes."""

    def __init__(self, source: Any, scaling: Scaling):
        self.source, self.scaling = source, scaling
        self.n = source.shape[0]
        self.shape = _channels_first_shape(source.shape[1:])
        self.streamed = sp.issparse(source) or isinstance(source, np.memmap)
        self._tensor = None if self.streamed else self._to_tensor(source)
        self.csr: Any = self._scaled_csr() if sp.issparse(source) else None
        self.features: Any = None  # (n, m), set by a method that computes them once for a fit
        self._read = 0

    def take(self, index: torch.Tensor) -> torch.Tensor:  # (b,) -> (b, *shape)
        if self._tensor is not None:
            return self._tensor[index]
        # sorted reads touch the file in order; the rows come back in the order asked for
        order = torch.argsort(index)
        rows = self._to_tensor(self.source[index[order].numpy()])
        out = torch.empty_like(rows)
        out[order] = rows
        # a fault on one page brings its neighbours along, up to two megabytes on Linux
        self._forget_pages(max(rows.nbytes, len(index) << 21))
        return out

    def slice(self, start: int, stop: int) -> torch.Tensor:  # rows start..stop-1
        if self._tensor is not None:
            return self._tensor[start:stop]
        rows = self._to_tensor(self.source[start:stop])
        self._forget_pages(rows.nbytes)
        return rows

    def fed_to(self, network: Any, index: Any) -> Any:  # positions or a slice
        """Rows as a network takes them: features that are known already, CSR where both sides are
        made for it, else a tensor."""
        if self.features is not None and getattr(network, "takes_features", False):
            return Ready(self.features[index])
        if self.csr is not None and getattr(network, "takes_sparse", False):
            return self.csr[index.numpy() if isinstance(index, torch.Tensor) else index]
        if isinstance(index, slice):
            return self.slice(index.start, index.stop)
        return self.take(index)

    @torch.inference_mode()
    def through(
        self, network: Any, start: int = 0, stop: int | None = None, then: Any = None
    ) -> torch.Tensor:
        """`then(network.encode(rows))` for rows start..stop-1, in blocks; memory for the answer.

        The blocks are written into one tensor: kept apart, between the large ones that come and
        go, they would cut the heap to pieces (2.4 GB in place of 1.1 GB on a file of 5 GB).
        """
        stop = self.n if stop is None else stop
        step, out = min(ENCODE_ROWS, self.chunk), torch.empty(0)
        for a in range(start, stop, step):
            z = network.encode(self.fed_to(network, slice(a, min(a + step, stop))))
            part = z if then is None else then(z)
            if a == start:
                out = part.new_empty(stop - start, *part.shape[1:])
            out[a - start : a - start + len(part)] = part
        return out

    @property
    def chunk(self) -> int:
        """Rows per block of a full pass."""
        return chunk_rows(self.shape)

    def total_variance(self) -> float:
        """Sum of the variances of all features after scaling, from evenly spread rows."""
        most = max(100, min(VARIANCE_ROWS, VARIANCE_VALUES // math.prod(self.shape)))
        some = np.linspace(0, self.n - 1, min(most, self.n)).round().astype(np.int64)
        return float(self.take(torch.from_numpy(some)).flatten(1).var(0, correction=0).sum())

    def fingerprint(self) -> str:
        """Digest of the rows: all of them in memory, 64 evenly spaced blocks when streamed."""
        digest = hashlib.blake2b(repr((self.n, self.shape)).encode(), digest_size=12)
        starts = range(0, self.n, self.chunk)
        if self.streamed and len(starts) > 64:
            starts = [int(s) for s in np.linspace(0, self.n - self.chunk, 64)]
        for start in starts:
            digest.update(self.slice(start, start + self.chunk).contiguous().numpy().data)
        return digest.hexdigest()

    def _to_tensor(self, block: Any) -> torch.Tensor:
        block = block.toarray() if sp.issparse(block) else np.asarray(block)
        x = torch.from_numpy(np.ascontiguousarray(self.scaling.apply(block)))
        if x.ndim == 3:
            return x.unsqueeze(1)  # grey images get their channel
        return x.permute(0, 3, 1, 2).contiguous() if x.ndim == 4 else x

    def _scaled_csr(self) -> sp.csr_matrix:
        # scaling of a sparse matrix has no shift and one factor: zeros stay where they are
        data = self.source.data.astype(np.float32) * np.float32(self.scaling.factor)
        return sp.csr_matrix((data, self.source.indices, self.source.indptr), self.source.shape)

    def _forget_pages(self, nbytes: int) -> None:
        # pages of a memory map count as ours until we let them go; the file cache keeps them
        limit = 4 * CHUNK_BYTES
        self._read += nbytes
        if self._read > limit and isinstance(self.source, np.memmap):
            self._read = 0
            if self.source.nbytes > limit:
                release(self.source)


def chunk_rows(shape: tuple[int, ...]) -> int:
    return max(1, min(65536, CHUNK_BYTES // (4 * int(np.prod(shape, dtype=np.int64)) or 4)))


def release(array: np.ndarray) -> None:
    """Let the operating system drop the pages of a memory map that were read so far."""
    base = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    if base is not None and hasattr(base, "madvise"):
        base.madvise(mmap.MADV_DONTNEED)


def pick(source: Any, index: np.ndarray) -> Any:  # (m,) -> (m, ...)
    """Rows of any source, by position; pages of a memory map are given back on the way."""
    if not isinstance(source, np.memmap):
        return source[index]
    out = np.empty((len(index), *source.shape[1:]), source.dtype)
    for start in range(0, len(index), 256):
        out[start : start + 256] = source[index[start : start + 256]]
        release(source)
    return out


def fit_scaling(source: Any, choice: str) -> Scaling:
    """Find shift and factor for `choice`; "auto" picks by the shape and the spread of the columns.

    auto      images to 0..1; sparse rows to a mean square of 1; vectors as "global" when their
              columns share a unit, otherwise "standard"
    global    columns centred, one factor for all: mean variance 1 (k-means does not notice)
    standard  each column centred and divided by its own deviation
    unit      divided by the largest absolute value
    none      as given
    """
    one, zero = np.float32(1), np.float32(0)
    if choice == "none":
        check_finite(source)
        return Scaling("none", np.asarray(zero), np.asarray(one))
    if sp.issparse(source):
        check_finite(source)
        if choice == "standard":
            raise ValueError(
                "scale='standard' would fill every zero of a sparse matrix; "
                "use scale='auto', or X.toarray() if it fits in memory"
            )
        values = source.data.astype(np.float64)
        size = source.shape[0] * source.shape[1]
        spread = np.sqrt(np.square(values).sum() / max(size, 1))
        if choice == "unit":
            spread = np.abs(values).max(initial=0)
        return Scaling("global", np.asarray(zero), np.asarray(_inverse(spread)))
    stats = _column_statistics(source)
    image = len(source.shape) > 2
    if choice == "unit" or (choice == "auto" and image):
        largest = max(abs(stats.low.min()), abs(stats.high.max()))
        if choice == "auto":
            is_byte = source.dtype == np.uint8 or (largest > 1 and largest <= 255 and stats.whole)
            largest = 255.0 if is_byte and largest > 16 else max(largest, 1.0)
        return Scaling("unit", np.asarray(zero), np.asarray(_inverse(largest)))
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
        finite = bool(np.isfinite(source.data).all())
    else:
        step, finite = chunk_rows(source.shape[1:]), True
        for start in range(0, source.shape[0], step):
            finite = finite and bool(np.isfinite(np.asarray(source[start : start + step])).all())
            if isinstance(source, np.memmap):
                release(source)
    if not finite:
        raise ValueError(_NOT_FINITE)


_NOT_FINITE = "Input X contains NaN or infinity; drop those rows or fill the gaps before fit"


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
        if (low >= -1 and high <= 1) or (low >= 0 and high <= 255 and self.whole and high > 16):
            return True
        spread = np.sqrt(self.variance)
        spread = spread[spread > 0]
        return spread.size == 0 or spread.max() <= 10 * np.quantile(spread, 0.1, method="lower")


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
        finite = bool(np.isfinite(block).all())
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
        whole, finite = (everyone(world, flags).amin(0) > 0).tolist()
        total, square = world.sum(torch.from_numpy(np.stack([total, square]))).numpy()
        low = everyone(world, torch.from_numpy(low)).amin(0).numpy()
        high = everyone(world, torch.from_numpy(high)).amax(0).numpy()
    if not finite:  # told to all processes first: none may wait for one that has given up
        raise ValueError(_NOT_FINITE)
    offset = total / n
    variance = np.maximum(square / n - offset**2, 0)
    variance[high == low] = 0  # rounding must not make a constant column look alive
    return _Columns(origin + offset, variance, low, high, whole)


def _inverse(spread: Any) -> np.ndarray:
    spread = np.asarray(spread, dtype=np.float64)
    return np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 1).astype(np.float32)


def _channels_first_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (1, *shape)
    return (shape[2], shape[0], shape[1]) if len(shape) == 3 else tuple(shape)
