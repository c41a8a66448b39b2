"""What a file may be: regular, and not far larger unpacked than packed."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from .errors import DataError

ROOM = 256 << 20  # bytes that may come of any file, however small
RATIO = 100  # and of a larger one so many times its size; text and numbers shrink tenfold or so
ALLOWED = "COTERIE_MAX_UNPACKED"  # the variable that raises the limit, in bytes


def check_regular(path: Path) -> None:
    """Refuse pipes and devices: reading them may never end."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is not a regular file but a pipe or a device; give a file")


def most_unpacked(packed: int) -> int:
    """Bytes that may come of a file of so many."""
    try:
        allowed = int(float(os.environ.get(ALLOWED) or 0))
    except (ValueError, OverflowError):
        raise DataError(
            f"{ALLOWED}={os.environ[ALLOWED]!r} is not a number of bytes; give one, such as 4e9"
        ) from None
    return max(ROOM, RATIO * packed, allowed)


def check_unpacked(path: Path | str, packed: int, unpacked: int) -> None:
    """Refuse a file that would fill the memory: a mistake, or made for it."""
    if unpacked > most_unpacked(packed):
        raise DataError(
            f"{path} has {packed:,} bytes and would take {unpacked:,} or more in memory, over "
            f"{RATIO} times as many; if that is as it should be, allow it: {ALLOWED}={unpacked}"
        )


class Unzipped(gzip.GzipFile):
    """A gzip file that stops when far more comes out than went in: its true size stands nowhere."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.path, self.packed, self.seen = path, path.stat().st_size, 0
        self.most = most_unpacked(self.packed)

    def read(self, size: int | None = -1) -> bytes:
        return self._count(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._count(super().read1(size))

    def _count(self, data: bytes) -> bytes:
        self.seen += len(data)
        if self.seen > self.most:
            check_unpacked(self.path, self.packed, self.seen)
        return data
