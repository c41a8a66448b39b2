"""One fit from data to run folder: what `fit`, `compare` and `demo` share."""

import contextlib
import dataclasses
import sys
from dataclasses import dataclass, field

import numpy as np

from coterie import runs

from .source import absolute, load

BASELINE_ROWS = 20_000  # k-means beside the method sees at most this many rows, labels all


@dataclass
class Plan:
    """Everything that decides the result of a fit, and where it goes."""

    cls: type
    source: str
    out: str
    n_clusters: int | None = None
    seed: int = 0
    params: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)  # of the data
    threads: int | None = None
    time_budget: float | None = None
    quiet: bool = False
    baseline: bool = True


def fit_run(plan: Plan, dataset=None, *, overwrite: bool = False):
    """Fit, and write the run folder.

    An interrupt leaves the folder resumable. An error before the first checkpoint leaves nothing
    behind.

    Returns
    -------
    run : coterie.runs.Run
    """
    from coterie.params import check_params

    if dataset is None:
        dataset = load(plan.source, plan.options)
    k = plan.n_clusters or _own_classes(dataset)
    estimator = plan.cls(n_clusters=k, random_state=plan.seed, **plan.params)
    check_params(estimator)
    if k > len(dataset):
        raise ValueError(
            f"{dataset.name} has {len(dataset)} rows but --clusters is {k}; "
            "lower --clusters or give more rows"
        )
    with _threads(plan.threads) as threads:
        meta = {
            "method": plan.cls.key,
            "seed": plan.seed,
            "threads": threads,
            "params": describe(estimator),
            "data": {
                "source": absolute(plan.source),
                **plan.options,
                "name": dataset.name,
                "kind": dataset.kind,
                "rows": len(dataset),
                "shape": list(dataset.X.shape[1:]),
                "fingerprint": dataset.fingerprint(),
            },
            "versions": runs.versions(),
        }
        if plan.time_budget:
            meta["time_budget"] = plan.time_budget
        _same_data(plan.out, meta)
        with _named_errors(plan.out), runs.writing(plan.out, meta, overwrite=overwrite) as path:
            try:
                dataset.recipe.save(path)
                estimator.set_params(verbose=int(not plan.quiet), **_run_fields(plan, path))
                estimator.fit(dataset.X)
                meta |= {"seconds": estimator.seconds_} | score(plan, estimator, dataset)
                runs.finish(path, estimator, dataset, meta)
            except KeyboardInterrupt:
                print(
                    f"\nstopped; go on with: coterie fit --resume --out {plan.out}",
                    file=sys.stderr,
                )
                raise
            except Exception:
                runs.withdraw(path)
                raise
    return runs.read(plan.out)


def describe(estimator) -> dict:
    """The parameters that decide a result; how and where it runs is told elsewhere."""
    skip = {"random_state", "verbose"}
    for f in dataclasses.fields(estimator):
        if f.metadata.get("group") == "run":
            skip.add(f.name)
    return {name: v for name, v in estimator.get_params(deep=False).items() if name not in skip}


def score(plan: Plan, estimator, dataset) -> dict:
    """Label-free scores, k-means on the raw data beside them, and the classes where known."""
    from coterie import metrics

    X, labels = dataset.X, np.asarray(estimator.labels_)
    found = {"scores": _label_free(estimator, X, labels)}
    rival = None
    if plan.baseline:
        rival, simple = _kmeans_beside(plan, estimator, X)
        found["kmeans"] = {
            **_label_free(simple, X, rival),
            "agreement": metrics.ari(rival, labels),
        }
    if dataset.labels is not None:
        found["evaluation"] = metrics.scores(dataset.labels, labels)
        if rival is not None:
            found["evaluation_kmeans"] = metrics.scores(dataset.labels, rival)
    return found


def _label_free(estimator, X, labels) -> dict:
    """Scores of labels in the estimator's embedding, on a bounded number of rows."""
    from coterie import metrics

    rows = _sample(X.shape[0])
    proba = estimator.predict_proba(X[rows]) if hasattr(estimator, "predict_proba") else None
    scores = metrics.label_free(estimator.transform(X[rows]), labels[rows], proba)
    sizes = np.bincount(labels, minlength=estimator.n_clusters)
    return {**scores, "clusters_used": int((sizes > 0).sum()), "sizes": sizes.tolist()}


def _kmeans_beside(plan: Plan, estimator, X):
    """Plain k-means as a user would run it, on the same rows with the same scaling."""
    from coterie.registry import get

    cls = get("kmeans")
    if isinstance(estimator, cls):
        return np.asarray(estimator.labels_), estimator
    rows = _sample(X.shape[0])
    part = X[rows] if len(rows) >= estimator.n_clusters else X
    simple = cls(
        n_clusters=estimator.n_clusters, random_state=plan.seed, scale=estimator.scale
    ).fit(part)
    return np.asarray(simple.predict(X)), simple


def _sample(n: int) -> np.ndarray:
    """Rows spread evenly over the data: no draw, so nothing to seed."""
    return np.unique(np.linspace(0, n - 1, min(n, BASELINE_ROWS)).astype(np.int64))


def _own_classes(dataset) -> int:
    if dataset.labels is None:
        raise ValueError("how many clusters? give --clusters K")
    k = len(np.unique(dataset.labels))
    print(f"coterie: note: --clusters not given; {dataset.name} has {k} classes", file=sys.stderr)
    return k


def _run_fields(plan: Plan, path) -> dict:
    """What only methods that train over time understand."""
    known = {f.name for f in dataclasses.fields(plan.cls)}
    fields = {"checkpoint_dir": str(path / "checkpoint"), "time_budget": plan.time_budget}
    return {name: value for name, value in fields.items() if name in known}


def _same_data(out, meta: dict):
    """A run that is resumed must meet the data that it began with."""
    old = runs.peek(out)
    if old is None or old["status"] == "done":
        return
    was, now = old.get("data", {}).get("fingerprint"), meta["data"]["fingerprint"]
    if was != now:
        raise runs.RunError(
            f"the data of {out} have changed since it began (fingerprint {was}, now {now}); "
            "restore them or use --overwrite"
        )


@contextlib.contextmanager
def _threads(n: int | None):
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


@contextlib.contextmanager
def _named_errors(out):
    """A full disk is reported without a path; say which folder was being written."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(out)) from error
        raise
