"""One writer at a time in a run folder."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .atomic import is_at

LOCK = ".lock"
# no link is followed, nothing is cut off, and a pipe of that name does not wait for a reader
FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RunError(ValueError):
    """A run folder cannot be used as asked; the message says what to do."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be and removed again if nothing is in it."""
    while True:
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.fdopen(os.open(path / LOCK, FLAGS, 0o666), "rb", 0)
        except FileNotFoundError:
            continue  # the last holder has removed the folder
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir()
            raise
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"{path} is being written by another process; wait for it") from None
            if not is_at(lock.fileno(), path / LOCK):
                continue  # this one was removed with its folder
            try:
                yield
            finally:
                _tidy(path)
            return


def _tidy(path: Path) -> None:
    """Remove a folder that has nothing in it but our lock."""
    with contextlib.suppress(OSError):
        if all(p.name == LOCK for p in path.iterdir()):
            (path / LOCK).unlink(missing_ok=True)
            path.rmdir()
