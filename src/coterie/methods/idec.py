"""IDEC: DEC that keeps its decoder (Guo, Gao, Liu, Yin 2017); DCEC is the same on images."""

from typing import Any

import torch

from ..estimator.params import param
from ..train.batch import Batch, Terms
from ..train.head import Head
from ..train.pretrain import reconstruction
from .dec import DEC


class IDEC(DEC):
    """Reconstruction + weight * KL(P || Q).

    Where text and authors' code differ, and what we do:

    - gamma: the code adds gamma * KL (sum over clusters, mean over rows) to an error that is a mean
      over the D input features. Ours is the sum, so ``weight = gamma * D``: the published 0.1 is
      78.4 on MNIST and 25.6 on USPS. Read in our convention, 0.1 would hardly cluster at all.
    - Batches: the code walks over the rows in their order; we shuffle. The target stays fixed for
      `update_every` steps over all rows, as in the code (many re-implementations take it from
      the batch at hand).
    - Start: the code imports weights from DEC's stacked pre-training; the paper preset follows its
      later release (end to end, Adam).
    """

    key = "idec"
    title = "IDEC"
    summary = "DEC with a decoder that keeps the embedding honest"
    reference = "Guo, Gao, Liu, Yin: Improved deep embedded clustering with local structure, 2017"
    keeps_decoder = True

    weight: float = param(25.0, "weight of the KL term (gamma times input features)", gt=0)

    def loss(self, batch: Batch, head: Head) -> Terms:
        return {"kl": self.clustering(batch.z, head, batch.rows), **reconstruction(batch)}

    def clustering(self, z: torch.Tensor, head: Head, rows: torch.Tensor) -> torch.Tensor:
        return self.weight * super().clustering(z, head, rows)


class DCEC(IDEC):
    """IDEC on the convolutional autoencoder; rows other than images get the mlp."""

    key = "dcec"
    title = "DCEC"
    summary = "IDEC on a convolutional autoencoder, for images"
    reference = "Guo, Liu, Zhu, Yin: Deep clustering with convolutional autoencoders, 2017"

    net: Any = param("auto", "auto (conv for images), conv, mlp, or a module", group="network")
