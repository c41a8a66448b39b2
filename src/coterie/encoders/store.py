"""Vectors on disk, found by the content of a row: what was embedded once is never embedded again.

A folder for each encoder holds shards, safetensors files with the keys of some rows and their
vectors. A shard takes its name, the digest of its bytes, in one step: a kill leaves whole shards
only, and one that was changed is not believed.
"""

import functools
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from ..data.options import warn
from ..storage.atomic import sweep, write_atomic

KEY = 16  # bytes of a row's key


class Store:
    """The shards of one encoder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Which of the keys (m,) are known, (m,) bool, and vectors (m, d), zero where not.

        Vectors are None when no key is known. `wanted` is sorted and holds no key twice.
        """
        known, vectors = np.zeros(len(wanted), bool), None
        for path in sorted(self.folder.glob("*.safetensors")):
            keys = _keys(path)
            spot = np.searchsorted(wanted, keys)
            spot[spot == len(wanted)] = 0
            hit = np.flatnonzero((wanted[spot] == keys) & ~known[spot])
            if not len(hit):
                continue
            with safe_open(path, "numpy") as shard:
                found: Any = shard.get_tensor("vectors")
            if vectors is None:
                vectors = np.zeros((len(wanted), found.shape[1]), np.float32)
            vectors[spot[hit]] = found[hit]
            known[spot[hit]] = True
        return known, vectors

    def add(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Keep the vectors (m, d) of some keys (m,)."""
        table = np.frombuffer(keys.tobytes(), np.uint8).reshape(len(keys), KEY)
        content = save({"keys": table, "vectors": np.ascontiguousarray(vectors, np.float32)})
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        write_atomic(self.folder / f"{_name(content)}.safetensors", content)


def _name(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _keys(path: Path) -> np.ndarray:
    stat = path.stat()
    return _read_keys(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _read_keys(path: Path, size: int, changed: int) -> np.ndarray:
    """The keys of a shard; none of one whose bytes are not those that it was named after."""
    if _name(path.read_bytes()) != path.stem:
        warn(f"{path} is damaged and is not used; delete it")
        return np.empty(0, f"S{KEY}")
    with safe_open(path, "numpy") as shard:
        table: Any = shard.get_tensor("keys")
    return np.frombuffer(table.tobytes(), f"S{KEY}")
