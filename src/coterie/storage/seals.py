"""Digests: how a damaged file is told from the one that was written."""

import hashlib
import json
import os

BLOCK = 1 << 20


def digest(*parts: bytes | memoryview) -> str:
    """32 hex digits that change with every bit of the parts, taken as one."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()


def digest_of(path: str | os.PathLike) -> str:
    """The digest of a file, which need not fit in memory."""
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def seal(value: dict) -> str:
    """The digest of plain values, whatever the order of their keys and the layout of their file."""
    return digest(json.dumps(value, sort_keys=True, default=str).encode())
