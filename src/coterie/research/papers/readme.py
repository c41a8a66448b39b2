"""results/README.md and its figures, made from the ledger alone: the same bytes every time."""

from pathlib import Path

from coterie.data.sets.variants import VARIANTS, uniformity
from coterie.registry import DEFAULT
from coterie.research.bench import ranking
from coterie.storage.atomic import write_atomic

from . import agreement, figures, render, tables
from .cells import Book, used
from .jobs import slots
from .protocol import Item, Paper
from .state import Clock, spoken, state_of

HEAD = """# Results

`coterie paper --write` makes this page and `figures/` from `ledger.jsonl`; do not edit them. A
figure that needs a fitted model is drawn by the command beside it; some of these are in
`pictures/`.

In the tables of the papers, each model has up to three lines. The first is **published**: what the
paper prints. The others are **ours**, one with the published settings and one with our defaults,
which follow one rule for all data and use no labels. Our runs are fitted on all rows without labels
and scored on all rows. A cell without a run says so. A run counts for a table only if it has the
settings of that table; a run that was only shorter or smaller is shown and marked ‡.

The list below says how many runs each table needs, how many there are, and how long the missing
ones would take with one thread. This is estimated from runs of the same method or, if there are
none, from the number of epochs.
"""


def write(
    papers: list[Paper], runs: list[dict], folder, ledger_path="results/ledger.jsonl"
) -> list[Path]:
    """Write README.md and figures/*.png into a folder; returns what was written."""
    folder, book, clock = Path(folder), Book(runs, ledger_path), Clock(runs)
    written, parts = [], [HEAD, _versions(runs), _state(papers, book, clock), _ranks(runs)]
    for paper in papers:
        parts.append(_heading(paper, book, clock))
        for item in paper.items:
            text = [f"### {item.name}: {item.title}\n"]
            if item.kind == "table":
                text.append(render.markdown(tables.build(paper, item, book)))
            elif item.kind == "sizes":
                text.append(sizes(item))
            else:
                path = folder / "figures" / f"{paper.key}-{item.key}.png"
                text.append(_figure(paper, item, book, path, written))
            text.append(_command(item, paper, book))
            parts.append("\n".join(text))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    write_atomic(path, ("\n".join(part.rstrip() + "\n" for part in parts)).encode())
    return [path, *written]


def _ranks(runs: list[dict]) -> str:
    """Every method on every real data set: the table that decides about the default method."""
    found = ranking.rank_defaults(runs)
    best, *others = found.ranks or [""]
    said = f"Of {1 + len(others)} methods, {best} has the best mean rank. " if others else ""
    return (
        "## All methods on all data sets\n\n"
        "All figures in this table are ours: NMI in per cent, mean over seeds (number of seeds in "
        "brackets), with today's defaults, which are the same for all data sets. Methods that ran "
        f"on every set have a mean rank; bold is the best of all methods. {said}`coterie fit` uses "
        f"{DEFAULT} unless you name another method{_behind(found)}. `coterie bench --rank` prints "
        "this table.\n\n"
        f"{ranking.markdown(found)}"
    )


def _behind(found: ranking.Ranking) -> str:
    """Where another method is better than the default one by more than a point."""
    lost = []
    for dataset, score in found.scores.get(DEFAULT, {}).items():
        rival = found.best_rival(DEFAULT, dataset)
        if rival and rival[1] - score > 0.01:
            lost.append(f"{dataset} ({rival[0]}, {100 * (rival[1] - score):.1f} points)")
    return f". Another method is better by more than a point on {', '.join(lost)}" if lost else ""


def _figure(paper: Paper, item: Item, book: Book, path: Path, written: list) -> str:
    note = f"{item.note}\n" if item.note else ""
    if item.kind == "run":
        lines = "\n".join(item.commands)
        return (
            f"Make these runs; then `coterie paper {item.name} --show` draws the figure.\n\n"
            f"```\n{lines}\n```\n\n{note}"
        )
    figure = figures.draw(paper, item, book)
    if figure is None:
        path.unlink(missing_ok=True)  # of an earlier ledger
        return f"No run yet.\n\n{note}"
    figures.save(figure, path)
    written.append(path)
    marks = sorted({d.stand_in for d in item.datasets if d.stand_in})
    stand_in = "".join(f"† {text}\n" for text in marks)
    return f"![{item.title}](figures/{path.name})\n\n{stand_in}{note}"


def _command(item: Item, paper: Paper, book: Book) -> str:
    if not item.from_ledger:
        return ""
    runs = [run for cell in figures.cells_of(paper, item, book).values() for run in cell.runs]
    if item.kind == "table":
        runs = used(book, item, slots(paper, item))
    seeds = sorted({run["seed"] for run in runs})
    known = [r for r in runs if r["profile"] == "paper"]
    said = f" Seeds: {_spans(seeds)}. Runs: {len(known)} with published settings" if seeds else ""
    said += f", {len(runs) - len(known)} with defaults." if seeds else ""
    return f"`coterie paper {item.name} --run` makes the runs, `--show` prints the result.{said}\n"


def _spans(seeds: list[int]) -> str:
    """``0-4, 7``."""
    found: list[list[int]] = []
    for seed in seeds:
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _versions(runs: list[dict]) -> str:
    """Which versions and thread counts the ledger's runs were made with."""
    kinds = sorted(
        {", ".join(f"{k} {v}" for k, v in sorted((r["versions"] or {}).items())) for r in runs}
    )
    threads = sorted({str(run["threads"]) for run in runs})
    if not runs:
        return "The ledger is empty.\n"
    lines = "\n".join(f"- {kind}" for kind in kinds)
    with_ = f"with {' or '.join(threads)} thread{'' if threads == ['1'] else 's'}"
    return f"The ledger has {len(runs)} runs, made {with_} and these versions:\n\n{lines}\n"


def _state(papers: list[Paper], book: Book, clock: Clock) -> str:
    lines = [
        "| table or figure | runs needed | done | shortened | with defaults | missing | time |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for paper in papers:
        for item in paper.items:
            lines.append("| " + " | ".join(state_cells(paper, item, book, clock)) + " |")
    return "\n".join(lines) + "\n"


def state_cells(paper: Paper, item: Item, book: Book, clock: Clock) -> list[str]:
    """One line of the list: name, needed, present, shortened, with defaults, missing, time."""
    if not item.from_ledger:
        why = {"run": "from run folders", "sizes": "no runs", "toy": "quick fit"}
        return [item.name, why.get(item.kind, "computed"), "", "", "", "", ""]
    s = state_of(paper, item, book, clock)
    counts = [s.needed, s.present, s.shortened, s.defaults, s.missing]
    return [item.name, *map(str, counts), spoken(s.seconds)]


def _heading(paper: Paper, book: Book, clock: Clock) -> str:
    caveats = "\n".join(f"- {text}" for text in paper.caveats)
    return (
        f"## {paper.key}: {paper.title}\n\n{paper.reference}.\n\n{paper.protocol}\n\n"
        f"{agreement.summary(paper, book, clock)}\nWhat to know about the paper:\n\n{caveats}\n"
    )


def sizes(item: Item) -> str:
    """The variants of USPS: class sizes and uniformity, ours beside the printed figure."""
    lines = ["| data set | " + " | ".join(f"class {c}" for c in range(10)) + " | UI | printed |"]
    lines.append("|---|" + "---:|" * 12)
    for data, printed in zip(item.datasets, item.draw["published"]):
        made = VARIANTS[data.ours].sizes
        numbers = " | ".join(map(str, made))
        lines.append(f"| {data.title} | {numbers} | {uniformity(made):.3f} | {printed:.3f} |")
    return "\n".join(lines) + "\n"
