"""Baselines on the features that Kith's graph is made of: how much is due to the features alone."""

from typing import Any, ClassVar

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from ...estimator.base import Clusterer
from ...estimator.fields import n_init_param
from ...estimator.params import param
from ...math import features as kinds
from ...math.assign import gaussian_scores
from ...runtime.rng import derive, numpy_rng
from ...train.head import Head
from ...train.rows import Rows
from ...train.settings import Settings
from ..kith.row_features import find_kind, fit_features
from .gmm import log_densities, mixture_head
from .kmeans import kmeans_head


class FeatureOnly(nn.Module):
    """The features are the embedding."""

    def __init__(self, features: kinds.Features):
        super().__init__()
        self.features, self.embedding_dim = features, features.size
        self.takes_sparse = features.kind in ("text", "counts")

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.features(x)


class OnFeatures(Clusterer):
    """Base: `_head` makes clusters of the features of all rows."""

    words: ClassVar[int] = 5000  # as Kith
    attributes: ClassVar[dict[str, str]] = {"kind_": "kind of data that decided the features"}

    kind: str = param("auto", "kind of data, decides the features", choices=("auto", *kinds.KINDS))

    def _head(self, z: np.ndarray) -> Head:  # (n, m)
        raise NotImplementedError

    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        if not hasattr(self, "kind_"):  # a loaded model
            self.kind_ = kinds.KINDS[int(self.head_.kind)]
        return FeatureOnly(kinds.Features(self.kind_, settings.shape))

    def _fit(self, rows: Rows) -> None:
        self.kind_ = find_kind(rows, self.kind)
        network = self.build_network(self.settings_, torch.Generator())
        self.network_: Any = network.to(rows.device)
        # one thread: sums over threads may come in any order, and labels would not repeat
        with threadpool_limits(1):
            fit_features(self.network_.features, rows, self.seed_)
            found = self._head(self._map(rows, lambda latents: latents))
        state = {name: getattr(found, name) for name in found.kinds["state"]}
        self.head_ = Head(state=state | {"kind": torch.tensor(kinds.KINDS.index(self.kind_))})


class FeatureKMeans(OnFeatures):
    """k-means on Kith's features: HOG and pixels, standardised columns, directions of tf-idf."""

    key = "feature_kmeans"
    title = "Features + k-means"
    summary = "k-means on the features that Kith uses"
    reference = "baseline of Kith"
    tiny = {"n_init": 2}
    scores_are_probabilities = False

    n_init: int = n_init_param()

    def _head(self, z: np.ndarray) -> Head:
        rng = numpy_rng(self.seed_, "init")
        return kmeans_head(torch.from_numpy(z), self.n_clusters, rng, n_init=self.n_init)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return gaussian_scores(latents, head)


class FeatureGMM(OnFeatures):
    """Gaussian mixture on Kith's features; full covariances, diagonal ones for few rows."""

    key = "feature_gmm"
    title = "Features + GMM"
    summary = "Gaussian mixture on the features that Kith uses"
    reference = "baseline of Kith"
    scores_are_probabilities = False
    cluster_axes = {"centers": 0, "chol": 0, "offset": 0}

    n_init: int = n_init_param(1)

    def _head(self, z: np.ndarray) -> Head:
        few = len(z) < 10 * self.n_clusters * z.shape[1]  # rows that a covariance is learned from
        return mixture_head(
            z,
            self.n_clusters,
            derive(self.seed_, "gmm"),
            start="kmeans",
            covariance="diag" if few else "full",
            n_init=self.n_init,
        )

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return log_densities(latents, head)
