"""Run folders: everything that one fit leaves behind, in files that any program can read.

``run.toml`` is written first with status "running" and last with status "done". Whatever lies
between is only trusted once it says "done", so a kill at any moment leaves a folder that either
resumes or loads, never one that loads half. It holds its own digest and those of all other files.

A run that replaces another grows in the subfolder ``.coterie-new`` and is moved in when it is done.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np

from . import swap
from .atomic import TEMP, atomic, plain, sweep, to_toml, write_atomic
from .locks import RunError, locked
from .products import EmbeddingFile, labels_csv
from .run import FORMAT, Run, peek, write_run_toml
from .seals import digest_of

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
MOST_THREADS = 1024
MODEL = ("model.json", "model.safetensors", "recipe.json", "recipe.safetensors")  # for predict


def read(path) -> Run:
    """Open a finished run; anything else is refused with the reason."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a folder; give the --out folder of an earlier fit")
    swap.complete(path)
    meta, working = peek(path), working_folder(path)
    if meta is None and working == path and (path / "model.json").is_file():
        raise RunError(
            f"{path} holds a saved model, not a run: the rows of its fit are not known. coterie "
            "predict takes it; for the rest load it in Python (coterie.load, coterie.report)"
        )
    if meta is None and working == path:
        raise RunError(f"{path} is not a coterie run: it has no readable run.toml")
    if meta is None or meta["status"] != "done":
        raise RunError(f"{path} is not finished; finish it with: coterie fit --resume --out {path}")
    if working != path:
        warnings.warn(f"a fit that will replace {path} is not finished yet", stacklevel=2)
    return Run(path, meta)


def working_folder(path) -> Path:
    """Where a run that is not finished stands: beside the one that it shall replace, if any."""
    new = Path(path) / swap.NEW
    return new if (new / "run.toml").is_file() else Path(path)


def check_target(path, *, resume: bool = False, overwrite: bool = False) -> dict | None:
    """Refuse an output folder that must not be written; return the run.toml of what is there.

    That is the unfinished run, if there is one beside a finished one and `resume` is asked for.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; --out needs a folder that does not exist yet")
    swap.complete(path)
    meta, working = peek(path), working_folder(path)
    if meta is None and path.is_dir() and any(not _scrap(p) for p in path.iterdir()):
        raise RunError(f"{path} exists and is not a coterie run; choose another --out")
    unfinished = peek(working) if working != path else None
    if unfinished is not None and (resume or meta is None):
        meta = unfinished | {"status": "running"}  # until it is moved in
    if meta is not None and not (resume or overwrite):
        way = "--resume to finish it or " if unfinished or meta["status"] != "done" else ""
        raise RunError(f"{path} holds a run already; use {way}--overwrite to replace it")
    return meta


@contextlib.contextmanager
def writing(path, meta: dict, *, resume: bool = False, overwrite: bool = False, hopeless=()):
    """Open a run folder for writing, alone; `meta` becomes its run.toml. Yields where to write.

    After an error there is a run that can go on, or the folder is as it was. `hopeless` are errors
    that going on would meet again: checkpoints of this run are given up. An overwritten run stands
    until the new one is done; files that are not a run's stay for good.
    """
    path = Path(path).resolve()
    with locked(path):
        # what was looked at before the data were read may have changed since
        old = check_target(path, resume=resume, overwrite=overwrite)
        if resume and not overwrite:
            _check_same_run(path, old, meta)
        folder = swap.begin(path) if overwrite else working_folder(path)
        present = set(os.listdir(folder))
        for place in (path, folder, folder / "checkpoint"):
            sweep(place)
        try:
            write_run_toml(folder, meta, coterie_run=FORMAT, status="running")
            yield folder
            if folder != path:
                swap.commit(folder, drop=(*PRODUCTS, "checkpoint"))
        except Exception as error:
            _withdraw(path, folder, present, isinstance(error, hopeless))
            raise


def with_embedding(folder, find):
    """The outcome of `find(store)`, its embedding in the folder's embedding.npy."""
    with EmbeddingFile(Path(folder) / "embedding.npy") as file:
        outcome = find(file.add)
    outcome.embedding = file.load()
    return outcome


def finish(folder, estimator, dataset, meta: dict, outcome=None):
    """Write what a fit has found and mark the run as done.

    Rows keep the order of the data; `dataset.ids` name them. `outcome` is that of `with_embedding`;
    without it the model is asked once more.
    """
    folder = Path(folder)
    if outcome is None:
        X = dataset.given_to(estimator)
        outcome = with_embedding(folder, lambda store: estimator.outcome(X, store))
    for name in set(PRODUCTS) - {"embedding.npy"}:  # of an attempt that was killed at this point
        (folder / name).unlink(missing_ok=True)
    dataset.recipe.save(folder)
    estimator.save(folder)
    if hasattr(estimator, "neighbours_"):  # (n, k) rows that lie next to each row
        with atomic(folder / "neighbours.npy") as file:
            np.save(file, estimator.neighbours_)
    confidence = outcome.probabilities.max(axis=1)
    write_atomic(folder / "labels.csv", labels_csv(dataset.ids, estimator.labels_, confidence))
    history = getattr(estimator, "history_", [])
    lines = "".join(json.dumps(record, default=plain) + "\n" for record in history)
    write_atomic(folder / "history.jsonl", lines.encode())
    made = {name: digest_of(folder / name) for name in PRODUCTS if (folder / name).exists()}
    write_run_toml(folder, meta | {"files": made}, coterie_run=FORMAT, status="done")
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)  # nothing is left to resume


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

    before, most = torch.get_num_threads(), max(MOST_THREADS, os.cpu_count() or 1)
    n = n or before
    if n > most:  # torch ends in a crash when the system has no more to give
        raise RunError(f"--threads is {n:,}, over {most}; as many as there are cores is usual")
    torch.set_num_threads(n)
    try:
        with threadpool_limits(n):
            yield n
    finally:
        torch.set_num_threads(before)


def _check_same_run(path: Path, old: dict | None, meta: dict):
    """The run that is to go on must still be the one that was looked at."""
    if old is None:
        return
    if old["status"] == "done":
        raise RunError(f"{path} was finished by another process; use --overwrite to replace it")
    for name in ("method", "seed", "params"):
        was, now = (to_toml({name: m.get(name)}) for m in (old, meta))
        if was != now:
            raise RunError(f"{path} holds another run by now: {name} differs; choose another --out")


def _withdraw(path: Path, folder: Path, present: set[str], hopeless: bool):
    """Remove what this run has made, unless it can go on; what was `present` stays."""
    if not folder.is_dir() or (folder == path and _is_done(path)):
        return
    checkpoint = folder / "checkpoint"
    if checkpoint.is_dir() and any(checkpoint.iterdir()) and not hopeless:
        return
    if folder != path and not present:
        swap.remove(folder)
    for name in {"run.toml", "checkpoint", *PRODUCTS} - present:
        swap.remove(folder / name)


def _is_done(path: Path) -> bool:
    return (peek(path) or {}).get("status") == "done"


def _scrap(path: Path) -> bool:
    """A lock or temporary file of a run that was killed before its run.toml stood."""
    return path.name in (".lock", swap.NEW) or path.name.startswith((TEMP, ".run.toml.tmp-"))
