"""Figures from the ledger, from a formula, or from a quick fit; always the same picture."""

from pathlib import Path

import numpy as np

from coterie import plot
from coterie.palette import color
from coterie.research.bench.published import published
from coterie.research.bench.statistics import half_width
from coterie.storage.atomic import atomic

from .cells import Book, Cell
from .jobs import slots
from .protocol import Item, Paper

DPI = 110
SYMBOLS = {"lam": "λ", "alpha": "α", "beta": "β", "gamma": "γ", "n": "noise variables"}


def canvas(columns: int = 1, rows: int = 1, size: tuple[float, float] = (4.6, 3.6)):
    """A figure that no global state of matplotlib reaches, and its axes (rows, columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure, path):
    """PNG without a date or a version in it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})


def draw(paper: Paper, item: Item, book: Book):
    """The figure of an item, or None when there is nothing to draw it from."""
    if item.kind in ("toy", "formula"):
        from . import toys

        return getattr(toys, item.draw["how"])(item)
    cells = cells_of(paper, item, book)
    if not any(cell.runs for cell in cells.values()):
        return None
    return {"heat": _heat, "bars": _bars, "curve": _curve}[item.kind](paper, item, cells)


def cells_of(paper: Paper, item: Item, book: Book) -> dict[tuple, Cell]:
    """(row label, data key, point) -> runs under the published settings, else under defaults."""
    found = {}
    for slot in slots(paper, item):
        cell = book.cell(slot, slot.main)
        cell = cell if cell.runs else book.cell(slot, "default")
        found[slot.row.label, slot.data.key, slot.point] = cell
    return found


def _heat(paper, item: Item, cells: dict):
    """One panel for each row: mean over seeds at every point; grey where there is no run."""
    data, metric = item.datasets[0], item.metrics[0]
    xs, ys = item.grid["x"], item.grid["y"]
    figure, axes = canvas(len(item.rows))
    for ax, row in zip(axes[0], item.rows):
        table = np.full((len(ys["values"]), len(xs["values"])), np.nan)
        for (label, _, point), cell in cells.items():
            if label == row.label and (values := cell.values(metric, row, paper)):
                i, j = ys["values"].index(point[1]), xs["values"].index(point[0])
                table[i, j] = np.mean(values)
        if np.isnan(table).all():
            ax.text(0.5, 0.5, "no run yet", ha="center", va="center")
        else:
            shown = np.ma.masked_invalid(table)
            plot.heat_map(shown.filled(np.nan), rows=ys["values"], columns=xs["values"], ax=ax)
            for (i, j), missing in np.ndenumerate(shown.mask | np.zeros(table.shape, bool)):
                if missing:
                    ax.texts[i * table.shape[1] + j].set_text("–")
            _dots(item, row, data, metric, table, ax)
        ax.set(xlabel=_symbol(xs), ylabel=_symbol(ys), title=f"{row.label}, {_titled(data)}")
    return figure


def _dots(item: Item, row, data, metric: str, table, ax):
    """Black dots where the mean is above the paper's own average."""
    if "dots" not in item.draw or data.stand_in:
        return
    table_key, method = item.draw["dots"]
    wanted = {"paper": item.paper, "table": table_key, "method": method, "variant": row.variant}
    found = published(**wanted, dataset=data.key, metric=metric, stat="mean")
    for i, j in np.argwhere(table > found[0]["value"]) if found else ():
        ax.plot(j + 0.36, i - 0.32, "o", color="black", ms=4)


def _bars(paper, item: Item, cells: dict):
    """Medians with lowest and highest (or standard deviations); a panel for each data set."""
    rows = {row.label: row for row in item.rows}
    by_data = item.draw.get("by") == "data"
    panels = [None] if by_data else list(item.datasets)
    figure, axes = canvas(len(panels), size=(1.6 + 1.1 * max(len(rows), 3), 3.6))
    for ax, data in zip(axes[0], panels):
        values = {}
        for (label, key, _), cell in cells.items():
            title = next(d for d in item.datasets if d.key == key)
            if data is None or data.key == key:
                name = _titled(title) if by_data else label.replace(" of ", "\nof ")
                values[name] = {
                    m.upper(): _reduced(cell.values(m, rows[label], paper), item.stat)
                    for m in item.metrics
                }
        if any(v for parts in values.values() for v in parts.values()):
            what = "standard deviation" if item.stat == "std" else "score"
            plot.bars(values, ax=ax, ylabel=what, groups=[m.upper() for m in item.metrics])
            ax.tick_params(axis="x", labelsize=8)
        else:
            ax.text(0.5, 0.5, "no run yet", ha="center", va="center")
        ax.set_title(rows[next(iter(rows))].label if data is None else _titled(data))
    return figure


def _reduced(values: list, stat: str) -> list:
    if stat != "std":
        return values
    return [float(np.std(values, ddof=1))] if len(values) > 1 else []


def _curve(paper, item: Item, cells: dict):
    """Mean and 95 % interval along a grid or along data sets; a line for each row."""
    metric, figure_axes = item.metrics[0], canvas(1)
    figure, ax = figure_axes[0], figure_axes[1][0][0]
    series: list[tuple] = []
    for row in item.rows:
        keys = [d.key for d in item.datasets]
        if item.grid:
            for data in item.datasets:
                name = row.label if len(keys) == 1 else f"{row.label}, {_titled(data)}"
                series.append((name, row, [((x,), data.key) for x in item.grid["x"]["values"]]))
        else:
            series.append((row.label, row, [((), key) for key in keys]))
    drawn = 0
    for name, row, places in series:
        points = [
            (i, cells[row.label, key, p].values(metric, row, paper))
            for i, (p, key) in enumerate(places)
        ]
        points = [(i, values) for i, values in points if values]
        if not points:
            continue
        means, half = [np.mean(v) for _, v in points], [half_width(v) for _, v in points]
        ax.errorbar(
            [i for i, _ in points], means, yerr=half, color=color(drawn), capsize=3, label=name,
            marker=plot.MARKERS[drawn], ls=plot.DASHES[drawn % len(plot.DASHES)],
        )  # fmt: skip
        drawn += 1
    ticks = item.grid["x"]["values"] if item.grid else [d.title for d in item.datasets]
    ax.set_xticks(range(len(ticks)), [str(t) for t in ticks])
    label = _symbol(item.grid["x"]) if item.grid else item.draw.get("xlabel", "")
    title = _titled(item.datasets[0]) if item.grid and len(item.datasets) == 1 else ""
    ax.set(xlabel=label, ylabel=metric.upper(), ylim=(0, 1.03), title=title)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def _symbol(axis: dict) -> str:
    return SYMBOLS.get(axis["symbol"], axis["symbol"])


def _titled(data) -> str:
    return data.title + (f" († {data.ours})" if data.stand_in else "")
