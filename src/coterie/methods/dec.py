"""DEC, IDEC and DCEC: a soft assignment that sharpens itself (Xie 2016, Guo 2017)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..estimator.fields import centers_param, net_param
from ..estimator.params import param
from ..math.assign import collapsed, in_blocks, kl, student_t, target_distribution
from ..math.centers import first_centers
from ..runtime.processes import all_gather, current, sum_parts
from ..train.batch import Terms, TrainingError
from ..train.head import Head
from ..train.objective import Objective
from ..train.settings import Settings
from .autoencoder import JointClusterer


@dataclass
class DECObjective(Objective):
    """weight * KL(P || Q): Q the Student-t assignment, P its sharpened version over all rows.

    q_ij ~ (1 + |z_i - c_j|^2 / dof)^(-(dof + 1) / 2) and p_ij ~ q_ij^2 / sum_i q_ij, rows of both
    summing to 1; P is fixed between updates (eqs. 1 to 3).

    Parameters
    ----------
    dof : degrees of freedom of the kernel (alpha)
    centers : first centres: "kmeans", "glorot" or "uniform"
    n_init : starts of k-means
    """

    n_clusters: int
    weight: float = 1.0
    dof: float = 1.0
    centers: str = "kmeans"
    n_init: int = 10

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        centers = first_centers(latents, self.n_clusters, self.centers, rng, self.n_init)
        empty = latents.new_zeros(()).expand(len(latents), self.n_clusters)  # the head fills it in
        return Head(params={"centers": centers}, rows={"target": empty})

    def update(self, latents, head, rng=None, done=0.0) -> torch.Tensor:
        """The target P over all rows; it stays fixed until the next update."""
        k = self.n_clusters
        q = in_blocks(lambda z: self.assign(z, head), latents, k, out=head.target)
        extremes = torch.stack([q.amin(0), q.amax(0)])
        if collapsed(all_gather(current(), extremes).flatten(0, 1)):
            raise TrainingError(
                "every row has the same soft assignment, which DEC cannot leave: the embedding "
                "has collapsed; pre-train longer or scale the input"
            )
        labels, sizes = q.argmax(1), sum_parts(q.sum(0))
        in_blocks(lambda part: target_distribution(part, sizes), q, k, out=head.target)
        return labels

    def loss(self, z, head, rows, clean=None, mean=None) -> Terms:
        """A changed row is pulled to the target of the row itself."""
        return {"kl": self.weight * kl(head.target[rows], self.assign(z, head))}

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        return student_t(latents, head.centers, self.dof)


class DEC(JointClusterer):
    """Train a pre-trained embedding towards a sharpened copy of its own soft assignment.

    Loss: KL(P || Q) (`DECObjective`). Where text and authors' code differ, and what we do:

    - Pre-training: 300,000 iterations of a stacked denoising autoencoder (`pretrain="layerwise"`
      follows it in outline); `DEC.paper` has the end-to-end training of the later Keras release.
    - Batches: both releases take the rows in their order; we shuffle.
    - The stop rule compares labels at updates only, and not at the first one, as in the code.
    - Default profile: Adam, an update per epoch, a narrower network below 20,000 rows.
    - `dec:moved` shows the network images that are rotated and shifted a little, while P stays that
      of the image itself.
    """

    key = "dec"
    title = "DEC"
    summary = "self-sharpening soft assignment on a pre-trained embedding"
    reference = "Xie, Girshick, Farhadi: Unsupervised deep embedding for clustering analysis, 2016"
    variants = {
        "p": {"init": "pretrained"},
        "r": {"init": "random"},
        "moved": {"augment": "affine"},
    }
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "epochs": 2, "n_init": 2}

    dof: float = param(1.0, "degrees of freedom of the Student-t kernel (alpha)", gt=0)
    centers: str = centers_param()

    def make_objective(self, settings: Settings) -> DECObjective:
        s = settings
        return DECObjective(s.n_clusters, dof=s.dof, centers=s.centers, n_init=s.n_init)


class IDEC(DEC):
    """Reconstruction + weight * KL(P || Q).

    Where text and authors' code differ, and what we do:

    - gamma: the code adds gamma * KL (sum over clusters, mean over rows) to an error that is a mean
      over the D input features. Ours is the sum, so ``weight = gamma * D``: the published 0.1 is
      78.4 on MNIST and 25.6 on USPS. Read in our convention, 0.1 would hardly cluster at all.
    - Batches: the code takes the rows in their order; we shuffle. The target is computed over all
      rows and stays fixed for `update_every` steps, as in the code (many re-implementations
      compute it from the batch alone).
    - Start: the code imports weights from DEC's stacked pre-training; `IDEC.paper` follows its
      later release (end to end, Adam).
    """

    key = "idec"
    title = "IDEC"
    summary = "DEC that keeps its decoder, so that rows can still be rebuilt"
    reference = "Guo, Gao, Liu, Yin: Improved deep embedded clustering with local structure, 2017"
    keeps_decoder = True

    weight: float = param(25.0, "weight of the KL term (gamma times input features)", gt=0)

    def make_objective(self, settings: Settings) -> DECObjective:
        made = super().make_objective(settings)
        made.weight = settings.weight
        return made


class DCEC(IDEC):
    """IDEC on the convolutional autoencoder; rows that are not images get the mlp."""

    key = "dcec"
    title = "DCEC"
    summary = "IDEC on a convolutional autoencoder, for images"
    reference = "Guo, Liu, Zhu, Yin: Deep clustering with convolutional autoencoders, 2017"

    net: Any = net_param("auto")
