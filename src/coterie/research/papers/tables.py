"""A paper's table in its own layout: for each model the published line and ours below it."""

import re
from dataclasses import dataclass, field

from coterie.research.bench.published import cells as published_cells
from coterie.research.bench.statistics import as_good_as_best

from .cells import Book, Cell
from .jobs import Slot, slots
from .protocol import PROFILES, Data, Item, Paper, Row

LINES = {"paper": "ours, paper settings", "default": "ours, defaults"}
STATS = re.compile(r"selected|mean|std|min|max|median")
TITLES = {"selected": "L_sp", "mean": "avg", "max": "best", "median": "med"}
BAD = {"failed": "failed", "not reported": "–", "not applicable": "n/a"}
NO_RUN = "no run yet"
MARKS = {
    "†": "measured on other data than the paper's",
    "‡": "shorter or smaller than the settings ask for (see below)",
    "§": "nothing published for this data set: our defaults",
    "¶": "restarts of one batched fit: different starts but the same order of rows, so the spread "
    "and the t-test do not include the effect of that order",
    "½": "trained in half precision (bfloat16)",
    "°": "the paper quotes this figure",
    "?": "missing or doubtful in the source",
}


@dataclass
class Text:
    """One cell as printed."""

    text: str
    bold: bool = False
    underline: bool = False
    dim: bool = False


@dataclass
class Line:
    label: str
    source: str  # published, or one of LINES
    cells: list[Text]


@dataclass
class Block:
    """Some data sets of a table: header cells (data set, metric or statistic) and lines."""

    heads: list[tuple[str, str]]
    lines: list[Line]


@dataclass
class Table:
    item: Item
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)


def build(paper: Paper, item: Item, book: Book) -> Table:
    """Lay out one table."""
    places = {(s.row.label, s.data.key): s for s in slots(paper, item)}
    step = item.per_block
    parts = [item.datasets[i : i + step] for i in range(0, len(item.datasets), step)]
    changed: dict[str, str] = {}
    blocks = [_block(paper, item, list(part), places, book, changed) for part in parts]
    notes = [f"{d.title}: {d.stand_in} (†)" for d in item.datasets if d.stand_in]
    notes += [f"{d.title}: not available here" for d in item.datasets if not d.ours]
    if absent := [row.label for row in item.rows if not row.method]:
        notes.append(f"not part of coterie: {', '.join(absent)}")
    notes += [f"‡ {label}: {text}" for label, text in changed.items()]
    return Table(item, blocks, notes + ([item.note] if item.note else []))


def _block(paper, item: Item, part: list[Data], places: dict, book: Book, changed) -> Block:
    columns = [(d, m, c) for d in part for m in item.metrics for c in item.columns]
    several = len(item.columns) > 1
    heads = []
    for data, metric, column in columns:
        below = TITLES.get(column, column) if several else metric.upper()
        if several and len(item.metrics) > 1:
            below = f"{metric.upper()} {below}"
        heads.append((data.title + ("†" if data.stand_in else ""), below))
    found = {p: _ours(part, places, book, p) for p in PROFILES}
    marks = {p: _marks(paper, item, columns, found[p]) for p in PROFILES}
    lines = []
    for row in item.rows:
        lines.append(Line(row.label, "published", [_published(item, row, *c) for c in columns]))
        if not row.method:
            continue
        for profile in _shown(found, places, row):
            cells = [
                _cell(paper, item, row, column, found[profile], marks[profile], places)
                for column in columns
            ]
            lines.append(Line(row.label, _source(found[profile], row, profile), cells))
            for (label, key), cell in found[profile].items():
                if cell.changed and label == row.label:
                    short = ", ".join(f"{k}={v}" for k, v in sorted(cell.changed.items()))
                    changed[f"{label} on {key}, {LINES[profile]}"] = short
    return Block(heads, lines)


def _ours(part, places: dict[tuple, Slot], book: Book, profile: str) -> dict:
    """Runs by cell; our defaults fill in where nothing is published for a method or data set."""
    keys, found = {data.key for data in part}, {}
    for at, slot in places.items():
        if at[1] in keys:
            used = profile if profile in slot.jobs else slot.main
            found[at] = book.cell(slot, used)
            found[at].instead = used != profile
    return found


def _shown(found: dict, places: dict, row: Row) -> list[str]:
    """Which of our lines a model gets; one without published settings gets a single one."""
    mine = [slot for (label, _), slot in places.items() if label == row.label]
    if all(slot.main == "default" for slot in mine):
        full = [
            p for p in PROFILES if sum(bool(c.runs) and not c.instead for c in found[p].values())
        ]
        return full[:1] or ["default"]
    return [p for p in PROFILES if any(c.runs and not c.instead for c in _of(found[p], row))] or [
        "paper"
    ]


def _of(found: dict[tuple, Cell], row: Row) -> list[Cell]:
    return [cell for (label, _), cell in found.items() if label == row.label]


def _source(found: dict, row: Row, profile: str) -> str:
    if all(cell.instead for cell in _of(found, row)):
        profile = "default"
    counts = sorted({len(cell.runs) for cell in _of(found, row) if cell.runs})
    if not counts:
        return LINES[profile]
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{LINES[profile]} ({number} run{'' if counts[-1] == 1 else 's'})"


def _marks(paper, item: Item, columns: list, found: dict) -> dict:
    """Which of our cells are bold, starred or underlined, by the paper's rule."""
    marks = {"bold": set(), "star": set(), "underline": set()}
    for data, metric, column in columns:
        rows = {row.label: row for row in item.rows}
        values = {
            label: cell.values(metric, rows[label], paper)
            for (label, key), cell in found.items()
            if key == data.key and cell.runs
        }
        values = {label: numbers for label, numbers in values.items() if numbers}
        if not values:
            continue
        stats = {lb: found[lb, data.key].stats(metric, rows[lb], paper) for lb in values}
        at = (data.key, metric, column)
        name = STATS.findall(column)[0]
        main = {lb: s[name] for lb, s in stats.items() if name in s}
        top = {lb for lb, v in main.items() if v == max(main.values())}
        if item.bold == "ttest":
            marks["bold"] |= {(lb, *at) for lb in as_good_as_best(values)}
        elif item.bold == "best":
            marks["bold"] |= {(lb, *at) for lb in top}
        elif item.bold == "above_mean" and column == "selected":
            marks["bold"] |= {(lb, *at) for lb in main if main[lb] > stats[lb]["mean"]}
        if item.underline:
            marks["underline"] |= {(lb, *at) for lb in top}
        if item.star:
            best = max(s["max"] for s in stats.values())
            marks["star"] |= {(lb, *at) for lb, s in stats.items() if s["max"] == best}
    return marks


def _cell(paper, item: Item, row: Row, column: tuple, found: dict, marks, places) -> Text:
    data, metric, form = column
    if not data.ours:
        return Text(f"{data.title} not available", dim=True)
    if (row.label, data.key) not in places:
        return Text("n/a", dim=True)
    cell = found[row.label, data.key]
    stats = cell.stats(metric, row, paper)
    if not stats:
        failed = f"failed ({cell.failed} runs)" if cell.failed else NO_RUN
        return Text("not recorded" if cell.runs else failed, dim=True)
    text = spell(form, stats, item)
    at = (row.label, data.key, metric, form)
    text += "*" if at in marks["star"] else ""
    text += ("†" if data.stand_in else "") + ("‡" if cell.changed else "")
    text += ("¶" if cell.batched else "") + ("½" if cell.half else "")
    text += "§" if cell.instead and row.profile != "default" else ""
    return Text(text, at in marks["bold"], at in marks["underline"])


def _published(item: Item, row: Row, data: Data, metric: str, form: str) -> Text:
    stats, notes = {}, []
    for name in [*STATS.findall(form), "value"]:
        found = _lookup().get((item.paper, item.published, *row.key, data.key, metric, name))
        if found is None:
            continue
        notes.append(found["note"])
        if found["value"] is not None:
            # a table that does not say which statistic it prints: its figure stands for it
            stats[STATS.findall(form)[0] if name == "value" else name] = found["value"]
    note = "; ".join(dict.fromkeys(n for n in notes if n))
    if not stats:
        return Text(next((BAD[key] for key in BAD if key in note), "?" if note else "–"), dim=True)
    text = spell(form, stats, item)
    return Text(text + ("°" if "quoted" in note else "") + ("?" if "doubtful" in note else ""))


_INDEX: dict = {}


def _lookup() -> dict:
    if not _INDEX:
        names = ("paper", "table", "method", "variant", "dataset", "metric", "stat")
        _INDEX.update({tuple(cell[n] for n in names): cell for cell in published_cells()})
    return _INDEX


def spell(form: str, stats: dict, item: Item) -> str:
    """``mean±std (max)`` with the figures put in; ? where the source has none."""
    factor = 100 if item.percent else 1

    def one(match) -> str:
        value = stats.get(match[0])
        return "?" if value is None else f"{factor * value:.{item.decimals}f}"

    return STATS.sub(one, form)


def published_mean(item: Item, row: Row, data: Data, metric: str) -> float | None:
    """The mean that a table prints for a cell, if it is the paper's own figure."""
    return _printed(item, row, data, metric, ("mean", "value"))


def published_std(item: Item, row: Row, data: Data, metric: str) -> float | None:
    """The standard deviation that a table prints for a cell, if it prints one."""
    return _printed(item, row, data, metric, ("std",))


def _printed(item: Item, row: Row, data: Data, metric: str, stats: tuple) -> float | None:
    for name in stats:
        found = _lookup().get((item.paper, item.published, *row.key, data.key, metric, name))
        if found and found["value"] is not None and "quoted" not in found["note"]:
            return found["value"]
    return None
