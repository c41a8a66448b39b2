"""The labels behind a line of the ledger, kept beside it: other scores can be computed later.

A folder `predictions` beside the ledger holds one file a run (`labels`, and `km`: k-means on the
embedding) and one a data set (`true-FINGERPRINT.npz`: the classes), all arrays of small integers.
"""

import hashlib
import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from coterie import metrics
from coterie.storage.atomic import write_atomic

SCORES = ("acc", "nmi", "nmi_geo", "ari")
SPLIT_SEED = 0  # of the rows that are left out where a paper scores a part


class Predictions:
    """Reads and writes the files of one ledger."""

    def __init__(self, ledger_path: Any):
        self.folder = Path(ledger_path).parent / "predictions"

    def save(self, run: dict, classes: Any, labels: Any, km: Any = None) -> str:
        """Keep the labels of a run; returns the name that its line carries."""
        named = {key: run[key] for key in ("method", "variant", "profile", "dataset", "seed")}
        text = json.dumps(named | {"params": run["params"]}, sort_keys=True, default=str)
        name = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        arrays = {"labels": labels} if km is None else {"labels": labels, "km": km}
        self._write(name, arrays)
        true = f"true-{run['fingerprint']}"
        if not self._path(true).exists():
            self._write(true, {"labels": classes})
        return name

    def part_scores(self, run: dict, share: float) -> dict:
        """Scores of a random `share` of the rows, the same rows for every run of a data set.

        Returns
        -------
        dict with acc, nmi, nmi_geo, ari and km (the same of k-means on the embedding, or None);
        empty where the predictions of the run were not kept.
        """
        name, true = run.get("predictions"), f"true-{run.get('fingerprint')}"
        if not name or not self._path(name).exists() or not self._path(true).exists():
            return {}
        found, classes = self.read(name), self.read(true)["labels"]
        kept = part(len(classes), share)
        scored = {key: metrics.scores(classes[kept], labels[kept]) for key, labels in found.items()}
        own = {key: scored["labels"][key] for key in SCORES}
        return own | {"km": scored.get("km")}

    def read(self, name: str) -> dict[str, np.ndarray]:
        return _read(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _write(self, name: str, arrays: dict[str, Any]) -> None:
        buffer = io.BytesIO()
        packed: dict[str, Any] = {key: small(value) for key, value in arrays.items()}
        np.savez_compressed(buffer, **packed)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path(name), buffer.getvalue())


@lru_cache(maxsize=512)
def _read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key].astype(np.int64) for key in file.files}


def small(labels: Any) -> np.ndarray:  # (n,) -> (n,) uint8, or wider where needed
    labels = np.asarray(labels)
    if len(labels) and labels.min() < 0:
        raise ValueError(f"labels go down to {labels.min()}, and clusters are counted from 0")
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def part(n: int, share: float) -> np.ndarray:  # -> (m,) positions, ascending
    """The rows that are scored: a random `share` of n, always the same."""
    order = np.random.default_rng(SPLIT_SEED).permutation(n)
    return np.sort(order[: round(share * n)])
