"""One fit from data to run folder: what `fit`, `compare` and `demo` share."""

import contextlib
import dataclasses
import os
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.runtime.versions import versions
from coterie.storage import runs

from . import notice
from .source import absolute, check_same, load_for


@dataclass
class Plan:
    """Everything that decides the result of a fit, and where it goes."""

    cls: type
    source: str
    out: str
    n_clusters: int | str | None = None
    seed: int = 0
    params: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)  # of the data
    threads: int | None = None
    time_budget: float | None = None
    quiet: bool = False
    baseline: bool = True


@dataclass
class Fitted:
    """A run that was written just now, with what it was made from still in memory."""

    run: runs.Run
    estimator: Any
    dataset: Any
    outcome: Any
    beside: Any  # k-means on the same rows, None without


def fit_run(plan: Plan, dataset=None, *, resume: bool = False, overwrite: bool = False) -> Fitted:
    """Fit, and write the run folder.

    An interrupt leaves the folder resumable. An error before the first checkpoint, or in training,
    leaves the folder as it was; a run that is overwritten stands until the new one is done.
    """
    from coterie.train.batch import TrainingError

    if dataset is None:
        dataset = _load(plan)
    estimator = _estimator(plan, dataset)
    with runs.threads_held(plan.threads) as threads:
        meta = {
            "method": plan.cls.key,
            "seed": plan.seed,
            "threads": threads,
            "params": runs.describe(estimator),
            "data": {
                "source": absolute(plan.source),
                **plan.options,
                "name": dataset.name,
                "kind": dataset.kind,
                "rows": len(dataset),
                "shape": list(dataset.X.shape[1:]),
                "fingerprint": dataset.fingerprint(),
            },
            "versions": versions(),
        }
        if plan.time_budget:
            meta["time_budget"] = plan.time_budget
        if not overwrite:
            _same_data(plan.out, dataset)
        # every resume takes the same steps: what went wrong in training would again
        flags = {"resume": resume, "overwrite": overwrite, "hopeless": TrainingError}
        with _named_errors(plan.out), runs.writing(plan.out, meta, **flags) as path:
            try:
                estimator.set_params(verbose=int(not plan.quiet), **_run_fields(plan, path))
                with _together():
                    outcome = runs.with_embedding(
                        path, lambda store: estimator.fit_outcome(dataset, store)
                    )
                meta |= {"seconds": estimator.seconds_, "notes": estimator.notes_}
                meta["settings"] = settings_of(estimator)
                scores, beside = score(plan, estimator, dataset, outcome)
                meta |= scores
                runs.finish(path, estimator, dataset, meta, outcome)
            except KeyboardInterrupt:
                print(
                    f"\nstopped; go on with: coterie fit --resume --out {shlex.quote(plan.out)}",
                    file=sys.stderr,
                )
                raise
    return Fitted(runs.read(plan.out), estimator, dataset, outcome, beside)


def settings_of(estimator) -> dict:
    """What the fit was run with, also where a parameter was left open."""
    from coterie.estimator.saving import plain_settings

    found = plain_settings(estimator.settings_)
    return {"rows": found["rows"], "shape": found["shape"], **found["fields"], **found["facts"]}


def _load(plan: Plan):
    return load_for(plan.cls.words, plan.source, plan.options, plan.params.get("encoder"))


def _together():
    """Under torchrun plain methods share their passes as well; deep ones know how to join."""
    if "LOCAL_WORLD_SIZE" not in os.environ:  # torchrun's own variable
        return contextlib.nullcontext()
    from coterie.runtime.processes import join, sharing

    return sharing(join())


def helper_process() -> bool:
    """Whether this process was started to share the work of a fit (--devices, torchrun)."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) > 0


def help_with(plan: Plan, *, overwrite: bool = False):
    """Take part in a fit whose folder another process writes."""
    dataset = _load(plan)
    path = Path(plan.out).resolve()
    fields = _run_fields(plan, path / runs.swap.NEW if overwrite else runs.working_folder(path))
    with runs.threads_held(plan.threads), _together():
        _estimator(plan, dataset).set_params(**fields).fit(dataset)


def _estimator(plan: Plan, dataset):
    """The estimator of a plan, checked before anything is written."""
    from coterie.estimator.params import check_params

    k = plan.n_clusters or _own_classes(dataset)
    estimator = plan.cls(n_clusters=k, random_state=plan.seed, **plan.params)
    check_params(estimator)
    if not isinstance(k, str) and k > len(dataset):
        raise ValueError(
            f"{dataset.name} has {len(dataset)} rows but --clusters is {k}; "
            "lower --clusters or give more rows"
        )
    return estimator


def score(plan: Plan, estimator, dataset, outcome) -> tuple[dict, Any]:
    """Label-free scores, and the classes where known; k-means on the data beside both."""
    from coterie import metrics
    from coterie.common_ground import KMEANS_ROWS, kmeans_baseline, sample

    labels, beside = np.asarray(estimator.labels_), None
    rows = sample(len(labels), KMEANS_ROWS)
    z, proba = np.asarray(outcome.embedding[rows]), outcome.probabilities[rows]
    found, rival = {"scores": _label_free(estimator, z, proba, rows, labels)}, None
    if plan.baseline and plan.cls.key != "kmeans":  # which need not be told of itself
        beside = kmeans_baseline(estimator, dataset.given_to(estimator), labels)
        rival, own = beside.labels, beside.outcome
        found["kmeans"] = _label_free(
            beside.model, own.embedding, own.probabilities, beside.learned_from, rival
        )
        # own embeddings flatter their own clusters: the data are common ground
        found["scores"]["silhouette_on_the_data"] = beside.silhouette_of_result
        found["kmeans"]["silhouette_on_the_data"] = beside.silhouette
        found["kmeans"]["agreement"] = beside.agreement
    if dataset.labels is not None:
        found["evaluation"] = metrics.scores(dataset.labels, labels)
        if rival is not None:
            found["evaluation_kmeans"] = metrics.scores(dataset.labels, rival)
    return found, beside


def _label_free(estimator, z, proba, rows, labels) -> dict:
    """Sizes over all rows; the other scores in the estimator's embedding of a bounded sample."""
    from coterie import metrics

    k = estimator.n_clusters_
    scores = metrics.label_free(z, labels[rows], proba, n_clusters=k)
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    if sizes.sum() < len(labels):
        scores["rejected"] = 1 - float(sizes.sum()) / len(labels)
    scores["clusters_used"] = int((sizes > 0).sum())
    scores["smallest_share"] = float(sizes.min() / sizes.sum())
    scores["largest_share"] = float(sizes.max() / sizes.sum())
    return {**scores, "sizes": sizes.tolist()}


def _own_classes(dataset) -> int:
    if dataset.labels is None:
        raise ValueError("how many clusters? give --clusters K, or --clusters auto with kith")
    k = len(np.unique(dataset.labels))
    notice(f"--clusters not given; {dataset.name} has {k} classes")
    return k


def _run_fields(plan: Plan, path) -> dict:
    """What only methods that train over time understand."""
    known = {f.name for f in dataclasses.fields(plan.cls)}
    fields = {"checkpoint_dir": str(path / "checkpoint"), "time_budget": plan.time_budget}
    return {name: value for name, value in fields.items() if name in known}


def _same_data(out, dataset):
    """A run that is resumed must meet the data that it began with."""
    folder = runs.working_folder(out)
    old = runs.peek(folder)
    if old and (old["status"] != "done" or folder != Path(out)):
        check_same(out, old.get("data", {}), dataset, "restore them or use --overwrite")


@contextlib.contextmanager
def _named_errors(out):
    """A full disk is reported without a path; say which folder was being written."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(out)) from error
        raise
