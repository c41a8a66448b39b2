"""Leiden: communities of the neighbour graph that Kith learns from, without a network."""

from typing import Any

import numpy as np
import torch

from ...estimator.params import param
from ...math.graph import neighbours
from ...math.merge import greedy_merge, joint, one_hot
from ...runtime.rng import derive, numpy_rng
from ..kith.row_features import usual_neighbours
from .on_features import OnFeatures
from .spectral import Transductive

BISECTIONS = 25


class Leiden(OnFeatures, Transductive):
    """Communities of the nearest-neighbour graph, at the resolution that gives n_clusters.

    Features and graph are those of Kith. The resolution is found by bisection; if no resolution
    gives exactly n_clusters, the next larger number of communities is merged down, the pair that
    is joined most above chance first. New rows take the label of the nearest training row.
    """

    key = "leiden"
    title = "Leiden"
    summary = "communities of Kith's neighbour graph (needs the extra `leiden`)"
    reference = "Traag, Waltman, van Eck 2019"
    tiny = {"n_iterations": 1}

    n_neighbors: int | None = param(
        None, "neighbours of each row; None: 10, or 5 below 2,000 rows", ge=1
    )
    n_iterations: int = param(2, "passes of the algorithm at each resolution", ge=1)

    _head = Transductive._head  # of features here

    def _label_rows(self, z: np.ndarray) -> np.ndarray:  # (n, m) -> (n,) int64
        n = len(z)
        k = min(self.n_neighbors or usual_neighbours(n), n - 1)
        near = neighbours(torch.from_numpy(z), k, numpy_rng(self.seed_, "graph"))
        labels = self._communities(near)
        count = int(labels.max()) + 1
        if count > self.n_clusters:
            names = greedy_merge(joint(one_hot(labels, count), near), self.n_clusters)
            labels = names[labels]
        return labels.numpy()

    def _communities(self, near: torch.Tensor) -> torch.Tensor:  # (n, k) -> (n,)
        """Bisect the resolution (in logarithms) until there are n_clusters, or just above."""
        igraph, leidenalg = _libraries()
        n, k = near.shape
        edges = np.stack([np.repeat(np.arange(n), k), near.numpy().ravel()], 1)
        graph = igraph.Graph(n, edges).simplify()
        seed = derive(self.seed_, "leiden") % 2**31

        def at(resolution: float) -> torch.Tensor:
            found = leidenalg.find_partition(
                graph,
                leidenalg.RBConfigurationVertexPartition,
                resolution_parameter=resolution,
                n_iterations=self.n_iterations,
                seed=seed,
            )
            return torch.tensor(found.membership)

        low, high, best = np.log(1e-3), np.log(1e3), None
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            labels = at(float(np.exp(middle)))
            count = int(labels.max()) + 1
            if count >= self.n_clusters and (best is None or count <= int(best.max()) + 1):
                best = labels
            if count == self.n_clusters:
                break
            low, high = (middle, high) if count < self.n_clusters else (low, middle)
        return labels if best is None else best


def _libraries() -> tuple[Any, Any]:
    try:
        import igraph
        import leidenalg
    except ImportError:
        raise ImportError(
            "leiden needs leidenalg and igraph: pip install 'coterie[leiden]'"
        ) from None
    return igraph, leidenalg
