"""What a model looks like in a notebook; matplotlib is imported when something is drawn."""

from typing import Any

import numpy as np

from ..palette import color
from .html import html_card


class Pictured:
    """A model that shows itself: a card by its name alone, a map by `plot`."""

    _rows: Any
    _map: Any
    _labels: Any
    embed: Any

    def plot(self, X: Any, *, ax: Any = None) -> Any:
        """Map of the embedding of X in the colours of its clusters, for notebooks.

        More than two dimensions go through PCA. Returns the matplotlib axes; `coterie.plot` has
        more pictures.
        """
        rows = self._rows(X)
        return embedding_map(self._map(rows, self.embed), self._labels(rows), ax=ax)

    def _html_repr(self) -> str:
        return html_card(self)


def axes_of(ax, **size):
    import matplotlib.pyplot as plt

    if ax is not None:
        return ax
    return plt.subplots(figsize=size.get("figsize", (5, 4)), layout="constrained")[1]


def embedding_map(z, labels, *, ax: Any = None, names: bool = True, size: float | None = None):
    """Scatter of an embedding coloured by cluster; more than two dimensions go through PCA.

    Parameters
    ----------
    z : (n, d) array
    labels : (n,) array of int
    ax : matplotlib axes, optional
    names : bool
        Write each cluster's number at its median.
    size : float, optional
        Area of a dot; chosen by the number of rows when None.
    """
    z, labels = np.asarray(z, dtype=float), np.asarray(labels)
    if len(z) != len(labels):
        raise ValueError(f"z has {len(z)} rows but labels has {len(labels)}; give one label a row")
    if z.ndim != 2 or z.shape[1] != 2:
        from sklearn.decomposition import PCA

        flat = z.reshape(len(z), -1)
        flat = np.column_stack([flat, np.zeros(len(flat))]) if flat.shape[1] == 1 else flat
        z = PCA(2, random_state=0).fit_transform(flat)
    ax = axes_of(ax, figsize=(5, 5))
    size = size or float(np.clip(20_000 / len(z), 1.5, 30))
    order = np.random.default_rng(0).permutation(len(z))  # no cluster covers another
    shades = np.array([color(j) for j in labels])
    ax.scatter(*z[order].T, s=size, c=shades[order], linewidths=0, rasterized=len(z) > 2000)
    for j in np.unique(labels) if names else ():
        at = np.median(z[labels == j], axis=0)
        box = {"boxstyle": "circle,pad=0.25", "fc": "white", "ec": color(j), "lw": 1.5}
        ax.text(at[0], at[1], str(j), ha="center", va="center", fontsize=9, bbox=box)
    ax.set(xticks=[], yticks=[], aspect="equal")
    for spine in ax.spines.values():
        spine.set_edgecolor("0.85")
    return ax
