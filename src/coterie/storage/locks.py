"""One writer at a time in a run folder."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"


class RunError(ValueError):
    """A run folder cannot be used as asked; the message says what to do."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be and removed again if nothing is in it."""
    while True:
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock = open(path / LOCK, "w")  # noqa: SIM115
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
            if not _is(lock, path / LOCK):
                continue  # this one was removed with its folder
            try:
                yield
            finally:
                _tidy(path)
            return


def _is(file, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _tidy(path: Path) -> None:
    """Remove a folder that has nothing in it but our lock."""
    with contextlib.suppress(OSError):
        if all(p.name == LOCK for p in path.iterdir()):
            (path / LOCK).unlink(missing_ok=True)
            path.rmdir()
