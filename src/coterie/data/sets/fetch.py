"""Stored sets that can also be had from the internet, through scikit-learn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .stored import DIGITS, FASHION, Raw


@dataclass(frozen=True)
class Remote:
    """Where OpenML keeps a set, and what must come back."""

    data_id: int
    shape: tuple[int, ...]
    names: list[str]
    digest: str | None  # of the rows with their labels, in any order; None where it is unknown


OPENML = {
    "mnist": Remote(554, (70000, 28, 28), DIGITS, "2f2b79689234621ec69cf3857d96b026"),
    "fashion_mnist": Remote(40996, (70000, 28, 28), FASHION, "688b4b774a0e62ad99e1c4331089fc50"),
    # real numbers, printed with other precision elsewhere: only the size can be checked
    "usps": Remote(41082, (9298, 16, 16), DIGITS, None),
    "pendigits": Remote(32, (10992, 16), DIGITS, "8d6d0f34ac96e870d2d25abf5ad0cb8e"),
    "optdigits": Remote(28, (5620, 8, 8), DIGITS, "b6259fce799d1ea90b753c1af4b83351"),
}
REMOTE = frozenset([*OPENML, "20newsgroups"])


def fetch(name: str, notice) -> Raw:
    """Download a set (scikit-learn keeps it in its own folder) and check what came."""
    notice(f"data set {name} is not on this machine: fetching it with scikit-learn")
    try:
        return _news() if name == "20newsgroups" else _openml(name)
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"data set {name} is not on this machine and could not be fetched ({error}); "
            "set COTERIE_DATA or data_dir= to the folder that holds it"
        ) from None


def _openml(name: str) -> Raw:
    import importlib.util

    from sklearn.datasets import fetch_openml

    remote = OPENML[name]
    parser = "auto" if importlib.util.find_spec("pandas") else "liac-arff"
    bunch = fetch_openml(data_id=remote.data_id, as_frame=False, parser=parser)
    X, labels = np.asarray(bunch.data), np.asarray(bunch.target).astype(np.float64).astype(np.int64)
    if X.size != np.prod(remote.shape) or len(labels) != remote.shape[0]:
        raise DataError(f"{name} came with shape {X.shape}; {remote.shape} was expected")
    labels = labels - labels.min()  # USPS counts its digits from 1
    X = X.reshape(remote.shape)
    if name == "usps":
        return Raw(((X + 1) / 2).astype(np.float32), labels, remote.names)
    X = X.astype(np.uint8)
    if remote.digest and rows_digest(X, labels) != remote.digest:
        raise DataError(f"{name} came with other values than expected (digest differs)")
    return Raw(X, labels, remote.names)


def rows_digest(X: np.ndarray, labels: np.ndarray) -> str:
    """Return a digest of byte rows with their labels that does not depend on their order."""
    rows = np.column_stack([X.reshape(len(X), -1), labels.astype(np.uint8)])
    each = sorted(hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
    return hashlib.blake2b(b"".join(each), digest_size=16).hexdigest()


def _news() -> Raw:
    from sklearn.datasets import fetch_20newsgroups

    bunch: Any = fetch_20newsgroups(subset="all", shuffle=False)
    if len(bunch.data) != 18846:
        raise DataError(f"20newsgroups came with {len(bunch.data)} documents, not 18846")
    return Raw(list(bunch.data), np.asarray(bunch.target, np.int64), list(bunch.target_names))
