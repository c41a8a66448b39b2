"""How many clusters? Label-free curves over k, and an answer only where there is one.

With kith the answer is that of Kith("auto"), and the curves stand beside it. With any other method
it is the k on which the curves agree.

stability   how alike fits on different four fifths of the rows label all rows (mean adjusted
            Rand index of the pairs)
silhouette  how much nearer rows are to their own cluster than to the next one, in the rows as
            the method sees them (scaled, or its features)
merge       the clusters of the largest k are merged pair by pair along the neighbour graph; what
            is kept is how much a merge costs: the modularity at k less that at k - 1
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score

from .common_ground import plain_kmeans, sample
from .data.chunks import pick
from .data.dataset import Dataset
from .estimator.raw import first_rows
from .math.graph import neighbours
from .math.merge import greedy_merge, joint, modularity, one_hot
from .methods.kith.number import Number, number_of
from .methods.kith.numbered import Numbered
from .registry import DEFAULT, get
from .runtime.rng import numpy_rng

ROWS = 5000  # that silhouette and graph look at
NEAREST = 10
PARTS = 50  # principal components of wide rows
SHARE = 0.8  # of the rows, for each fit
AS_STABLE = 0.01  # few clusters are always stable: the most that still are count
CLOSE = 1  # answers that differ by this much are the same answer
CURVES = ("stability", "silhouette", "merge")


@dataclass
class Curves:
    """What `study` found: one number for each k and curve, and the k that each curve prefers."""

    k: list[int]
    curves: dict[str, list[float]] = field(default_factory=dict)
    found: Number | None = None  # by the density of the rows; for kith only

    @property
    def votes(self) -> dict[str, int]:
        """The k that each curve prefers: its top; of several that are as stable, the largest."""
        alive = {name: np.array(v) for name, v in self.curves.items() if np.isfinite(v).any()}
        best = {name: int(np.nanargmax(v)) for name, v in alive.items()}
        if "stability" in alive:
            v = alive["stability"]
            best["stability"] = int(np.flatnonzero(v >= np.nanmax(v) - AS_STABLE)[-1])
        return {name: self.k[i] for name, i in best.items()}

    @property
    def answer(self) -> int | None:
        """What the density of the rows says, of kith; else the k on which at least two curves agree
        and none is far off. None: no clear answer, or no structure.
        """
        if self.found is not None:
            return self.found.k if self.found.structure else None
        votes = sorted(self.votes.values())
        if len(votes) < 2 or votes[-1] - votes[0] > CLOSE:
            return None
        return votes[len(votes) // 2]

    def verdict(self) -> str:
        """One sentence for people."""
        said = ", ".join(f"{name} {k}" for name, k in self.votes.items())
        if self.found is not None:
            return f"{self.found.words()} (curves: {said})"
        if self.answer is None:
            return f"no clear answer: the curves prefer different k ({said})"
        return f"{self.answer} clusters ({said})"

    def draw(self, path: Any) -> None:
        """The curves under each other as a .png file; the preferred k of each is marked."""
        import matplotlib.pyplot as plt

        from .plot import DASHES, MARKERS, color
        from .storage.atomic import atomic

        figure, axes = plt.subplots(len(self.curves), 1, sharex=True, figsize=(6, 6))
        for i, (ax, (name, values)) in enumerate(zip(axes, self.curves.items())):
            style = {"color": color(i), "linestyle": DASHES[i], "marker": MARKERS[i]}
            ax.plot(self.k, values, **style)
            if name in self.votes:
                ax.axvline(self.votes[name], color="0.6", linewidth=0.8)
            ax.set_ylabel(name)
            ax.spines[["top", "right"]].set_visible(False)
        axes[-1].set_xlabel("clusters")
        axes[0].set_title(self.verdict(), fontsize=10)
        figure.tight_layout()
        with atomic(path) as file:
            figure.savefig(file, format="png", dpi=120)
        plt.close(figure)


def select_k(
    X: Any,
    ks: Iterable[int] = range(2, 21),
    *,
    method: str | type = DEFAULT,
    seeds: int = 2,
    **settings: Any,
) -> Curves:
    """How many clusters do these rows have?

    Parameters
    ----------
    X : rows, as for `fit`, or what `load_data` returns
    ks : numbers of clusters to try, at least two of them
    method : key or class of the method that is fitted
    seeds : fits at each k, at least 2
    **settings : parameters of the method

    Returns
    -------
    Curves
        `answer` is the k on which the curves agree, or None where there is no clear answer;
        `verdict()` says so in a sentence, `curves` has the numbers and `draw(path)` a picture.
    """
    cls: Any = get(method) if isinstance(method, str) else method
    tried = sorted(set(ks))
    if len(tried) < 2 or tried[0] < 2:
        raise ValueError(f"ks={tried}: give at least two numbers of clusters, each 2 or more")
    if isinstance(X, Dataset):
        X = X.X
    X = X if hasattr(X, "shape") and hasattr(X, "dtype") else np.asarray(X)
    seen = round(SHARE * X.shape[0])
    if tried[-1] > seen:
        raise ValueError(
            f"each fit sees {seen} of the {X.shape[0]} rows, but the largest of ks is {tried[-1]}; "
            "lower it or give more rows"
        )

    def make(k: int, seed: int) -> Any:
        return cls(n_clusters=k, random_state=seed, **settings)

    return study(make, X, tried, tuple(range(seeds)))


def study(make: Any, X: Any, ks: list[int], seeds: tuple[int, ...] = (0, 1), tell: Any = None):
    """Fit at each k with each seed and draw the curves.

    Parameters
    ----------
    make : callable (k, seed) -> estimator that is not fitted yet
    X : rows
    ks : numbers of clusters, increasing
    seeds : at least two, for the stability
    tell : callable, told each k when it is done

    Returns
    -------
    Curves
    """
    if len(seeds) < 2:
        raise ValueError(f"{len(seeds)} seed is too few to see what is stable; give 2 or more")
    # texts, or rows for an encoder, become numbers once for all
    X = first_rows(make(ks[0], seeds[0]), X)
    z: Any = None
    rows: Any = None
    found = Curves(list(ks), {name: [] for name in CURVES[:2]})
    first = make(ks[0], seeds[0])
    if isinstance(first, Numbered):
        found.found = number_of(first.set_params(encoder=None), X)
    labels = None
    for k in ks:
        models = [make(k, seed).set_params(encoder=None) for seed in seeds]
        models = [model.fit(X[_most(X, seed)]) for model, seed in zip(models, seeds)]
        if z is None:
            z, rows = _seen(X, models[0])
        labels = [model.predict(X) for model in models]
        pairs = [adjusted_rand_score(a, b) for i, a in enumerate(labels) for b in labels[:i]]
        found.curves["stability"].append(float(np.mean(pairs)))
        found.curves["silhouette"].append(_silhouette(z, labels[0][rows]))
        if tell:
            tell(k)
    found.curves["merge"] = merge_curve(z, labels[0][rows], found.k) if labels else []
    return found


def merge_curve(z: np.ndarray, labels: np.ndarray, ks: list[int]) -> list[float]:
    """Modularity lost by the merge from k to k - 1 clusters, less what the one before lost.

    Merging parts of one group costs little; the first merge of two real groups costs much more.
    """
    near = neighbours(
        torch.from_numpy(z), min(NEAREST, len(z) - 1), numpy_rng(0, "graph"), exact_rows=ROWS
    )
    names = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    most = int(names.max()) + 1
    j = joint(one_hot(names, most), near)
    height = {}
    for k in range(1, most + 1):
        merge = one_hot(greedy_merge(j, k), k).double()
        height[k] = modularity(merge.T @ j @ merge)

    def bend(k: int) -> float:
        if k - 1 not in height or k + 1 not in height:
            return float("nan")
        return (height[k] - height[k - 1]) - (height[k + 1] - height[k])

    return [bend(k) for k in ks]


def _most(X: Any, seed: int) -> np.ndarray:
    """Rows of one fit: most of them, others for each seed."""
    n = X.shape[0]
    picked = numpy_rng(seed, "stability").choice(n, round(SHARE * n), replace=False)
    return np.sort(picked)


def _seen(X: Any, model: Any) -> tuple[np.ndarray, np.ndarray]:  # -> (m, d), (m,)
    """Common ground for all k: a sample of the rows as the method sees them, and which rows."""
    rows = sample(X.shape[0], ROWS)
    some = pick(X, rows)
    z = plain_kmeans(model, some, n_clusters=1, n_init=1).fit(some).transform(some)
    if min(z.shape) > PARTS:
        z = PCA(PARTS, random_state=0).fit_transform(z)
    return np.ascontiguousarray(z, np.float32), rows


def _silhouette(z: np.ndarray, labels: np.ndarray) -> float:
    if not 1 < len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(z, labels))
