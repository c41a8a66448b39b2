"""An autoencoder first, then plain clustering of its embedding: what joint training must beat."""

from typing import ClassVar

import numpy as np
import torch

from ...math.assign import gaussian_scores
from ...runtime.device import to_numpy
from ...runtime.processes import current, row_count
from ...train.head import Head
from ..autoencoder import AutoencoderClusterer
from .kmeans import kmeans_head
from .subkmeans import SUBSPACE, subkmeans_head, subspace_scores


class AEKMeans(AutoencoderClusterer):
    """k-means on the embedding of an autoencoder."""

    key = "ae_kmeans"
    title = "AE + k-means"
    summary = "k-means on an autoencoder's embedding"
    reference = "baseline of the DEC, DKM, DEKM and C-Net papers"
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "n_init": 2}
    keeps_decoder = True
    scores_are_probabilities = False

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return kmeans_head(latents, self.n_clusters, rng, n_init=self.n_init, part=True)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return gaussian_scores(latents, head)


class AESubKMeans(AEKMeans):
    """SubKmeans on the embedding of an autoencoder."""

    key = "ae_subkmeans"
    title = "AE + SubKmeans"
    summary = "SubKmeans on an autoencoder's embedding"
    reference = "baseline of the ACe/DeC paper"
    attributes: ClassVar[dict[str, str]] = SUBSPACE

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        whole = current().concat(latents, row_count(latents))
        return subkmeans_head(whole, self.n_clusters, rng, self.n_init)

    def _after_fit(self) -> None:
        self.rotation_ = to_numpy(self.head_.rotation)
        self.cluster_dims_ = int(self.head_.dims)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return subspace_scores(latents, head)
