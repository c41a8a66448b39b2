"""A campaign: every method on every data set with every seed, each run once."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.estimator.base import Clusterer
from coterie.registry import get
from coterie.runtime.versions import versions
from coterie.storage.runs import describe, threads_held

from .cost import PeakMemory, ae_epoch_seconds
from .ledger import Ledger
from .predictions import Predictions

RESULTS = ("acc", "nmi", "nmi_geo", "ari", "km", "label_free", "aee", "seconds")


@dataclass(frozen=True)
class Job:
    """One run to be: all that decides its result."""

    dataset: str
    method: str
    variant: str = ""
    profile: str = "default"
    seed: int = 0
    settings: dict = field(default_factory=dict)

    def estimator(self, n_clusters: int):
        """The estimator of this run: preset or defaults, then variant, then settings."""
        cls = get(self.method)
        common: dict[str, Any] = {
            "n_clusters": n_clusters,
            "random_state": self.seed,
            **self.settings,
        }
        if self.profile == "paper":
            return cls.paper(self.dataset, variant=self.variant or None, **common)
        return cls(**{**cls.variants.get(self.variant, {}), **common})

    @property
    def words(self) -> int | None:
        """Words of a text that the method asks for; None where it takes the papers' 2,000."""
        asked = get(self.method).words
        return asked if self.profile == "default" and asked != Clusterer.words else None

    def record(self, params: dict) -> dict:
        """What names the run in the ledger."""
        return {
            "method": self.method,
            "variant": self.variant,
            "profile": self.profile,
            "dataset": self.dataset,
            "seed": self.seed,
            "params": params,
        }

    def __str__(self):
        row = f"{self.method}:{self.variant}" if self.variant else self.method
        extra = "".join(f" {key}={value}" for key, value in self.settings.items())
        return f"{self.dataset} {row} {self.profile} seed {self.seed}{extra}"


def plan(datasets, methods, profile="default", seeds=range(5), settings=None, grid=None):
    """All jobs, data set by data set.

    Parameters
    ----------
    methods : list of (key, variant)
    settings : dict key -> dict
        Parameters for each method, by its key.
    grid : dict key -> dict of name -> values
        Every combination of these values is a run of its own.
    """
    jobs = []
    for dataset, (method, variant), seed in itertools.product(datasets, methods, seeds):
        fixed, open_ = (settings or {}).get(method, {}), (grid or {}).get(method, {})
        for values in itertools.product(*open_.values()):
            chosen = {**fixed, **dict(zip(open_, values))}
            jobs.append(Job(dataset, method, variant, profile, seed, chosen))
    return jobs


def run_campaign(
    jobs: list[Job],
    ledger: Ledger,
    load: Callable,
    *,
    budget: float | None = None,
    threads: int | None = None,
    retry: bool = False,
    run_fields: dict | None = None,
    models: Path | None = None,
    tell: Callable[[str], None] = print,
) -> dict[str, int]:
    """Run what is not in the ledger yet.

    Parameters
    ----------
    load : callable
        Name of a data set (and `words` where a method asks for more) -> Dataset with labels.
    budget : float or None
        Seconds after which no further run is begun.
    retry : bool
        Run again what is recorded as failed.
    run_fields : dict or None
        Parameters that change how a run is made and not its result (cache_dir).
    models : Path or None
        Folder that keeps the fitted models, under the names of their predictions.

    Returns
    -------
    dict
        How many runs were done, failed, skipped (present already), busy (under way in another
        process) and left (out of time).
    """
    counts = dict.fromkeys(("done", "failed", "skipped", "busy", "left"), 0)
    begin, name, unit, kept = time.monotonic(), None, None, Predictions(ledger.path)
    dataset: Any = None
    for job in jobs:
        if budget is not None and time.monotonic() - begin >= budget:
            counts["left"] += 1
            continue
        if (job.dataset, job.words) != name:
            name, unit = (job.dataset, job.words), None
            dataset = load(job.dataset, **({"words": job.words} if job.words else {}))
        try:
            estimator = job.estimator(len(np.unique(dataset.labels)))
        except (ValueError, KeyError) as error:  # no published settings for this set
            tell(f"{job}: {error}")
            counts["failed"] += 1
            continue
        wanted = job.record(describe(estimator))
        with ledger.claim(wanted) as mine:
            # asked after the claim: another campaign may have finished it a moment ago
            old = ledger.find(wanted)
            if old and (old["status"] == "ok" or not retry):
                counts["skipped"] += 1
                continue
            if not mine:
                counts["busy"] += 1
                continue
            _set_known(estimator, run_fields or {})
            result, unit, found = run_one(estimator, dataset, threads, unit)
            record = wanted | result
            if found:
                record["predictions"] = kept.save(record, dataset.labels, **found)
                if models is not None:
                    estimator.save(models / record["predictions"], overwrite=True)
            ledger.append(record)
        good = record["status"] == "ok"
        counts["done" if good else "failed"] += 1
        tell(f"{job}: " + (_brief(record) if good else record["status"]))
    return counts


def run_one(estimator, dataset, threads: int | None = None, unit: float | None = None):
    """Fit on all rows and score on all rows; an error becomes the status.

    Parameters
    ----------
    unit : float or None
        Seconds of an autoencoder epoch measured just before, if they were.

    Returns
    -------
    dict, float, dict
        All keys of a ledger line but its name, the unit measured after the fit (or None), and the
        labels to keep beside the line.
    """
    with threads_held(threads) as n_threads:
        about = {
            "fingerprint": dataset.fingerprint(),
            "threads": n_threads,
            "versions": versions(),
        }
        memory, after = PeakMemory(), None
        try:
            unit = unit or ae_epoch_seconds(dataset.X)
            begin = time.perf_counter()
            estimator.fit(dataset.X)
            wall = time.perf_counter() - begin
            rss = memory.mb()
            after = ae_epoch_seconds(dataset.X)
            phases = dict(estimator.seconds_)
            # a pre-training that came from the cache is counted as if it had been run
            total = max(wall, sum(phases.values()))
            cost = {"aee": total / min(unit, after), "seconds": phases | {"total": total}}
            scores, found = _scores(estimator, dataset)
            return about | scores | cost | {"rss_mb": rss, "status": "ok"}, after, found
        except Exception as error:
            status = f"failed: {type(error).__name__}: {' '.join(str(error).split())}"
            failed = about | dict.fromkeys(RESULTS) | {"rss_mb": memory.mb(), "status": status}
            return failed, after, {}


def _scores(estimator, dataset) -> tuple[dict, dict]:
    """Scores of a fitted estimator, and the labels that they were computed from."""
    from coterie import metrics
    from coterie.estimator.base import Clusterer
    from coterie.nets import Identity

    X, y = dataset.X, dataset.labels
    z, k, labels = estimator.transform(X), estimator.n_clusters, np.asarray(estimator.labels_)
    proba = estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else None
    # k-means on rows that no method has changed is the baseline's business
    rows = isinstance(estimator.network_, Identity) and type(estimator).embed is Clusterer.embed
    found = {"labels": labels}
    if not rows:
        found["km"] = _kmeans(z, k, estimator.random_state)
    scores = {
        **metrics.scores(y, labels),
        "km": metrics.scores(y, found["km"]) if not rows else None,
        "label_free": metrics.label_free(z, labels, proba, n_clusters=k) | _own(estimator),
    }
    return scores, found


def _own(estimator) -> dict:
    """What a method knows of itself: L_sp of CM and C-Net, axes of a cluster space."""
    found = {}
    if (restarts := getattr(estimator, "restart_scores_", None)) is not None:
        found["l_sp"] = float(np.min(restarts))
    if (dims := getattr(estimator, "cluster_dims_", None)) is not None:
        found["cluster_dims"] = int(dims)
    return found


def _kmeans(z, k: int, seed: int) -> np.ndarray:  # (n, d) -> (n,)
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit_predict(z.reshape(len(z), -1))


def _set_known(estimator, fields: dict):
    known = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in fields.items() if name in known})


def _brief(record: dict) -> str:
    scores = "  ".join(f"{name} {record[name]:.3f}" for name in ("acc", "nmi", "ari"))
    return f"{scores}  {record['seconds']['total']:.1f} s  {record['aee']:.1f} aee"
