"""Numbers that are too many for memory, written once to a .npy file by all who ask for them.

The rows are cut into parts. Every process of a fit takes parts that nobody else is at work on, the
first of them by its rank, so that they read different files at the same time. A lock shows that
somebody is at work on a part; it is free again when that process has died, and another one does
the part anew. A part that is done has a file with the ranges of its columns.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from coterie.runtime.progress import Progress
from coterie.storage.atomic import sync_folder, write_atomic
from coterie.storage.seals import digest_of

from .errors import DataError

Blocks = Callable[[int], Iterable[np.ndarray]]  # part -> its rows (b, d), one after the other


def cache_folder() -> Path:
    """Where unpacked files are kept: $COTERIE_CACHE, else the user's cache folder."""
    if os.environ.get("COTERIE_CACHE"):
        return Path(os.environ["COTERIE_CACHE"]).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coterie"


class Unpacking:
    """One .npy file in the making: `rows`, and a file for each part that is done."""

    def __init__(self, path: Path, dtype: str, width: int, sizes: list[int], name: str, tell):
        self.path, self.name, self.sizes, self.tell = path, name, sizes, tell
        self.dtype, self.shape = np.dtype(dtype), (sum(sizes), width)
        self.bytes = self.dtype.itemsize * self.shape[0] * self.shape[1]
        self.folder = path.with_suffix(f".{self.dtype.name}")
        self.rows = self.folder / "rows.npy"
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()

    def run(self, blocks: Blocks) -> tuple[np.ndarray, np.ndarray] | None:
        """Have all parts done, by us or by others; the smallest and largest value of each column.

        None when somebody else has finished the whole file meanwhile.
        """
        try:
            if not self._begin():
                return None
            self._do_parts(blocks)
            done = [json.loads(self._done(i).read_bytes()) for i in range(len(self.sizes))]
        except FileNotFoundError:
            if self.path.exists():  # and has swept up
                return None
            raise
        except DataError:  # the data must change, and then they have another name here
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        low = np.min([part["low"] for part in done], axis=0)
        return low, np.max([part["high"] for part in done], axis=0)

    def finish(self) -> None:
        """Seal the file and give it its name."""
        with locked(self.path.with_suffix(".lock")):
            if not self.path.exists():
                write_atomic(self.path.with_suffix(".digest"), digest_of(self.rows).encode())
                os.replace(self.rows, self.path)
                sync_folder(self.path.parent)
            for folder in self.path.parent.glob(f"{self.path.stem}.float*"):
                shutil.rmtree(folder, ignore_errors=True)

    def _begin(self) -> bool:
        """Make the file that the parts are written to, unless somebody has done more already."""
        with locked(self.path.with_suffix(".lock")):
            if self.path.exists() or self.rows.exists():
                return not self.path.exists()
            self.folder.mkdir(exist_ok=True)
            self._check_room()
            unfinished = self.folder / "new.npy"
            np.lib.format.open_memmap(unfinished, "w+", self.dtype, self.shape).flush()
            os.replace(unfinished, self.rows)
            gigabytes = f"{self.bytes / 1e9:.1f} GB of numbers"
            self.tell(f"{self.name}: {gigabytes} are unpacked once into {self.path}")
            return True

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.folder).free
        if self.bytes > free:
            raise DataError(
                f"{self.name} holds {self.bytes / 1e9:.1f} GB of numbers, and {self.path.parent} "
                f"has room for {free / 1e9:.1f} GB. Set COTERIE_CACHE to a folder with more room"
            )

    def _do_parts(self, blocks: Blocks) -> None:
        n, rank = len(self.sizes), int(os.environ.get("RANK", "0"))
        first = n * rank // int(os.environ.get("WORLD_SIZE", "1"))
        order = [(first + i) % n for i in range(n)]
        with Progress(sys.stderr.isatty() and rank == 0) as progress:
            progress.phase(f"unpack {self.name}", total_steps=n)
            for wait in (False, True):  # what nobody is at work on, then what the others have left
                for step, i in enumerate(order):
                    if not self._done(i).exists():
                        with locked(self.folder / f"{i}.lock", wait) as mine:
                            if mine and not self._done(i).exists():
                                self._write(i, blocks)
                    progress.step(n if wait else step)

    def _write(self, i: int, blocks: Blocks) -> None:
        low, high = np.full(self.shape[1], np.inf), np.full(self.shape[1], -np.inf)
        at = np.load(self.rows, mmap_mode="r").offset
        at += self.starts[i] * self.shape[1] * self.dtype.itemsize
        with open(self.rows, "r+b") as file:
            file.seek(at)
            for block in blocks(i):
                low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
                file.write(np.ascontiguousarray(block, self.dtype).data)
            file.flush()
            os.fsync(file.fileno())
        about = {"low": low.tolist(), "high": high.tolist()}
        write_atomic(self._done(i), json.dumps(about).encode())

    def _done(self, i: int) -> Path:
        return self.folder / f"{i}.json"


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file; False when somebody else has it and we do not wait."""
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
