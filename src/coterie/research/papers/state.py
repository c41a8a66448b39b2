"""How far a table or figure is: runs needed, present, missing, and the time they would take."""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass

from coterie.data.sets import named

from .cells import Book
from .jobs import PaperJob, Slot, slots
from .protocol import Item, Paper

# of one core, roughly; only used until the ledger knows better
SECONDS_PER_MAC = 1.2e-10
EPOCHS = ("pretrain_epochs", "epochs", "module_epochs", "space_epochs", "average_epochs")
SHALLOW = 0.02
EM_STEPS = 100  # each passes over the rows twice
DAY = 86400


@dataclass
class State:
    """Counts of runs; `seconds` is what the missing ones would take."""

    needed: int = 0
    present: int = 0
    shortened: int = 0
    defaults: int = 0
    seconds: float = 0.0

    @property
    def missing(self) -> int:
        return self.needed - self.present


class Clock:
    """Expected seconds of a job, from runs like it."""

    def __init__(self, runs: list[dict]):
        self.same, self.method, units = defaultdict(list), defaultdict(list), defaultdict(list)
        full = []
        for run in runs:
            if run["status"] != "ok" or not run["aee"]:
                continue
            seconds = run["seconds"]["total"]
            units[run["dataset"]].append(seconds / run["aee"])
            if size := covariance_macs(run["params"], run["dataset"]):
                full.append(seconds / size)
                continue
            self.same[run["method"], run["dataset"], run["profile"]].append(seconds)
            self.method[run["method"], run["profile"]].append(run["aee"])
        self.units = {name: statistics.median(values) for name, values in units.items()}
        rates = [unit / macs(name) for name, unit in self.units.items() if macs(name)]
        self.rate = statistics.median(rates) if rates else SECONDS_PER_MAC
        self.full = statistics.median(full) if full else EM_STEPS * self.rate

    def seconds(self, job: PaperJob, params: dict, source: str) -> float:
        """Runs of the same method on the same data, else its cost in AEE, else its budget.

        Mixtures with full covariances grow with the square of the columns, as no other run does.
        """
        if size := covariance_macs(params, source):
            return size * self.full
        if same := self.same[job.method, job.dataset, job.profile]:
            return statistics.median(same)
        unit = self.units.get(job.dataset) or self.rate * macs(source)
        if costs := self.method[job.method, job.profile]:
            return statistics.median(costs) * unit
        return budget(params, rows_of(source)) * unit


def budget(params: dict, rows: int) -> float:
    """Epochs that the settings ask for; a GAN step counts once for each network that moves."""
    if params.get("steps"):
        turns = params.get("n_critic", 1) + params.get("n_class", 1) + 1
        return params["steps"] * turns * params.get("batch_size", 100) / max(rows, 1)
    epochs = sum(value for name in EPOCHS if (value := params.get(name)))
    if params.get("levels") and params.get("inverse_temperature", 0) is None:
        each = params["epochs_per_level"] or 5.0  # of the paper
        epochs += params["levels"] * each - (params.get("epochs") or 0)
    if "hidden" not in params and "channels" not in params:
        epochs *= SHALLOW  # no network: a linear model on the rows
    return max(epochs, 1.0)


def macs(name: str) -> float:
    """Multiplications of an epoch of the autoencoder d-500-500-2000-10; 0 for unknown data."""
    if named.canonical(name) is None:
        return 0.0
    about = named.describe(name)
    d = math.prod(about["shape"])
    return about["rows"] * 6.0 * (500 * d + 500 * 500 + 500 * 2000 + 2000 * 10)


def covariance_macs(params: dict, name: str) -> float:
    """Multiplications of a pass of EM with full covariances; 0 for all else."""
    if params.get("covariance") != "full" or named.canonical(name) is None:
        return 0.0
    about = named.describe(name)
    return float(about["rows"] * math.prod(about["shape"]) ** 2 * about["classes"])


def rows_of(name: str) -> int:
    return named.describe(name)["rows"] if named.canonical(name) else 1


def state_of(paper: Paper, item: Item, book: Book, clock: Clock) -> State:
    total = State()
    for slot in slots(paper, item):
        seeds = set(range(slot.seeds))
        here = {run["seed"] for run in book.cell(slot, slot.main, exact=True).runs} & seeds
        total.needed += slot.seeds
        total.present += len(here)
        cell = book.cell(slot, slot.main)
        total.shortened += len(cell.runs) if cell.changed else 0
        if slot.main != "default":
            total.defaults += len(book.cell(slot, "default").runs)
        job, params = slot.jobs[slot.main]
        total.seconds += (len(seeds) - len(here)) * clock.seconds(job, params, slot.data.source)
    return total


def missing(
    paper: Paper, items: list[Item], book: Book, clock: Clock, profile: str | None = None
) -> list[PaperJob]:
    """Jobs that are not in the ledger: one seed of every cell first, then by cost.

    Stand-ins come last within a seed: they can be compared with nothing.
    """
    found: dict[str, tuple] = {}
    for item in items:
        for slot in slots(paper, item):
            _add(found, slot, profile or slot.main, book, clock)
    together = defaultdict(float)  # all of a data set in one go: it is read once for each seed
    for seed, _, seconds, job in found.values():
        together[seed, job.dataset] += seconds

    def order(entry: tuple) -> tuple:
        seed, stand_in, seconds, job = entry
        return seed, stand_in, together[seed, job.dataset], job.dataset, seconds, str(job)

    return [entry[-1] for entry in sorted(found.values(), key=order)]


def _add(found: dict, slot: Slot, profile: str, book: Book, clock: Clock):
    if profile not in slot.jobs:
        profile = slot.main
    job, params = slot.jobs[profile]
    here = {run["seed"] for run in book.cell(slot, profile, exact=True).runs}
    seconds = clock.seconds(job, params, slot.data.source)
    for seed in sorted(set(range(slot.seeds)) - here):
        made = slot.job(profile, seed)
        entry = (seed, bool(slot.data.stand_in), seconds, made)
        found.setdefault(f"{made} {made.preset} {made.base} {made.baseline}", entry)


def spoken(seconds: float) -> str:
    """``0``, ``40 s``, ``12 m``, ``3.5 h``, ``12 days``."""
    if seconds <= 0:
        return "0"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} m"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.0f} days"
