"""One run folder: its run.toml, which holds its own digest, and what lies beside it."""

import csv
import json
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from .atomic import read_bytes, to_toml, write_atomic
from .locks import RunError, locked
from .renamed import current_names
from .seals import digest, digest_of

FORMAT = 2  # 1 had no digests


@dataclass
class Run:
    """A finished run; read it with `coterie.runs.read`.

    ``meta`` holds run.toml: method, params, seed, threads, data, versions, seconds and scores.
    """

    path: Path
    meta: dict = field(default_factory=dict)

    @cached_property
    def table(self) -> list[list[str]]:
        self.verify("labels.csv")
        path, as_is = self.path / "labels.csv", "surrogateescape"  # see labels_csv
        with open(path, newline="", encoding="utf-8", errors=as_is) as file:
            return list(csv.reader(file))[1:]

    @property
    def ids(self) -> list[str]:
        return [row[0] for row in self.table]

    @property
    def labels(self) -> np.ndarray:
        return np.array([int(row[1]) for row in self.table])

    @property
    def confidence(self) -> np.ndarray:
        return np.array([float(row[2] or "nan") for row in self.table])

    @property
    def embedding(self) -> np.ndarray:
        self.verify("embedding.npy")
        return np.load(self.path / "embedding.npy", mmap_mode="r", allow_pickle=False)

    @property
    def history(self) -> list[dict]:
        self.verify("history.jsonl")
        lines = (self.path / "history.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def verify(self, *names: str) -> None:
        """Refuse files that are not what was written: those named, or all.

        Runs of format 1 have no digests, and are taken as they are.
        """
        known = self.meta.get("files")
        if known is None:
            return
        for name in names or known:
            path = self.path / name
            found = digest_of(path) if path.is_file() else None
            if found != known.get(name):
                what = "is missing" if found is None else "is not what was written there"
                raise RunError(
                    f"{path} {what}: its digest is {found}, not {known.get(name)}. Restore it from "
                    "a copy, write it again, or fit again with --overwrite"
                )

    def add(self, name: str) -> None:
        """Vouch for a file that was written into the folder after the fit."""
        if "files" not in self.meta:
            return
        with locked(self.path):
            if peek(self.path) != self.meta:
                raise RunError(f"{self.path} was replaced by another process; try again")
            self.meta["files"][name] = digest_of(self.path / name)
            write_run_toml(self.path, self.meta)


def peek(path) -> dict | None:
    """The run.toml of a folder, finished or not; None when the folder is no coterie run."""
    file = Path(path) / "run.toml"
    try:
        content = read_bytes(file)
        meta = tomllib.loads(content.decode())
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    if "coterie_run" not in meta or "status" not in meta:
        return None
    found, stored = meta["coterie_run"], meta.pop("seal", None)
    if not isinstance(found, int) or found > FORMAT:
        raise RunError(
            f"{path} has run format {found} but this version reads up to {FORMAT}; "
            "install a newer coterie"
        )
    if (stored or found > 1) and stored != digest(content.partition(b"\n")[2]):
        raise RunError(
            f"{file} is damaged: its digest does not match. Restore it from a copy, or fit again "
            "into another folder"
        )
    for part in ("params", "settings"):
        if isinstance(meta.get(part), dict):
            meta[part] = current_names(meta.get("method"), meta[part])
    return meta


def write_run_toml(folder: Path, meta: dict, **first):
    """The digest of all that follows stands in the first line."""
    text = to_toml(first | meta).encode("utf-8", "replace")
    write_atomic(folder / "run.toml", f'seal = "{digest(text)}"\n'.encode() + text)
