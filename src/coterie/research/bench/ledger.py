"""The ledger: one JSON line for each finished run, appended by any number of campaigns at once."""

import contextlib
import fcntl
import hashlib
import json
import math
import os
from pathlib import Path

from coterie.storage.renamed import current_names

KEYS = (
    "method",
    "variant",
    "profile",
    "dataset",
    "fingerprint",
    "seed",
    "params",
    "acc",
    "nmi",
    "nmi_geo",
    "ari",
    "km",
    "label_free",
    "aee",
    "seconds",
    "rss_mb",
    "threads",
    "versions",
    "status",
    "predictions",
)
NAME = ("method", "variant", "profile", "dataset", "seed")
EPS, NAMED_IT = 1e-8, ("cm", "cnet")  # Adam's before lines had it, and methods that always did


class Ledger:
    """A file of runs that only grows.

    A line is written by one call under a lock and reaches the disk before the call returns, so a
    crash can tear the last line at most. Readers skip a torn line; the next writer ends it.
    """

    def __init__(self, path):
        self.path = Path(path)

    def read(self) -> list[dict]:
        """All runs that can be read, in the order in which they finished.

        Parameters have the names of today, whatever they were called when a line was written; one
        that was fixed then has the value that it had.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        runs = []
        for line in lines:
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    if isinstance(record.get("params"), dict):
                        record["params"] = current_names(record.get("method"), record["params"])
                        if "lr" in record["params"] and record["method"] not in NAMED_IT:
                            record["params"].setdefault("eps", EPS)
                    runs.append(record)
        return runs

    def append(self, record: dict):
        """Add one run; its keys must be exactly `KEYS` (`predictions` may be left out)."""
        record = {"predictions": None} | record
        if set(record) != set(KEYS):
            odd = ", ".join(sorted(set(record) ^ set(KEYS)))
            raise ValueError(f"a run has the keys of bench.ledger.KEYS; these differ: {odd}")
        plain = {key: _plain(record[key]) for key in KEYS}
        line = json.dumps(plain, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
                line = b"\n" + line  # close the line that a crash has torn
            written = 0
            while written < len(line):
                written += file.write(line[written:])
            os.fsync(file.fileno())

    def find(self, wanted: dict) -> dict | None:
        """The latest run with this name and these parameters."""
        return next((r for r in reversed(self.read()) if same_run(r, wanted)), None)

    @contextlib.contextmanager
    def claim(self, wanted: dict):
        """Hold a run for this process; yields False when another process is at it.

        The claim is a lock on an open file: it ends with the process, however that ends.
        """
        folder = self.path.parent / ".claims"
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({k: _plain(wanted[k]) for k in (*NAME, "params")}, sort_keys=True)
        path = folder / (hashlib.blake2b(text.encode(), digest_size=16).hexdigest() + ".lock")
        with open(path, "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)


def same_run(a: dict, b: dict) -> bool:
    """Whether two records name the same run.

    Parameters are compared where both records have them: a parameter that a later version adds
    does not make earlier runs worthless, one whose value differs does.
    """
    if any(a.get(key) != b.get(key) for key in NAME):
        return False
    left, right = _plain(a.get("params") or {}), _plain(b.get("params") or {})
    return all(left[key] == right[key] for key in left.keys() & right.keys())


def _plain(value):
    """Values as JSON keeps them: tuples are lists, NaN is null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
