"""Run folders: everything that one fit leaves behind, in files that any program can read.

``run.toml`` is written first with status "running" and last with status "done". Whatever lies
between is only trusted once it says "done", so a kill at any moment leaves a folder that either
resumes or loads, never one that loads half.
"""

import contextlib
import csv
import dataclasses
import fcntl
import io
import json
import os
import shutil
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from .atomic import atomic, plain, write_atomic, write_toml

FORMAT = 1
CHUNK = 16384  # rows per piece when the whole data pass through the model
PRODUCTS = (
    "labels.csv",
    "embedding.npy",
    "neighbours.npy",
    "history.jsonl",
    "model.json",
    "model.safetensors",
    "model.onnx",
    "recipe.json",
    "recipe.safetensors",
    "report.html",
)
REPLACED = ".run.toml.old"  # a finished run's run.toml, until the run that replaces it is done too


class RunError(ValueError):
    """A run folder cannot be used as asked; the message says what to do."""


@dataclass
class Run:
    """A finished run; read it with `coterie.runs.read`.

    ``meta`` holds run.toml: method, params, seed, threads, data, versions, seconds and scores.
    """

    path: Path
    meta: dict = field(default_factory=dict)

    @cached_property
    def table(self) -> list[list[str]]:
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
        return np.load(self.path / "embedding.npy", mmap_mode="r")

    @property
    def history(self) -> list[dict]:
        lines = (self.path / "history.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


def read(path) -> Run:
    """Open a finished run; anything else is refused with the reason."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a folder; give the --out folder of an earlier fit")
    meta = peek(path)
    if meta is None:
        raise RunError(f"{path} is not a coterie run: it has no readable run.toml")
    if meta["status"] != "done":
        raise RunError(f"{path} is not finished; finish it with: coterie fit --resume --out {path}")
    return Run(path, meta)


def peek(path) -> dict | None:
    """The run.toml of a folder, finished or not; None when the folder is no coterie run."""
    try:
        meta = tomllib.loads((Path(path) / "run.toml").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    if "coterie_run" not in meta or "status" not in meta:
        return None
    if meta["coterie_run"] > FORMAT:
        raise RunError(
            f"{path} has run format {meta['coterie_run']} but this version reads up to {FORMAT}; "
            "install a newer coterie"
        )
    return meta


def check_target(path, *, resume: bool = False, overwrite: bool = False) -> dict | None:
    """Refuse an output folder that must not be written; return its run.toml if it has one."""
    path = Path(path)
    meta = peek(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; --out needs a folder that does not exist yet")
    if meta is None and path.is_dir() and any(not _scrap(p) for p in path.iterdir()):
        raise RunError(f"{path} exists and is not a coterie run; choose another --out")
    if meta is not None and not (resume or overwrite):
        way = "--resume to finish it or " if meta["status"] != "done" else ""
        raise RunError(f"{path} holds a run already; use {way}--overwrite to replace it")
    return meta


@contextlib.contextmanager
def writing(path, meta: dict, *, overwrite: bool = False):
    """Open a run folder for writing, alone; `meta` becomes its run.toml.

    Overwriting leaves the files of the old run where they are until `finish` replaces them, so
    that `withdraw` can bring it back; files that are not a run's stay for good.
    """
    path = Path(path).resolve()
    path.mkdir(parents=True, exist_ok=True)
    with open(path / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{path} is being written by another process; wait for it") from None
        if overwrite:
            # before the new run.toml stands, so that no resume can meet the old checkpoint
            shutil.rmtree(path / "checkpoint", ignore_errors=True)
            if (peek(path) or {}).get("status") == "done":
                write_atomic(path / REPLACED, (path / "run.toml").read_bytes())
        write_toml(path / "run.toml", {"coterie_run": FORMAT, "status": "running"} | meta)
        yield path


def withdraw(path, *, hopeless: bool = False):
    """After an error: leave a run that can go on, or the run that it was to replace, or nothing.

    `hopeless` says that going on would meet the same error: the checkpoint is given up.
    """
    path = Path(path)
    checkpoint = path / "checkpoint"
    if hopeless:
        shutil.rmtree(checkpoint, ignore_errors=True)
    if checkpoint.is_dir() and any(checkpoint.iterdir()):
        return
    if (path / REPLACED).exists():
        os.replace(path / REPLACED, path / "run.toml")
        return
    for name in ("run.toml", *PRODUCTS, ".lock"):
        (path / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty: it holds files of the user's
        checkpoint.rmdir()
    with contextlib.suppress(OSError):
        path.rmdir()


def finish(path, estimator, dataset, meta: dict):
    """Write what a fit has found and mark the run as done.

    Rows keep the order of the data; `dataset.ids` name them.
    """
    path = Path(path)
    for name in (REPLACED, *PRODUCTS):  # of a run that is replaced: from here there is no way back
        (path / name).unlink(missing_ok=True)
    dataset.recipe.save(path)
    estimator.save(path)
    confidence = _write_embedding(path / "embedding.npy", estimator, dataset.given_to(estimator))
    if hasattr(estimator, "neighbours_"):  # (n, k) rows that lie next to each row
        with atomic(path / "neighbours.npy") as file:
            np.save(file, estimator.neighbours_)
    write_atomic(path / "labels.csv", labels_csv(dataset.ids, estimator.labels_, confidence))
    history = getattr(estimator, "history_", [])
    lines = "".join(json.dumps(record, default=plain) + "\n" for record in history)
    write_atomic(path / "history.jsonl", lines.encode())
    write_toml(path / "run.toml", {"coterie_run": FORMAT, "status": "done"} | meta)
    shutil.rmtree(path / "checkpoint", ignore_errors=True)  # nothing is left to resume


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


def describe(estimator) -> dict:
    """The parameters that decide a result; how and where it runs is told elsewhere."""
    skip = {"random_state", "verbose"}
    for f in dataclasses.fields(estimator):
        if f.metadata.get("group") == "run":
            skip.add(f.name)
    return {name: v for name, v in estimator.get_params(deep=False).items() if name not in skip}


@contextlib.contextmanager
def threads_held(n: int | None):
    """Hold all numeric libraries to n threads: the bits of a result depend on their number."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    n = n or before
    torch.set_num_threads(n)
    try:
        with threadpool_limits(n):
            yield n
    finally:
        torch.set_num_threads(before)


def _scrap(path: Path) -> bool:
    """A lock or temporary file of a run that was killed before its run.toml stood."""
    return path.name == ".lock" or path.name.startswith(".run.toml.tmp-")


def _write_embedding(path: Path, estimator, X) -> np.ndarray | None:
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
