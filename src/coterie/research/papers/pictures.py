"""Figures that show a model at work: drawn from run folders, which a fit leaves behind."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from coterie import plot
from coterie.data import load
from coterie.registry import load as load_model
from coterie.storage import runs

from .figures import canvas
from .protocol import Item

MAP_ROWS = 1500


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


def draw(item: Item):
    """The figure, from finished run folders."""
    found = [runs.read(folder) for folder in folders(item)]
    how, labels = item.draw["how"], item.draw.get("labels", [""] * len(found))
    return DRAW[how](item, found, labels)


def _map(item: Item, found: list, labels):
    """t-SNE of a sample of rows, the same rows for all runs; coloured by cluster."""
    from sklearn.manifold import TSNE

    figure, axes = canvas(len(found), size=(3.6, 3.8))
    for ax, run, label in zip(axes[0], found, labels):
        z, y = run.embedding, run.labels
        keep = np.random.default_rng(0).permutation(len(z))[:MAP_ROWS]
        flat: Any = np.asarray(z[keep], np.float32).reshape(len(keep), -1)
        spread = TSNE(
            2, init="pca", random_state=0, n_jobs=1, perplexity=min(30, (len(keep) - 1) / 3)
        ).fit_transform(flat)
        plot.embedding_map(spread, y[keep], ax=ax, names=False)
        ax.set_title(label)
    return figure


def _centers(item: Item, found: list, labels):
    """Class means above, decoded centres of every model below."""
    figure, axes = canvas(1, len(found) + 1, size=(7.5, 1.1))
    data = load(found[0].meta["data"]["name"])
    means = [np.asarray(data.X[data.labels == c]).mean(0) for c in np.unique(data.labels)]
    plot.image_rows([np.array(means)], ax=axes[0][0])
    axes[0][0].set_title("class means", fontsize=9)
    for ax, run, label in zip(axes[1:, 0], found, labels):
        model = load_model(run.path)
        plot.centers_grid(model, columns=model.n_clusters, ax=ax)
        ax.set_title(label, fontsize=9)
    return figure


def _interpolation(item: Item, found: list, labels):
    figure, axes = canvas(size=(6.0, 4.0))
    plot.interpolation_path(load_model(found[0].path), item.draw["pairs"], ax=axes[0][0])
    return figure


def _traversal(item: Item, found: list, labels):
    figure, axes = canvas(size=(6.0, 3.0))
    plot.traversal(load_model(found[0].path), item.draw["clusters"], ax=axes[0][0])
    return figure


def _spaces(item: Item, found: list, labels):
    """Rows rebuilt from the cluster space alone, and from the shared space alone."""
    figure, axes = canvas(1, 2, size=(7.0, 1.8))
    model, data = load_model(found[0].path), load(found[0].meta["data"]["name"])
    for ax, space in zip(axes[:, 0], ("cluster", "shared")):
        plot.reconstruction_pairs(model, data.X, ax=ax, space=space)
        ax.set_title(f"from the {space} space", fontsize=9)
    return figure


def _history(item: Item, found: list, labels):
    figure, axes = canvas(len(found), size=(5.2, 3.4))
    for ax, run, label in zip(axes[0], found, labels):
        plot.learning_curves(run.history, ax=ax)
        ax.set_title(label)
    return figure


def _samples(item: Item, found: list, labels):
    figure, axes = canvas(len(found), size=(4.2, 4.4))
    for ax, run, label in zip(axes[0], found, labels):
        plot.samples_grid(load_model(run.path), ax=ax)
        ax.set_title(label)
    return figure


def _plane(item: Item, found: list, labels):
    figure, axes = canvas(size=(4.6, 4.6))
    plot.embedding_map(found[0].embedding, found[0].labels, ax=axes[0][0])
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
