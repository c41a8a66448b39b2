"""From a protocol to runs: the cells of a table or figure, and the jobs that would fill them."""

import dataclasses
import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from coterie.data.sets import named
from coterie.estimator.params import as_tuples
from coterie.math.cm import per_row
from coterie.registry import get
from coterie.research.bench.campaign import Job
from coterie.storage.runs import describe

from .protocol import PROFILES, Data, Item, Paper, Row

# how the papers' own symbols become our parameters
DERIVE = {
    "cm": lambda B, alpha: {
        "batch_size": int(B), "prior_strength": per_row(alpha, B), "eps": 1e-3 / B,
    },
    "cm_shares": lambda B, alpha, shares: {
        "batch_size": int(B), "eps": 1e-3 / B,
        "prior_strength": tuple(per_row(alpha * f, B) for f in sorted(shares)),
    },
    "cnet": lambda beta, lam, B=500: {
        "recon_weight": float(beta), "orthonormal_weight": lam / B, "batch_size": int(B),
    },
    "rate": lambda gamma: {"lr": gamma / 1000},  # 1e-3 * 0.9 is not 9e-4
    "noise": lambda n: {"n_noise": int(n)},
}  # fmt: skip


@dataclass(frozen=True)
class PaperJob(Job):
    """A run of a paper: its rows may be read in another way, its settings may be shared."""

    base: str = ""
    preset: str = ""
    preset_as: str = ""
    baseline: dict | None = None  # the paper's own settings of another paper's method

    def estimator(self, n_clusters: int):
        if self.profile != "paper":
            return super().estimator(n_clusters)
        cls = get(self.method)
        own: dict[str, Any] = {"n_clusters": n_clusters, "random_state": self.seed}
        own |= self.settings
        own = known(cls, {"precision": "single"}) | self._published() | own
        return cls(**own)

    def _published(self) -> dict:
        cls, found = get(self.method), ""
        if self.baseline is not None:
            given = {k: as_tuples(v) for k, v in self.baseline.items()}
            return {**cls.variants.get(self.variant, {}), **known(cls, given)}
        for name in filter(None, (self.base or self.dataset, self.preset_as)):
            found = published_settings(self.method, self.variant, self.preset, name)
            if isinstance(found, dict):
                return found
        raise ValueError(found)


@dataclass(frozen=True)
class Slot:
    """One cell: a model on a data set (at a point of a grid), with its jobs by profile."""

    row: Row
    data: Data
    point: tuple
    seeds: int
    jobs: dict  # profile -> (PaperJob with seed 0, parameters)
    scored: float | None = None  # share of the rows that the paper scores

    @property
    def main(self) -> str:
        """The profile that the paper asks for, where there are published settings."""
        return PROFILES[0] if PROFILES[0] in self.jobs else PROFILES[1]

    def job(self, profile: str, seed: int) -> PaperJob:
        return replace(self.jobs[profile][0], seed=seed)


@cache
def published_settings(method: str, variant: str, preset: str, name: str) -> dict | str:
    """The settings of a method on a data set, or those that it shares with the paper's own.

    Where nothing is published the answer is a text that says so.
    """
    cls = get(method)
    try:
        if not preset:
            return describe(cls.paper(name, variant=variant or None))
        shared = describe(get(preset).paper(name))
    except ValueError as error:
        return str(error)
    return {**known(cls, shared), **cls.variants.get(variant, {})}


def known(cls, settings: dict) -> dict:
    names = {f.name for f in dataclasses.fields(cls)}
    return {name: value for name, value in settings.items() if name in names}


def slots(paper: Paper, item: Item) -> list[Slot]:
    """Every cell that can be filled here: the method exists and its rows (or a stand-in) too."""
    if not item.from_ledger:
        return []
    found = []
    for row, data in itertools.product(item.rows, item.datasets):
        if not row.method or not data.ours or (row.label, data.key) in item.dashes:
            continue
        for point in points(item.grid):
            extra = derived(item.grid, point)
            jobs = _jobs(paper, row, data, extra)
            seeds = data.seeds or item.seeds
            found.append(Slot(row, data, point, seeds, jobs, paper.scored))
    return found


def points(grid: dict) -> list[tuple]:
    """All coordinates of a grid; one empty point without a grid."""
    return list(itertools.product(*(grid[axis]["values"] for axis in ("x", "y") if axis in grid)))


def derived(grid: dict, point: tuple) -> dict:
    if not grid:
        return {}
    names = [grid[axis]["symbol"] for axis in ("x", "y") if axis in grid]
    return DERIVE[grid["derive"]](**dict(zip(names, point)), **grid.get("fixed", {}))


def _jobs(paper: Paper, row: Row, data: Data, extra: dict) -> dict:
    cls, jobs = get(row.method), {}
    settings = {**known(cls, data.settings), **row.settings, **extra}
    settings |= paper.methods.get(row.method, {})
    settings = {k: as_tuples(v) for k, v in settings.items()}
    for profile in PROFILES:
        if profile == "paper" and row.profile == "default":
            continue
        job = PaperJob(
            data.ours, row.method, row.variant, profile, 0, settings,
            base=data.base, preset=row.preset, preset_as=data.preset_as,
            baseline=paper.baseline(row, data),
        )  # fmt: skip
        try:
            jobs[profile] = (job, describe(job.estimator(classes(data))))
        except (ValueError, KeyError):  # nothing published for this set
            if profile == "default":
                raise
    return jobs


def classes(data: Data) -> int:
    return data.classes or _classes(data.source)


@cache
def _classes(name: str) -> int:
    return named.describe(name)["classes"]


def loader(papers: list[Paper], load):
    """Name in the ledger -> data set, read as the protocol says (`load(name, options)`)."""
    data = {d.ours: d for paper in papers for item in paper.items for d in item.datasets}

    def read(name: str):
        return load(data[name].source, data[name].options)

    return read
