"""How our runs at published settings compare with the published figures, cell by cell."""

import statistics
from dataclasses import dataclass

from . import tables
from .cells import Book
from .jobs import Slot, slots
from .protocol import Item, Paper
from .state import Clock, spoken

CLOSE = 0.03  # three points
AFFORDABLE = 5400.0  # seconds of one core that a run may take to count as affordable


@dataclass(frozen=True)
class Compared:
    """One figure of a table that can be measured here: a model, a data set and a score."""

    row: str
    data: str
    metric: str
    published: float
    spread: float  # the published standard deviation, 0 where there is none
    ours: tuple[float, ...]  # one for each run at published settings
    seconds: float  # that a run takes

    @property
    def name(self) -> str:
        return f"{self.row} on {self.data}, {self.metric.upper()}"

    @property
    def gap(self) -> float:
        return statistics.fmean(self.ours) - self.published

    @property
    def close(self) -> bool:
        return abs(self.gap) <= max(CLOSE, self.spread)


def compared(paper: Paper, book: Book, clock: Clock) -> list[Compared]:
    """Every cell whose rows are here and whose mean the paper prints, each once.

    A figure that two tables share counts where it stands first. Stand-ins are left out: they can
    be compared with nothing.
    """
    found: dict[str, Compared] = {}
    for item in paper.items:
        if item.kind != "table" or "mean" not in " ".join(item.columns):
            continue
        for slot in slots(paper, item):
            if not slot.data.stand_in:
                for cell in _cells(paper, item, slot, book, clock):
                    found.setdefault(cell.name, cell)
    return list(found.values())


def _cells(paper: Paper, item: Item, slot: Slot, book: Book, clock: Clock) -> list[Compared]:
    runs = book.cell(slot, slot.main, exact=True)
    job, params = slot.jobs[slot.main]
    seconds = clock.seconds(job, params, slot.data.source)
    made = []
    for metric in item.metrics:
        theirs = tables.published_mean(item, slot.row, slot.data, metric)
        if theirs is None or metric == "dims":
            continue
        spread = tables.published_std(item, slot.row, slot.data, metric) or 0.0
        ours = tuple(runs.values(metric, slot.row, paper))
        made.append(
            Compared(slot.row.label, slot.data.title, metric, theirs, spread, ours, seconds)
        )
    return made


def summary(paper: Paper, book: Book, clock: Clock) -> str:
    """What can be measured here, what has been, how close it is, and what is farthest off."""
    cells = compared(paper, book, clock)
    if not cells:
        return "No figure of this paper can be compared with ours.\n"
    filled = [cell for cell in cells if cell.ours]
    cheap = [cell for cell in cells if cell.seconds < AFFORDABLE]
    below = sorted(
        (c for c in filled if not c.close and c.gap < 0), key=lambda cell: (cell.gap, cell.name)
    )
    above = sum(not cell.close and cell.gap > 0 for cell in filled)
    lines = [
        "| published figures | number |",
        "|---|---:|",
        f"| whose data we have | {len(cells)} |",
        f"| of these: a run takes under {spoken(AFFORDABLE)} of a core | {len(cheap)} |",
        f"| measured by us with published settings | {len(filled)} |",
        f"| of these: a run takes under {spoken(AFFORDABLE)} of a core | "
        f"{sum(bool(c.ours) for c in cheap)} |",
        f"| ours is within 3 points or one published standard deviation | "
        f"{len(filled) - above - len(below)} |",
        f"| ours is above that | {above} |",
        f"| ours is below that | {len(below)} |",
    ]
    text = "\n".join(lines) + "\n"
    return text + _reasons(below, paper)


def _reasons(below: list[Compared], paper: Paper) -> str:
    """The cells that fall short, those with the same cause together."""
    if not below:
        return ""
    causes: dict[str, list[str]] = {}
    for cell in below:
        causes.setdefault(paper.finding(cell.row, cell.data), []).append(_told(cell))
    lines = "".join(f"- {'; '.join(cells)}. {why}\n" for why, cells in causes.items())
    return f"\nWhere ours is below the published figure, largest difference first:\n\n{lines}"


def _told(cell: Compared) -> str:
    runs = f"{len(cell.ours)} run{'' if len(cell.ours) == 1 else 's'}"
    return f"{cell.name}: {100 * cell.gap:+.1f} ({runs}; published {100 * cell.published:.1f})"
