"""SubKmeans: a rotation, some axes with clusters, the rest with one mean."""

from typing import ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...estimator.base import Clusterer
from ...estimator.fields import n_init_param
from ...math.assign import squared_distances
from ...math.subspace import subkmeans
from ...nets import Identity
from ...runtime.device import to_numpy
from ...runtime.rng import numpy_rng
from ...train.head import Head
from ...train.rows import Rows
from .kmeans import FlatRows

SUBKMEANS_VALUES = 2**28  # rows times columns that are held in memory, at most
SUBSPACE = {  # attributes of a fit
    "rotation_": "(d, d), axes in columns: those of the clusters first",
    "cluster_dims_": "number of axes on which clusters differ",
}


def subkmeans_head(latents: torch.Tensor, k: int, rng: np.random.Generator, n_init: int) -> Head:
    found = subkmeans(latents, k, rng, n_init=n_init)
    axes = found.rotation[:, : found.m].to(latents.dtype)
    spread = ((latents - found.centers[found.labels]) @ axes).square().mean().clamp_min(1e-12)
    return Head(
        state={
            "centers": found.centers.to(latents.dtype),
            "rotation": found.rotation.to(latents.dtype),
            "dims": torch.tensor(found.m),
            "variance": spread,
        }
    )


def subspace_scores(latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
    axes = head.rotation[:, : int(head.dims)]
    return -squared_distances(latents @ axes, head.centers @ axes) / (2 * head.variance)


class SubKMeans(Clusterer):
    """Clusters differ on the first `cluster_dims_` axes of `rotation_`; `transform` gives these."""

    key = "subkmeans"
    title = "SubKmeans"
    summary = "k-means in the best rotated subspace"
    reference = "Mautz, Ye, Plant, Boehm: Towards an optimal subspace for k-means, 2017"
    tiny = {"n_init": 2}
    scores_are_probabilities = False
    attributes: ClassVar[dict[str, str]] = SUBSPACE

    n_init: int = n_init_param()

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        flat, rng = FlatRows(rows), numpy_rng(self.seed_, "init")
        z = flat.sample(max(self.n_clusters, SUBKMEANS_VALUES // flat.shape[1]), rng)
        self.head_ = subkmeans_head(z, self.n_clusters, rng, self.n_init)
        self._after_fit()

    def _after_fit(self) -> None:
        self.rotation_ = to_numpy(self.head_.rotation)
        self.cluster_dims_ = int(self.head_.dims)

    def embed(self, latents: torch.Tensor) -> torch.Tensor:
        return latents @ self.head_.rotation[:, : int(self.head_.dims)]

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return subspace_scores(latents, head)

    def centers_in_input_space(self) -> np.ndarray:
        check_is_fitted(self, "head_")
        return self._to_input(to_numpy(self.network_.decode(self.head_.centers)))
