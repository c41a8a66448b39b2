"""A grid of settings (`coterie bench --grid`) as a heat map, drawn from the ledger."""

from typing import Any

import numpy as np

from coterie import plot


def grid_map(runs, x: str, y: str, *, metric: str = "ari", ax: Any = None):
    """Heat map over two parameters from lines of the ledger: mean over runs at every point.

    Parameters
    ----------
    runs : list of dict, of one method on one data set (see `coterie.bench.tables.select`)
    x, y : names of parameters, or functions of a run's `params`
    """

    def read(what, run):
        return what(run["params"]) if callable(what) else run["params"].get(what)

    found: dict[tuple, list] = {}
    for run in runs:
        at = read(x, run), read(y, run)
        if run["status"] == "ok" and None not in at:
            found.setdefault(at, []).append(run[metric])
    if not found:
        raise ValueError(f"none of {len(runs)} runs has values for both axes; select other runs")
    xs, ys = (sorted({at[i] for at in found}) for i in (0, 1))
    table = np.full((len(ys), len(xs)), np.nan)
    for at, values in found.items():
        table[ys.index(at[1]), xs.index(at[0])] = np.mean(values)
    ax = plot.heat_map(table, rows=[f"{v:g}" for v in ys], columns=[f"{v:g}" for v in xs], ax=ax)
    for text, value in zip(ax.texts, table.ravel()):
        if np.isnan(value):
            text.set_text("–")
    names = [what if isinstance(what, str) else "" for what in (x, y)]
    ax.set(xlabel=names[0], ylabel=names[1], title=metric.upper())
    return ax
