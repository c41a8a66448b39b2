"""Static pictures for notebooks and papers.

Every function draws on the axes it is given (or makes its own) and returns them, saves nothing and
changes no global setting. Colours are the report's: safe for colour-blind readers, and lines and
bars also differ in dash, marker or hatch, so that a grey print can be read. matplotlib is imported
when the first picture is drawn.
"""

from typing import Any

import numpy as np

from .estimator.html import html_card
from .estimator.picture import axes_of, embedding_map
from .palette import color

__all__ = [
    "bars",
    "centers_grid",
    "critic_contour",
    "decision_surface",
    "embedding_map",
    "heat_map",
    "html_card",
    "image_rows",
    "interpolation_path",
    "learning_curves",
    "reconstruction_pairs",
    "samples_grid",
    "traversal",
]

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 3)))
MARKERS = "osD^vPX*<>"
HATCHES = ("", "//", "\\\\", "xx", "..", "oo")


def _plain(ax):
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _tiles(rows):  # list of (m, h, w[, c]) -> one picture (r * h, m * w[, c])
    rows = [np.asarray(r, dtype=float) for r in rows]
    rows = [r[..., 0] if r.ndim == 4 and r.shape[-1] == 1 else r for r in rows]
    if any(r.ndim < 3 for r in rows):
        raise ValueError(
            f"pictures have shape {rows[0].shape[1:]}; they must be (h, w) or (h, w, c): "
            "reshape the rows"
        )
    low, high = min(r.min() for r in rows), max(r.max() for r in rows)
    if not (low >= 0 and high <= 1):
        rows = [(r - low) / ((high - low) or 1.0) for r in rows]
    width = max(len(r) for r in rows)
    lines = []
    for r in rows:
        blank = np.ones((width - len(r), *r.shape[1:]))
        lines.append(np.concatenate([*r, *blank], axis=1))
    return np.concatenate(lines, axis=0)


def _show(ax, rows, labels=None, figsize=None):
    picture = _tiles(rows)
    columns = max(len(r) for r in rows)
    ax = axes_of(ax, figsize=figsize or (max(2.0, 0.7 * columns), max(0.8, 0.7 * len(rows))))
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    if labels is not None:
        height = picture.shape[0] / len(rows)
        ax.set_yticks([height * (i + 0.5) for i in range(len(rows))], labels)
        ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def image_rows(rows, *, labels=None, ax: Any = None):
    """Pictures in lines: `rows` is a list of (m, h, w) or (m, h, w, c) arrays."""
    return _show(ax, rows, labels)


def centers_grid(model, *, columns: int = 10, ax: Any = None):
    """The decoded centre of every cluster, `columns` in a line, in the order of the numbers."""
    found = np.asarray(model.centers_in_input_space())
    return _show(ax, [found[i : i + columns] for i in range(0, len(found), columns)])


def samples_grid(model, *, n: int = 10, ax: Any = None):
    """n drawn pictures of each cluster, one line each, from a model that generates."""
    lines = [model.sample(j, n) for j in range(model.n_clusters)]
    return _show(ax, lines, [str(j) for j in range(len(lines))])


def interpolation_path(model, pairs, *, steps: int = 9, ax: Any = None):
    """What lies between two centres; `pairs` is (a, b) or a list of them, one line each."""
    pairs = [pairs] if np.ndim(pairs) == 1 else list(pairs)
    ways = [model.interpolate(int(a), int(b), steps) for a, b in pairs]
    return _show(ax, ways, [f"{a} → {b}" for a, b in pairs])


def traversal(model, clusters, *, component: int = 0, steps: int = 9, ax: Any = None):
    """Clusters moved along one direction of ACe/DeC's shared space, one line each."""
    clusters = np.atleast_1d(clusters)
    ways = [model.traverse(int(j), component, steps) for j in clusters]
    return _show(ax, ways, [str(j) for j in clusters])


def reconstruction_pairs(model, X, *, n: int = 10, ax: Any = None, **kwargs):
    """Rows (above) and what the model makes of them (below); kwargs go to `reconstruct`."""
    # black and white come from rows of the whole data: a few dark ones stay dark
    probe, some = np.asarray(X[:: max(1, len(X) // 500)]), np.asarray(X[:n])
    low, high = (0, 255) if probe.dtype == np.uint8 else (probe.min(), probe.max())
    pairs = some, np.asarray(model.reconstruct(some, **kwargs))
    unit = [(np.clip(rows, low, high) - low) / ((high - low) or 1) for rows in pairs]
    return _show(ax, unit, ["data", "model"])


def learning_curves(history, *, terms=None, ax: Any = None, log: bool = False):
    """Named terms of a model's `history_` over epochs; a dotted line divides the phases.

    Parameters
    ----------
    history : list of dict, or a fitted model
    terms : list of str, optional
        Which numbers to draw; the loss terms when None.
    """
    history = list(getattr(history, "history_", history))
    hidden = {"epoch", "step", "seconds", "clusters_used", "smallest_share", "largest_share"}
    if terms is None:
        terms = [
            k for h in history for k, v in h.items() if isinstance(v, float) and k not in hidden
        ]
        terms = list(dict.fromkeys(terms))
    ax = _plain(axes_of(ax, figsize=(6, 3.5)))
    for i, name in enumerate(terms):
        points = [(t, h[name]) for t, h in enumerate(history, 1) if h.get(name) is not None]
        if points:
            dash = DASHES[i % len(DASHES)]
            ax.plot(*zip(*points), color=color(i), linestyle=dash, label=name, lw=1.8)
    phases = [h.get("phase") for h in history]
    for t in range(1, len(phases)):
        if phases[t] != phases[t - 1]:
            ax.axvline(t + 0.5, color="0.7", lw=1, ls=":")
            ax.annotate(
                str(phases[t]), (t + 0.7, 1), xycoords=("data", "axes fraction"),
                va="top", fontsize=8, color="0.4",
            )  # fmt: skip
    ax.set(xlabel="epoch", ylabel="loss", yscale="log" if log else "linear")
    if terms:
        ax.legend(frameon=False)
    return ax


def heat_map(table, *, rows=None, columns=None, ax: Any = None, decimals: int | None = None):
    """A table as shades with its numbers written in, e.g. clusters against classes."""
    table = np.asarray(table)
    ax = axes_of(ax, figsize=(1.5 + 0.55 * table.shape[1], 1 + 0.42 * table.shape[0]))
    high = np.nanmax(table) or 1
    ax.imshow(table, cmap="Blues", vmin=min(0, np.nanmin(table)), vmax=high, aspect="auto")
    if decimals is None:
        decimals = 0 if np.issubdtype(table.dtype, np.integer) else 2
    for (i, j), value in np.ndenumerate(table):
        shade = "white" if value > 0.6 * high else "0.15"
        ax.text(j, i, f"{value:.{decimals}f}", ha="center", va="center", color=shade, fontsize=9)
    for axis, names, count in ((ax.yaxis, rows, len(table)), (ax.xaxis, columns, table.shape[1])):
        axis.set_ticks(range(count), [str(n) for n in (range(count) if names is None else names)])
    ax.tick_params(length=0)
    return ax


def decision_surface(model, X, *, ax: Any = None, steps: int = 200):
    """Which cluster a model gives to every place of a two-dimensional data set."""
    X = np.asarray(X, dtype=np.float32)
    grid, (gx, _), (low, high) = _plane(X, steps)
    from matplotlib.colors import ListedColormap

    ax = axes_of(ax, figsize=(5, 4))
    areas, labels = model.predict(grid).reshape(gx.shape), model.predict(X)
    k = int(max(areas.max(), labels.max())) + 1
    shades = ListedColormap([color(j) for j in range(k)])
    extent = (low[0], high[0], low[1], high[1])
    ax.imshow(
        areas, origin="lower", extent=extent, cmap=shades, vmin=-0.5, vmax=k - 0.5,
        alpha=0.22, aspect="auto", interpolation="nearest",
    )  # fmt: skip
    for j in np.unique(labels):
        part, marker = X[labels == j], MARKERS[j % len(MARKERS)]
        ax.scatter(*part.T, s=14, color=color(j), marker=marker, linewidths=0, label=str(j))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return ax


def critic_contour(model, X, *, ax: Any = None, steps: int = 120, n: int = 30, rows: int = 400):
    """Contour lines of CueGAN's critic in the plane, real points and `n` generated of each cluster.

    Where the critic is high there are too few generated points; the generator climbs.
    """
    X = np.asarray(X, dtype=np.float32)
    grid, (gx, gy), (low, high) = _plane(X, steps)
    ax = axes_of(ax, figsize=(5, 4))
    ax.contour(gx, gy, model.critic_values(grid).reshape(gx.shape), 16, linewidths=0.7)
    ax.plot(*X[:rows].T, "+", color=color(1), ms=4, label="real")
    drawn = np.concatenate([model.sample(j, n) for j in range(model.n_clusters)])
    ax.plot(*drawn.T, "x", color=color(2), ms=4, label="generated")
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return ax


def _plane(X, steps):  # (n, 2) -> (steps^2, 2) grid, its coordinates, its corners
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; a surface needs (n, 2): choose two columns")
    pad = 0.08 * np.ptp(X, axis=0)
    low, high = X.min(0) - pad, X.max(0) + pad
    gx, gy = np.meshgrid(np.linspace(low[0], high[0], steps), np.linspace(low[1], high[1], steps))
    return np.column_stack([gx.ravel(), gy.ravel()]).astype(np.float32), (gx, gy), (low, high)


def bars(values, *, ax: Any = None, ylabel: str = "", groups=None):
    """Medians as bars with lowest and highest as whiskers and every value as a dot.

    Parameters
    ----------
    values : dict name -> list of numbers, or dict name -> dict group -> list of numbers
    groups : list, optional
        Order of the groups in the second form.
    """
    nested = any(isinstance(v, dict) for v in values.values())
    if not nested:
        values = {name: {"": list(v)} for name, v in values.items()}
    groups = list(groups or dict.fromkeys(g for v in values.values() for g in v))
    ax = _plain(axes_of(ax, figsize=(1.5 + 0.9 * len(values) * len(groups) ** 0.5, 3.5)))
    width = 0.8 / len(groups)
    for g, group in enumerate(groups):
        for i, (_, parts) in enumerate(values.items()):
            numbers = np.asarray(parts.get(group, []), dtype=float)
            if not len(numbers):
                continue
            x = i + (g - (len(groups) - 1) / 2) * width
            middle = float(np.median(numbers))
            spread = [[middle - numbers.min()], [numbers.max() - middle]]
            ax.bar(
                x, middle, width * 0.9, color=color(g), alpha=0.75, edgecolor="0.2", linewidth=0.6,
                hatch=HATCHES[g % len(HATCHES)] if len(groups) > 1 else "",
                label=str(group) if i == 0 and nested else None,
            )  # fmt: skip
            if len(numbers) > 1:
                ax.errorbar(x, middle, yerr=spread, color="0.15", capsize=3, lw=1)
                ax.plot([x] * len(numbers), numbers, ".", color="0.15", ms=4)
    ax.set_xticks(range(len(values)), list(values))
    ax.set_ylabel(ylabel)
    if nested:
        ax.legend(frameon=False)
    return ax
