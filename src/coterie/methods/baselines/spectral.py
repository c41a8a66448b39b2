"""Rivals that work on the neighbour graph: spectral clustering and UMAP with a Gaussian mixture.

They label the training rows only. New rows take the label of the nearest training row, so the
model keeps those rows; the soft assignment counts the labels of the ten nearest.
"""

import warnings
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph
from threadpoolctl import threadpool_limits

from ...estimator.base import Clusterer
from ...estimator.fields import n_init_param
from ...estimator.params import param
from ...math.assign import squared_distances
from ...math.centers import kmeans
from ...math.spectral import spectral_embedding
from ...nets import Identity
from ...runtime.device import to_numpy
from ...runtime.rng import derive, numpy_rng
from ...train.head import Head
from ...train.rows import Rows
from .gmm import log_densities, mixture_head
from .kmeans import FlatRows

VOTERS = 10
BLOCK = 2**24  # distances held at a time


class Transductive(Clusterer):
    """Base: `_label_rows` labels the training rows, neighbours carry the labels to new ones."""

    def _label_rows(self, z: np.ndarray) -> np.ndarray:  # (n, d) -> (n,)
        raise NotImplementedError

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        z = FlatRows(rows).slice(0, rows.n).contiguous()
        # one thread: sums over threads may come in any order, and labels would not repeat
        with threadpool_limits(1):
            self.head_ = self._head(to_numpy(z))

    def _head(self, z: np.ndarray) -> Head:  # (n, d)
        labels = torch.from_numpy(self._label_rows(z).astype(np.int64))
        clusters = torch.tensor(self.n_clusters)
        return Head(state={"known": torch.from_numpy(z), "labels": labels, "clusters": clusters})

    def _renumber(self, order: torch.Tensor) -> None:
        self.head_.labels.copy_(order.argsort()[self.head_.labels])

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        """Half the weight on the nearest row, half on the vote of the ten nearest."""
        voters = min(VOTERS, len(head.known))
        scores = latents.new_zeros(len(latents), int(head.clusters))
        step = max(1, BLOCK // len(head.known))
        for start in range(0, len(latents), step):
            distances = squared_distances(latents[start : start + step], head.known)
            near = head.labels[distances.topk(voters, largest=False).indices]  # (b, voters)
            block = scores[start : start + step]
            block.scatter_add_(1, near, block.new_full(near.shape, 0.5 / voters))
            block.scatter_add_(1, near[:, :1], block.new_full((len(near), 1), 0.5))
        return scores

    def fit_of(self, scores: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        """Less the mean distance to the nearest training rows: their votes are mostly unanimous."""
        known, step = self.head_.known, max(1, BLOCK // len(self.head_.known))
        return torch.cat(
            [
                -squared_distances(part, known)
                .topk(min(VOTERS, len(known)), largest=False)
                .values.sqrt()
                .mean(1)
                for part in latents.split(step)
            ]
        )


class Spectral(Transductive):
    """Normalised cut on the k-nearest-neighbour graph."""

    key = "spectral"
    title = "Spectral"
    summary = "spectral clustering on the 10-nearest-neighbour graph"
    reference = "Ng, Jordan, Weiss 2001; Shi, Malik 2000"
    tiny = {"n_init": 2}

    n_neighbors: int = param(10, "neighbours of each row", ge=1)
    n_init: int = n_init_param()

    def _label_rows(self, z: np.ndarray) -> np.ndarray:
        rng, n = numpy_rng(self.seed_, "init"), len(z)
        graph: Any = kneighbors_graph(z, min(self.n_neighbors, n - 1), include_self=False)
        embedding = spectral_embedding((graph + graph.T) * 0.5, self.n_clusters, rng)
        found = kmeans(torch.from_numpy(embedding), self.n_clusters, rng=rng, n_init=self.n_init)
        return found.labels.numpy()


class UMAPGMM(Transductive):
    """PCA to 50 dimensions, UMAP to 10, then a Gaussian mixture."""

    key = "umap_gmm"
    title = "UMAP + GMM"
    summary = "PCA-50, UMAP-10, Gaussian mixture (needs the extra `umap`)"
    reference = "McInnes, Healy, Melville 2018; McConville et al. 2021 (N2D)"
    tiny = {"n_epochs": 5}

    n_neighbors: int = param(15, "neighbours of each row", ge=2)
    n_components: int = param(10, "dimensions of the UMAP embedding", ge=1)
    n_epochs: int | None = param(None, "epochs of UMAP; None lets it choose", ge=1)

    def _label_rows(self, z: np.ndarray) -> np.ndarray:
        seed = derive(self.seed_, "umap") % 2**31
        if min(z.shape) > 50:
            z = PCA(50, random_state=seed).fit_transform(z)
        if len(z) >= 10 * self.n_neighbors:  # fewer rows span no neighbourhoods worth a map
            z = self._umap(z, seed)
        z = np.nan_to_num(z)
        head = mixture_head(
            z,
            self.n_clusters,
            seed,
            start="kmeans",
            covariance="full",
            n_init=1,
        )
        return log_densities(torch.from_numpy(z.astype(np.float32)), head).argmax(1).numpy()

    def _umap(self, z: np.ndarray, seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "n_jobs overridden": a seed means one thread
            try:
                from umap import UMAP
            except ImportError:
                raise ImportError(
                    "umap_gmm needs umap-learn: pip install 'coterie[umap]'"
                ) from None
            umap = UMAP(
                n_neighbors=self.n_neighbors,
                n_components=min(self.n_components, len(z) - 2),
                min_dist=0.0,
                n_epochs=self.n_epochs,
                init=self._umap_start(z),
                random_state=seed,
            )
            return umap.fit_transform(z)

    def _umap_start(self, z: np.ndarray) -> str | np.ndarray:
        """UMAP's own start, but not for a graph in pieces.

        There the solver behind it restarts from vectors that no seed decides (SciPy from 1.17 on).
        """
        graph: Any = kneighbors_graph(z, self.n_neighbors - 1, include_self=False)
        graph = (graph + graph.T) * 0.5
        if connected_components(graph, directed=False, return_labels=False) == 1:
            return "spectral"
        size = min(self.n_components, len(z) - 2)
        return spectral_embedding(graph, size, numpy_rng(self.seed_, "umap start"))
