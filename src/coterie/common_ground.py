"""What results are compared with: the same for every method, in the terminal and on the pages.

`kmeans_baseline` is plain k-means on the rows as the method saw them. `Ground` is the data's own
features, on which no method has worked, with the graph of nearest neighbours in them.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics import adjusted_rand_score, silhouette_score

from .data.chunks import pick
from .estimator.encoding import chosen_encoder
from .estimator.result import Outcome
from .math.centers import kmeans
from .math.graph import neighbours
from .math.guess import guess_kind
from .math.merge import joint, neighbours_kept, one_hot, spectral_merge
from .methods.baselines.gmm import log_densities, mixture_head
from .registry import get
from .runtime.rng import numpy_rng
from .train.rows import channels_first_shape

KMEANS_ROWS = 20_000  # rows that the k-means beside a result learns from
GROUND_ROWS = 3000  # rows of the common ground: all pairs are compared
KIND_ROWS = 2000  # that tell what kind of data they are
NEAREST = 10
CELLS = 150  # that the graph method puts together


def sample(n: int, most: int) -> np.ndarray:
    """Rows spread evenly over the data: no draw, so nothing to seed."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


# -- k-means beside a result ----------------------------------------------------------------
@dataclass
class KMeansBaseline:
    """Plain k-means with the result's number of clusters, and the space in which it worked."""

    model: Any
    labels: np.ndarray  # (n,)
    result: np.ndarray  # (n,) labels of the result
    rows: np.ndarray  # sampled, of which z holds the features
    z: np.ndarray
    learned_from: np.ndarray  # rows that it was fitted on
    outcome: Outcome  # of those

    @cached_property
    def agreement(self) -> float:
        """Adjusted Rand index with the result, over the rows that this has a cluster for."""
        kept = self.result >= 0
        return float(adjusted_rand_score(self.result[kept], self.labels[kept]))

    @property
    def silhouette(self) -> float:
        return self.silhouette_of(self.labels)

    @property
    def silhouette_of_result(self) -> float:
        return self.silhouette_of(self.result)

    def silhouette_of(self, labels: np.ndarray) -> float:
        return silhouette(self.z, labels[self.rows])


def kmeans_baseline(model: Any, X: Any, labels: np.ndarray) -> KMeansBaseline:
    """Fit k-means on what `model` saw of X, at most 20,000 evenly spread rows of it."""
    n = X.shape[0]
    learned_from = sample(n, KMEANS_ROWS)
    some = pick(X, learned_from)
    if getattr(model, "key", "") == "kmeans":  # it stands for itself
        simple, seen = model, model.outcome(some)
    else:
        simple = plain_kmeans(model, some)
        seen = _silently(simple, some)
    if simple is model:
        own = np.asarray(labels)
    else:
        own = seen.labels if len(learned_from) == n else simple.predict(X)
    rows = sample(len(learned_from), GROUND_ROWS)
    return KMeansBaseline(
        simple, own, labels, learned_from[rows], seen.embedding[rows], learned_from, seen
    )


def _silently(simple: Any, some: Any) -> Outcome:
    """Fit without warnings: they would seem to be about the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return simple.fit_outcome(some)


def plain_kmeans(model: Any, some: Any, **changes: Any) -> Any:
    """k-means for the features of `model` if it has such, else for its scaled rows; not fitted.

    Counts are taken in logarithms: in raw counts the few largest columns decide alone.
    """
    seed = int(getattr(model, "seed_", 0) or 0)
    settings: dict[str, Any] = {
        "n_clusters": int(getattr(model, "n_clusters_", 0) or model.n_clusters),
        "random_state": seed,
    } | changes
    kind = _seen_kind(model, some)
    cls: Any = get("feature_kmeans" if kind else "kmeans")
    own = {"kind": kind} if kind else {"scale": getattr(model, "scale", "auto")}
    return cls(**settings, **own, encoder=chosen_encoder(model))


def _seen_kind(model: Any, some: Any) -> str | None:
    """The kind of features that a model works on; None: on the scaled rows themselves."""
    network = getattr(model, "network_", None)
    features = getattr(getattr(network, "net", network), "features", None)
    if features is not None:
        return features.kind
    if getattr(model, "encoder", None) is not None:
        return None
    return "counts" if _kind_of(some) == "counts" else None


def _kind_of(some: Any) -> str:
    some, sparse = some[:KIND_ROWS], sp.issparse(some)
    values = np.array(some.toarray() if sparse else some, np.float32)
    return guess_kind(torch.from_numpy(values), sparse, channels_first_shape(some.shape[1:]))


def silhouette(z: Any, labels: np.ndarray, most: int = GROUND_ROWS) -> float:  # (n, d), (n,)
    """Mean silhouette of evenly spread rows; nan where there is nothing to tell apart.

    Rows that belong nowhere (-1) are left out.
    """
    rows = sample(len(labels), most)
    rows = rows[labels[rows] >= 0]
    z, labels = z[rows], labels[rows]
    if not 1 < len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(z if sp.issparse(z) else z.reshape(len(z), -1), labels))


# -- the common ground ----------------------------------------------------------------------
class Ground:
    """A sample of the rows in the data's own features, and clusterings of it by three families.

    Parameters
    ----------
    X : rows
    k : number of clusters
    """

    def __init__(self, X: Any, k: int, seed: int = 0):
        self.rows = sample(X.shape[0], GROUND_ROWS)
        self.k, self.seed, some = k, seed, pick(X, self.rows)
        cls: Any = get("feature_kmeans")
        self._kmeans = _silently(cls(n_clusters=k, random_state=seed), some)
        self.z: np.ndarray = self._kmeans.embedding  # (m, d)
        most = min(NEAREST, len(self.z) - 1)
        self.near = neighbours(torch.from_numpy(self.z), most, numpy_rng(seed, "graph"))

    @cached_property
    def others(self) -> dict[str, np.ndarray]:
        """Labels of the sampled rows, each by another idea of what a cluster is."""
        return {
            "k-means on the features": self._kmeans.labels,
            "a Gaussian mixture": self._mixture(),
            "a graph method": self._graph(),
        }

    def _mixture(self) -> np.ndarray:
        few = len(self.z) < 10 * self.k * self.z.shape[1]
        covariance = "diag" if few else "full"
        head = mixture_head(
            self.z, self.k, self.seed, start="kmeans", covariance=covariance, n_init=1
        )
        return log_densities(torch.from_numpy(self.z), head).argmax(1).numpy()

    def _graph(self) -> np.ndarray:
        """Normalised cut of the graph, over small cells: exact where the graph falls apart."""
        rng = numpy_rng(self.seed, "cells")
        cells = max(self.k, min(CELLS, len(self.z) // 5))
        small = kmeans(torch.from_numpy(self.z), cells, rng=rng, n_init=1).labels
        return spectral_merge(joint(one_hot(small, cells), self.near), self.k, rng)[small].numpy()

    def silhouette(self, labels: np.ndarray) -> float:  # (n,) of all rows
        return silhouette(self.z, labels[self.rows])

    def agreement(self, labels: np.ndarray) -> dict[str, float]:  # (n,) of all rows
        """Adjusted Rand index with each of the `others`."""
        mine = labels[self.rows]
        return {name: float(adjusted_rand_score(mine, o)) for name, o in self.others.items()}

    def edges(self, labels: np.ndarray) -> np.ndarray:  # (m,) of the sample -> (k, k)
        """How often an edge of the graph joins clusters a and b: symmetric, sums to 1.

        Rows that belong nowhere (-1) are counted as one more cluster.
        """
        names = torch.from_numpy(np.where(labels < 0, labels.max() + 1, labels))
        return joint(one_hot(names, int(names.max()) + 1), self.near).numpy()

    def kept(self, labels: np.ndarray) -> float:  # (n,) of all rows
        """Share of a row's nearest rows in its own cluster, beyond chance: 1 all, 0 as drawn."""
        return self.kept_of(labels[self.rows])

    def kept_of(self, labels: np.ndarray) -> float:  # (m,) of the sample
        return neighbours_kept(torch.from_numpy(self.edges(labels)))

    def united(self) -> tuple[tuple[str, str], float]:
        """The two families that agree best with each other, and their adjusted Rand index."""
        names = list(self.others)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
        found = {p: adjusted_rand_score(self.others[p[0]], self.others[p[1]]) for p in pairs}
        best = max(found, key=found.__getitem__)
        return best, float(found[best])

    def borders(self, labels: np.ndarray) -> list[tuple[float, int, int, int]]:
        """For each two clusters: links between them over those of the smaller; their number; a; b.

        `labels` are those of all rows.
        """
        j = self.edges(labels[self.rows])
        d, links = j.sum(1), self.near.numel()
        alive = np.flatnonzero(d > 0)
        return [
            (float(j[a, b] / min(d[a], d[b])), round(2 * links * float(j[a, b])), int(a), int(b))
            for i, a in enumerate(alive)
            for b in alive[:i]
        ]

    def splits(self, labels: np.ndarray, least: float) -> list[tuple[float, int, float, str]]:
        """For each cluster and each way in which another family cuts a part off it.

        Links across the cut over those of the smaller side; the cluster; the larger side's share;
        the family. Parts with a smaller share than `least` are stray rows, no part.
        """
        mine, out = labels[self.rows], []
        for name, other in self.others.items():
            pairs, codes = np.unique(np.stack([mine, other]), axis=1, return_inverse=True)
            j = self.edges(codes.ravel())
            d, of = j.sum(1), pairs[0]
            for part, cluster in enumerate(of):
                rest = (of == cluster) & (np.arange(len(of)) != part)
                share = d[part] / d[of == cluster].sum()
                if not least <= share <= 1 - least:
                    continue
                cut = float(j[part, rest].sum() / min(d[part], d[rest].sum()))
                out.append((cut, int(cluster), float(max(share, 1 - share)), name))
        return out
