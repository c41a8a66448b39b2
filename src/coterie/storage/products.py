"""The files of a run that are tables: labels for each row, and the embedding."""

import csv
import io
from pathlib import Path

import numpy as np

from .atomic import atomic

CHUNK = 16384  # rows per piece when the whole data pass through the model


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


def write_embedding(path: Path, estimator, X) -> np.ndarray | None:
    """Save transform(X) piece by piece, for data that do not fit in memory.

    Returns the confidence of each row, when the method has soft assignments.
    """
    rows, confidence = X.shape[0], []
    soft = hasattr(estimator, "predict_proba")
    with atomic(path) as file:
        for start in range(0, rows, CHUNK):
            part = X[start : start + CHUNK]
            z = np.ascontiguousarray(estimator.transform(part), dtype=np.float32)
            if start == 0:
                header = {"descr": "<f4", "fortran_order": False, "shape": (rows, *z.shape[1:])}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(z.astype("<f4").tobytes())
            if soft:
                confidence.append(np.max(estimator.predict_proba(part), axis=1))
    return np.concatenate(confidence) if soft else None
