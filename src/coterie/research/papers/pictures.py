"""Figures that show a model at work, from run folders or from the models that a campaign kept."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie import plot
from coterie.data import load
from coterie.registry import load as load_model
from coterie.storage import runs

from .cells import Book
from .figures import canvas
from .jobs import slots
from .protocol import Item, Paper

MAP_ROWS = 2000  # of C-Net's figure 3


@dataclass
class Fitted:
    """A panel: a model and the rows that it was fitted on; no model: the rows themselves."""

    label: str
    data: Any
    model: Any = None


def folders(item: Item) -> list[Path]:
    """The run folders that an item's commands write."""
    words = [shlex.split(command) for command in item.commands]
    return [Path(line[line.index("--out") + 1]) for line in words]


def absent(item: Item) -> list[str]:
    """The commands whose run folder is not there (or not finished) yet."""
    return [
        command
        for command, folder in zip(item.commands, folders(item))
        if (runs.peek(folder) or {}).get("status") != "done"
    ]


def from_runs(item: Item) -> list[Fitted]:
    """The panels, from finished run folders."""
    paths = folders(item)
    names = item.draw.get("labels", [""] * len(paths))
    return [
        Fitted(label, load(runs.read(path).meta["data"]["name"]), load_model(path))
        for label, path in zip(names, paths)
    ]


def from_models(paper: Paper, item: Item, book: Book, kept: Path) -> list[Fitted]:
    """The panels, from models that a campaign kept of runs at published settings.

    `draw` names them: `table` and `cells`, pairs of a row's label and a data set's key, with
    `labels`. Those whose model is not there are left out.
    """
    if "cells" not in item.draw:
        return []
    places = {(s.row.label, s.data.key): s for s in slots(paper, paper.item(item.draw["table"]))}
    found, cells = [], item.draw["cells"]
    for (row, key), label in zip(cells, item.draw.get("labels") or [row for row, _ in cells]):
        slot = places[row, key]
        names = [run.get("predictions") for run in book.cell(slot, "paper", exact=True).runs]
        here = [kept / name for name in names if name and (kept / name).is_dir()]
        if here:
            data = load(slot.data.source, **slot.data.options)
            found.append(Fitted(label, data, load_model(here[0])))
    return found


def draw(item: Item, panels: list[Fitted]):
    """The figure of an item."""
    return DRAW[item.draw["how"]](item, panels)


def _map(item: Item, panels: list[Fitted]):
    """A map of the same rows for every model, coloured by class, with the centres as squares.

    `inputs` puts a map of the rows themselves first.
    """
    if item.draw.get("inputs"):
        panels = [Fitted("data", panels[0].data), *panels]
    figure, axes = canvas(len(panels), size=(3.6, 3.8))
    for ax, panel in zip(axes[0], panels):
        data = panel.data
        keep = np.random.default_rng(0).permutation(len(data.X))[:MAP_ROWS]
        z, y = data.X[keep], np.asarray(data.labels)[keep]
        centers = getattr(panel.model, "cluster_centers_", None)
        z = panel.model.transform(z) if panel.model is not None else z
        z = np.asarray(z.todense() if hasattr(z, "todense") else z, np.float32).reshape(len(z), -1)
        if centers is None or np.shape(centers)[1:] != z.shape[1:]:
            centers = np.empty((0, z.shape[1]), np.float32)
        flat = project(np.concatenate([z, np.asarray(centers, np.float32)]))
        plot.embedding_map(flat[: len(z)], np.unique(y, return_inverse=True)[1], ax=ax, names=False)
        ax.plot(*flat[len(z) :].T, "s", color="black", mfc="white", ms=6)
        ax.set_title(panel.label)
    return figure


def project(z: np.ndarray) -> np.ndarray:  # (n, d) -> (n, 2)
    """UMAP where it is installed, as in the paper; otherwise t-SNE."""
    if z.shape[1] == 2:
        return z
    try:
        from umap import UMAP
    except ImportError:
        from sklearn.manifold import TSNE

        near = min(30, (len(z) - 1) / 3)
        return TSNE(2, init="pca", random_state=0, n_jobs=1, perplexity=near).fit_transform(z)
    near = min(15, len(z) - 1)
    return np.asarray(UMAP(n_neighbors=near, random_state=0, n_jobs=1).fit_transform(z))


def _centers(item: Item, panels: list[Fitted]):
    """Class means above, decoded centres of every model below."""
    figure, axes = canvas(1, len(panels) + 1, size=(7.5, 1.1))
    data = panels[0].data
    means = [np.asarray(data.X[data.labels == c]).mean(0) for c in np.unique(data.labels)]
    plot.image_rows([np.array(means)], ax=axes[0][0])
    axes[0][0].set_title("class means", fontsize=9)
    for ax, panel in zip(axes[1:, 0], panels):
        plot.centers_grid(panel.model, columns=panel.model.n_clusters, ax=ax)
        ax.set_title(panel.label, fontsize=9)
    return figure


def _interpolation(item: Item, panels: list[Fitted]):
    """One chain through all centres: a line from each to the next."""
    figure, axes = canvas(size=(6.0, 6.0))
    model = panels[0].model
    chain = [(j, j + 1) for j in range(model.n_clusters - 1)]
    plot.interpolation_path(model, chain, ax=axes[0][0])
    return figure


def _traversal(item: Item, panels: list[Fitted]):
    figure, axes = canvas(size=(6.0, 3.0))
    plot.traversal(panels[0].model, item.draw["clusters"], ax=axes[0][0])
    return figure


def _spaces(item: Item, panels: list[Fitted]):
    """Rows rebuilt from the cluster space alone, and from the shared space alone."""
    figure, axes = canvas(1, 2, size=(7.0, 1.8))
    for ax, space in zip(axes[:, 0], ("cluster", "shared")):
        plot.reconstruction_pairs(panels[0].model, panels[0].data.X, ax=ax, space=space)
        ax.set_title(f"from the {space} space", fontsize=9)
    return figure


def _history(item: Item, panels: list[Fitted]):
    figure, axes = canvas(len(panels), size=(5.2, 3.4))
    for ax, panel in zip(axes[0], panels):
        plot.learning_curves(panel.model.history_, ax=ax)
        ax.set_title(panel.label)
    return figure


def _samples(item: Item, panels: list[Fitted]):
    figure, axes = canvas(len(panels), size=(4.2, 4.4))
    for ax, panel in zip(axes[0], panels):
        plot.samples_grid(panel.model, ax=ax)
        ax.set_title(panel.label)
    return figure


def _plane(item: Item, panels: list[Fitted]):
    figure, axes = canvas(size=(4.6, 4.6))
    z = panels[0].model.transform(panels[0].data.X)
    plot.embedding_map(z, panels[0].model.labels_, ax=axes[0][0])
    return figure


DRAW = {
    "map": _map,
    "centers": _centers,
    "interpolation": _interpolation,
    "traversal": _traversal,
    "spaces": _spaces,
    "history": _history,
    "samples": _samples,
    "plane": _plane,
}
