"""DCN: a k-means-friendly embedding (Yang, Fu, Sidiropoulos, Hong 2017)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..estimator.fields import centers_param, clustering_weight, code_variance_param
from ..estimator.params import param
from ..math.assign import gaussian_scores, squared_distances, squared_error
from ..math.centers import first_centers, running_mean
from ..runtime.processes import row_mean
from ..train.batch import Step, Terms
from ..train.head import Head
from ..train.objective import Objective
from ..train.plan import Call, Phase
from ..train.settings import Settings
from .autoencoder import JointClusterer


@dataclass
class DCNObjective(Objective):
    """weight * |z - centre of its cluster|^2; centres are means of the rows they were given.

    Call `move_centers` with each batch before its `loss`.

    Parameters
    ----------
    weight : lambda / 2
    start_count : rows that a centre counts as seen at the start
    centers : first centres: "kmeans", "glorot" or "uniform"
    n_init : starts of k-means
    """

    n_clusters: int
    weight: float = 1.0
    start_count: float = 100.0
    centers: str = "kmeans"
    n_init: int = 10

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        centers = first_centers(latents, self.n_clusters, self.centers, rng, self.n_init)
        labels = squared_distances(latents, centers).argmin(1)
        counts = latents.new_full((self.n_clusters,), self.start_count)
        state = {"centers": centers, "counts": counts, "variance": latents.new_ones(())}
        return Head(state=state, rows={"labels": labels})

    def move_centers(self, z: torch.Tensor, head: Head, rows: torch.Tensor, **sums: Any) -> None:
        """New labels for a batch; each centre becomes the mean of all rows it ever had."""
        z = z.detach()
        nearest = squared_distances(z, head.centers).argmin(1)
        centers, counts = running_mean(head.centers, head.counts, z, nearest, **sums)
        head.labels[rows] = nearest
        head.centers.copy_(centers)
        head.counts.copy_(counts)

    def loss(self, z, head, rows, clean=None, mean=None) -> Terms:
        """A changed row is pulled to where the row itself belongs, each for half."""
        own = head.centers[head.labels[rows]]
        distance = self._distance(z, own)
        if clean is not None:
            distance = (distance + self._distance(clean, own)) / 2
        return {"distance": distance}

    def _distance(self, z: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        return self.weight * squared_error(z, own)

    def update(self, latents, head, rng=None, done=0.0) -> torch.Tensor:
        nearest = squared_distances(latents, head.centers).min(1)
        head.labels.copy_(nearest.indices)
        head.variance.copy_(row_mean(nearest.values).clamp_min(1e-12) / latents.shape[1])
        return nearest.indices

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        return gaussian_scores(latents, head)

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, 1)

    def fit_of(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.logsumexp(1)  # a mixture of round Gaussians


class DCN(JointClusterer):
    """Reconstruction + weight * |z - centre of its cluster|^2, network and centres in turn.

    Each step assigns the batch, moves each centre to the mean of all rows that were ever assigned
    to it, and moves the network with these labels and centres.

    Where text and authors' code differ, and what we do:

    - Weight: the paper puts lambda/2 on the clustering term, the code puts `lbd` on the
      reconstruction: ``weight = lambda / 2 = 1 / lbd``. Raw MNIST's lbd = 0.05 is our weight 20.
    - Counts start at 100 in the code (not in the paper) and never shrink, so centres come to rest.
    - Order: the code moves the network with labels that are an epoch old, then encodes the batch
      once more to assign it. We assign first, so labels are up to date and one encoding serves
      both.
    - Network: the code has tied weights and a ReLU on the embedding; ours is the autoencoder that
      all methods share.

    `dcn:moved` pulls a row and its changed copy both to the centre of the row; labels and centres
    come from the rows themselves. An embedding of large variance is shrunk first (`code_variance`):
    centres are means over all steps and fall behind rows that move fast.
    """

    key = "dcn"
    title = "DCN"
    summary = "k-means and autoencoder trained in turn, hard assignments"
    reference = "Yang, Fu, Sidiropoulos, Hong: Towards k-means-friendly spaces, 2017"
    variants = {
        "p": {"init": "pretrained"},
        "r": {"init": "random"},
        "moved": {"augment": "affine"},
    }
    cluster_axes = {"centers": 0, "counts": 0}
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "epochs": 2, "n_init": 2}
    keeps_decoder = True

    weight: float | None = param(
        None,
        "weight of the distance to the centre (lambda / 2); None: 1, less below 256 features",
        ge=0,
        rule=clustering_weight,
    )
    code_variance: float = code_variance_param()
    start_count: float = param(100.0, "rows that a centre counts as seen at the start", ge=0)
    centers: str = centers_param()

    def make_objective(self, settings: Settings) -> DCNObjective:
        s = settings
        return DCNObjective(s.n_clusters, s.weight, s.start_count, s.centers, s.n_init)

    def training(self) -> list[Phase | Call]:
        hooks: dict[str, Any] = {"train_step": self.train_step, "update": self.update}
        train = self.phase("train", self.settings_.epochs, **hooks)
        return [train, Call(self.last_update, "finish")]

    def train_step(self, step: Step, head: Head) -> None:
        batch = step.batch
        self.objective_.move_centers(batch.z_clean, head, batch.rows, add_up=batch.sum)
        step.optimize("main", self.loss(batch, head), batch.weight)
