"""The files of a run that are tables: labels for each row, and the embedding."""

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from .atomic import atomic


def labels_csv(ids, labels, confidence=None, proba=None) -> bytes:
    """id,label,confidence lines; no time stamps, so equal runs give equal bytes.

    `proba` (n, k) adds a column p0, p1, ... for each cluster.
    """
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    more = [] if proba is None else [f"p{j}" for j in range(proba.shape[1])]
    out.writerow(["id", "label", "confidence", *more])
    for i, (row, label) in enumerate(zip(ids, labels, strict=True)):
        sure = "" if confidence is None else f"{confidence[i]:.6g}"
        soft = [] if proba is None else [f"{p:.6g}" for p in proba[i]]
        out.writerow([row, int(label), sure, *soft])
    # a file name need not be UTF-8: Python holds such bytes as surrogates and gives them back here
    return text.getvalue().encode("utf-8", "surrogateescape")


class EmbeddingFile:
    """An .npy file that is written block by block: the rows may not fit in memory.

    It takes its name when the `with` block ends well, and is not begun before the first block.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file: Any = None
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def add(self, block: np.ndarray, n: int) -> None:
        """The next rows of n."""
        if self._file is None:
            self._file = self._stack.enter_context(atomic(self.path))
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, *block.shape[1:])}
            np.lib.format.write_array_header_1_0(self._file, header)
        self._file.write(np.ascontiguousarray(block, dtype="<f4").tobytes())

    def load(self) -> np.ndarray:
        return np.load(self.path, mmap_mode="r", allow_pickle=False)
