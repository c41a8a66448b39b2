"""What the ledger holds for a cell."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from coterie.research.bench.predictions import Predictions
from coterie.research.bench.statistics import describe

from .jobs import Slot
from .protocol import Item, Paper, Row

# a run that only differs in these is shorter or smaller than asked: shown, and marked
EFFORT = {
    "epochs", "pretrain_epochs", "module_epochs", "space_epochs", "epochs_per_level", "levels",
    "steps", "n_init", "restarts", "fresh_runs", "max_iter", "hidden", "channels", "width",
}  # fmt: skip


@dataclass
class Cell:
    """Runs of one cell, one for each seed, all under the same settings."""

    runs: list[dict]
    changed: dict = field(default_factory=dict)  # what is shorter or smaller than asked
    failed: int = 0
    instead: bool = False  # defaults where nothing is published
    batched: bool = False  # restarts of one fit

    @property
    def half(self) -> bool:
        """Whether a run's network multiplied in half precision."""
        return any((run["params"] or {}).get("precision") == "half" for run in self.runs)

    def values(self, metric: str, row: Row, paper: Paper) -> list[float]:
        found = (figure(run, metric, row, paper) for run in self.runs)
        return [value for value in found if value is not None]

    def stats(self, metric: str, row: Row, paper: Paper) -> dict[str, Any]:
        """mean, std, min, max, median; `selected` is the figure of the run with the lowest L_sp."""
        values = self.values(metric, row, paper)
        if not values:
            return {}
        found: dict[str, Any] = dict(describe(values))
        scored = [run for run in self.runs if own(run, "l_sp") is not None]
        if scored and len(scored) == len(self.runs):
            chosen = min(scored, key=lambda run: own(run, "l_sp"))
            found["selected"] = figure(chosen, metric, row, paper)
        return found


class Book:
    """The ledger, looked up by cell."""

    def __init__(self, runs: list[dict], ledger_path: Any = "results/ledger.jsonl"):
        self.runs, self.predictions = runs, Predictions(ledger_path)
        self.index = defaultdict(list)
        for run in runs:
            self.index[run["method"], run["dataset"], run["profile"]].append(run)

    def cell(self, slot: Slot, profile: str, exact: bool = False) -> Cell:
        """The runs of a cell; without exact ones (and unless `exact`) the largest marked group."""
        if profile not in slot.jobs:
            return Cell([])
        job, params = slot.jobs[profile]
        names = {job.variant, *slot.row.also}
        wanted, groups, failed = plain(params), defaultdict(dict), set()
        for run in self.index[job.method, job.dataset, profile]:
            if run["variant"] not in names:
                continue
            other = differences(run["params"] or {}, wanted)
            fits = all(less(name, value, wanted[name]) for name, value in other.items())
            if not fits or set(other) & set(job.settings):
                continue
            key = (json.dumps(other, sort_keys=True), batched(run))
            if run["status"] == "ok":
                groups[key][run["seed"]] = run
            elif not other:
                failed.add(run["seed"])
        asked = {key: runs for key, runs in groups.items() if key[0] == "{}"}
        groups = asked if asked or exact else groups
        if not groups:
            return Cell([], failed=len(failed))
        # the largest group; at a tie separate runs before restarts of one fit
        best = max(groups, key=lambda key: (len(groups[key]), not key[1], key[0]))
        runs = [groups[best][seed] for seed in sorted(groups[best])]
        if slot.scored:
            runs = [run | self.predictions.part_scores(run, slot.scored) for run in runs]
        failed -= {run["seed"] for run in runs}
        return Cell(runs, json.loads(best[0]), len(failed), batched=best[1])


def batched(run: dict) -> bool:
    """One of several restarts that were fitted as one model; each has a line of its own."""
    return "restart" in (run["params"] or {})


def less(name: str, value, wanted) -> bool:
    """Whether a run had less of something than asked; more of it would be no fair comparison."""
    if name not in EFFORT or value is None or wanted is None:
        return False
    if isinstance(value, list):
        return isinstance(wanted, list) and sum(value) < sum(wanted)
    return value < wanted


def differences(params: dict, wanted: dict) -> dict:
    """Values of `params` that are not as wanted; names of one side do not count.

    A line of one restart is one run, whatever the number of restarts that were fitted with it.
    Half precision is how a run was made and not what was asked: a table marks it.
    """
    skip = {"restarts", "precision"} if "restart" in params else {"precision"}
    return {k: v for k, v in params.items() if k in wanted and wanted[k] != v and k not in skip}


def plain(value):
    """As JSON brings it back from the ledger."""
    return json.loads(json.dumps(value, default=str))


def figure(run: dict, metric: str, row: Row, paper: Paper) -> float | None:
    """One figure of a run, in the paper's flavour."""
    if metric == "dims":
        return own(run, "cluster_dims")
    metric = paper.nmi if metric == "nmi" else metric
    return (run["km"] or {}).get(metric) if row.score == "km" else run[metric]


def own(run: dict, name: str) -> Any:
    return (run["label_free"] or {}).get(name)


def used(book: Book, item: Item, found: list[Slot]) -> list[dict]:
    """All runs that an item shows."""
    return [run for s in found for profile in s.jobs for run in book.cell(s, profile).runs]
