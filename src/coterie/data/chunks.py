"""Large sources in pieces: how many rows at a time, and memory maps that give their pages back."""

import math
import mmap
from typing import Any

import numpy as np

CHUNK_BYTES = 64 << 20  # what a full pass holds in memory at a time


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


def epoch_steps(n: int, batch_size: int) -> int:
    """Batches of an epoch; a single row that is left over joins the last of them.

    It has no deviation, and layers that look for one fail.
    """
    steps = math.ceil(n / batch_size)
    return steps - 1 if steps > 1 and n % batch_size == 1 < batch_size else steps
