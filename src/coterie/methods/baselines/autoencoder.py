"""An autoencoder first, then plain clustering of its embedding: what joint training must beat."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ...estimator.deep import DeepClusterer
from ...estimator.params import param
from ...train.head import Head
from ...train.plan import Call, Phase
from .kmeans import gaussian_scores, kmeans_head
from .subkmeans import subkmeans_head, subspace_scores


class AEKMeans(DeepClusterer):
    """k-means on the embedding of an autoencoder.

    With the DKM paper's settings USPS ends at ACC .718, NMI .697 (three seeds; published .729 +-
    .008 and .717): a point below, as do the methods that start there. Theirs differs in what its
    epochs see (each batch is drawn anew) and in its scores (of 90 % of the rows).
    """

    key = "ae_kmeans"
    title = "AE + k-means"
    summary = "k-means on an autoencoder's embedding"
    reference = "baseline of the DEC, DKM, DEKM and C-Net papers"
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "n_init": 2}
    keeps_decoder = True
    scores_are_probabilities = False

    # nothing is trained after the autoencoder
    epochs: ClassVar[Any] = 0
    lr: ClassVar[Any] = 1e-3
    schedule: ClassVar[Any] = "constant"
    optimizer: ClassVar[Any] = "adam"
    momentum: ClassVar[Any] = 0.9
    clip: ClassVar[Any] = None
    update_every: ClassVar[Any] = 1.0
    tol: ClassVar[Any] = 0.0
    empty: ClassVar[Any] = "keep"

    net: Any = param("mlp", "mlp, auto (conv for images), conv, or a module", group="network")

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return kmeans_head(latents, self.n_clusters, rng, n_init=self.n_init)

    def training(self, network: nn.Module) -> list[Phase | Call]:
        return []

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return gaussian_scores(latents, head)


class AESubKMeans(AEKMeans):
    """SubKmeans on the embedding of an autoencoder."""

    key = "ae_subkmeans"
    title = "AE + SubKmeans"
    summary = "SubKmeans on an autoencoder's embedding"
    reference = "baseline of the ACe/DeC paper"

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return subkmeans_head(latents, self.n_clusters, rng, self.n_init)

    def _after_fit(self) -> None:
        self.rotation_ = self.head_.rotation.numpy()
        self.cluster_dims_ = int(self.head_.dims)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return subspace_scores(latents, head)
