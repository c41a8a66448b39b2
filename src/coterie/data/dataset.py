"""What every reader hands back: rows, their names, and how they were read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import DataError
from .recipe import Recipe

KINDS = ("image", "table", "vector", "text", "counts")

_BLOCK = 1 << 20  # bytes hashed at a time
_SAMPLED_ABOVE = 64 << 20  # memory maps above this size are hashed in part
_SAMPLED_BLOCKS = 64


@dataclass
class Dataset:
    """Rows to cluster, in the order of the source.

    Attributes
    ----------
    X : ndarray, memmap or CSR matrix
        (n, d), or images as (n, h, w) or (n, h, w, c); ``uint8`` images stay ``uint8``.
    ids : list of str, or range
        One name per row: file names, the id column, or the position from 0.
    kind : {"image", "table", "vector", "text", "counts"}
    name : str
        Short name of the source, for titles and folders.
    columns, texts : list of str, optional
        Names of the columns (tables) and the documents (text).
    labels, label_names : ndarray of int and list of str, optional
        Known classes. Only evaluation may look at them.
    recipe : Recipe
        How the rows were read, so that new rows can be read in the same way.
    """

    X: Any
    ids: Sequence
    kind: str
    name: str
    columns: list[str] | None = None
    texts: list[str] | None = None
    labels: np.ndarray | None = None
    label_names: list[str] | None = None
    recipe: Recipe = field(default_factory=Recipe)
    unread: Any = None  # (n, ...) what an encoder takes in place of `X`, which is there to look at

    def __post_init__(self):
        if self.kind not in KINDS:
            raise DataError(f"kind is '{self.kind}'; it must be one of {', '.join(KINDS)}")
        for what, values in (("ids", self.ids), ("texts", self.texts), ("labels", self.labels)):
            if values is not None and len(values) != len(self):
                raise DataError(
                    f"{self.name}: {len(values)} {what} for {len(self)} rows; give one per row"
                )

    def __repr__(self) -> str:
        known = f", {len(self.label_names)} known classes" if self.label_names else ""
        return f"<Dataset {self.name}: {len(self)} rows of {self.X.shape[1:]}, {self.kind}{known}>"

    def __len__(self) -> int:
        return self.X.shape[0]

    def given_to(self, model) -> Any:
        """Return what a model takes: rows as they came if it has an encoder of them, else `X`.

        A model that has tried both and taken the words has none.
        """
        words_taken = hasattr(model, "tried_") and not hasattr(model, "encoding_")
        encoder = None if words_taken else getattr(model, "encoder", None)
        if self.unread is not None and encoder is not None:
            return self.unread
        if self.texts is not None and encoder is not None:
            return np.array([*self.texts, None], dtype=object)[:-1]  # never an array of characters
        return self.X

    def fingerprint(self) -> str:
        """Return 32 hex digits that change with shape, dtype or content of `X`.

        Everything is hashed, except in memory maps above 64 MB: there 64 blocks of 1 MB spread
        evenly from the first byte to the last stand for the whole (a change between them is
        missed), together with the size.
        """
        return fingerprint(self.X)


def fingerprint(X) -> str:
    """Return the BLAKE2b digest of an array, memory map or CSR matrix."""
    digest = hashlib.blake2b(digest_size=16)
    if hasattr(X, "indptr"):
        digest.update(f"csr {tuple(map(int, X.shape))} {X.dtype.str}".encode())
        X = X if X.has_sorted_indices else X.sorted_indices()
        for part in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()
    digest.update(f"dense {tuple(map(int, X.shape))} {X.dtype.str}".encode())
    if X.size == 0:
        return digest.hexdigest()
    rows = max(1, _BLOCK // max(1, X.nbytes // len(X)))
    starts = range(0, len(X), rows)
    if isinstance(X, np.memmap) and X.nbytes > _SAMPLED_ABOVE and len(starts) > _SAMPLED_BLOCKS:
        picked = np.linspace(0, len(X) - rows, _SAMPLED_BLOCKS).astype(np.int64)
        starts = [int(start) for start in picked]
    for start in starts:
        block = np.ascontiguousarray(X[start : start + rows])
        digest.update(block.data)
    return digest.hexdigest()
