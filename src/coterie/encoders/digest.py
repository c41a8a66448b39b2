"""SHA-256 of what an encoder is made of."""

import functools
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

_BLOCK = 1 << 20


def file_digest(path: str | os.PathLike) -> str:
    """SHA-256 of a file; asked again for the same file, it is not read again."""
    path = Path(path)
    stat = path.stat()
    return _file_digest(str(path.resolve()), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _file_digest(path: str, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def combined(parts: Iterable[str]) -> str:
    """SHA-256 of several texts, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()
