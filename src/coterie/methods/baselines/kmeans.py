"""k-means on the rows themselves, or on their principal components."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...estimator.base import Clusterer
from ...estimator.fields import n_init_param
from ...estimator.params import param
from ...math.assign import gaussian_scores
from ...math.centers import kmeans
from ...nets import Identity
from ...runtime.device import to_numpy
from ...runtime.processes import row_count
from ...runtime.rng import numpy_rng
from ...train.head import Head
from ...train.rows import Rows

PCA_ROWS = 100_000  # rows that the principal components are computed from, at most


def kmeans_head(latents: Any, k: int, rng: np.random.Generator, **options) -> Head:
    found = kmeans(latents, k, rng=rng, **options)
    n, d = latents.shape
    n = row_count(latents) if options.get("part") else n
    variance = torch.tensor(max(found.inertia / (n * d), 1e-12), dtype=torch.float32)
    iterations = torch.tensor(found.n_iter)
    return Head(state={"centers": found.centers, "variance": variance, "n_iter": iterations})


class KMeans(Clusterer):
    """Lloyd's k-means; rows may be streamed from disk."""

    key = "kmeans"
    title = "k-means"
    summary = "Lloyd's algorithm on the rows as they are"
    reference = "Lloyd 1982; Arthur, Vassilvitskii 2007 (k-means++)"
    variants = {"p": {"init": "k-means++", "n_init": 1}, "r": {"init": "random", "n_init": 1}}
    tiny = {"n_init": 2}
    scores_are_probabilities = False
    attributes: ClassVar[dict[str, str]] = {
        "inertia_": "sum of squared distances of the (scaled) rows to their centres"
    }

    init: str = param("k-means++", "starting centres", choices=("k-means++", "random"))
    n_init: int = n_init_param()
    max_iter: int = param(300, "most iterations of a restart", ge=1)

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        latents = FlatRows(rows) if rows.csr is None else rows.csr
        self.head_ = kmeans_head(
            latents,
            self.n_clusters,
            numpy_rng(self.seed_, "init"),
            init=self.init,
            n_init=self.n_init,
            max_iter=self.max_iter,
        )

    @property
    def inertia_(self) -> float:
        """Sum of squared distances of the (scaled) rows to their centres."""
        check_is_fitted(self, "head_")
        return float(self.head_.variance) * self.settings_.n * self.settings_.features

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return gaussian_scores(latents, head)

    def centers_in_input_space(self) -> np.ndarray:
        check_is_fitted(self, "head_")
        return self._to_input(to_numpy(self.network_.decode(self.head_.centers)))


class PCAKMeans(Clusterer):
    """k-means on as many principal components as hold a share of the variance."""

    key = "pca_kmeans"
    title = "PCA + k-means"
    summary = "k-means on the principal components that hold 90 % of the variance"
    reference = "baseline of the DEKM paper"
    tiny = {"n_init": 2}
    scores_are_probabilities = False

    explained_variance: float = param(0.9, "share of the variance to keep", gt=0, le=1)
    n_init: int = n_init_param()

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        rng = numpy_rng(self.seed_, "init")
        some = FlatRows(rows).sample(PCA_ROWS, rng)
        mean, components = principal_components(some, self.explained_variance)
        self.head_ = Head(state={"mean": mean, "components": components})
        latents = torch.from_numpy(self._map(rows, self.embed)).to(rows.device)
        found = kmeans_head(latents, self.n_clusters, rng, n_init=self.n_init)
        self.head_ = Head(
            state={
                "mean": mean,
                "components": components,
                "centers": found.centers,
                "variance": found.variance,
            }
        )

    def embed(self, latents: torch.Tensor) -> torch.Tensor:
        return (latents - self.head_.mean) @ self.head_.components

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return gaussian_scores(self.embed(latents), head)

    def centers_in_input_space(self) -> np.ndarray:
        check_is_fitted(self, "head_")
        flat = self.head_.centers @ self.head_.components.T + self.head_.mean
        return self._to_input(to_numpy(self.network_.decode(flat)))


class FlatRows:
    """Rows as flat vectors for k-means, still read in slices."""

    def __init__(self, rows: Rows):
        self.rows, self.n = rows, rows.n
        self.shape = (rows.n, int(np.prod(rows.shape)))

    def slice(self, start: int, stop: int) -> torch.Tensor:
        return self.rows.slice(start, stop).flatten(1)

    def sample(self, most: int, rng: np.random.Generator) -> torch.Tensor:
        """All rows, or `most` of them at random."""
        if self.n <= most:
            return self.slice(0, self.n)
        index = torch.from_numpy(np.sort(rng.choice(self.n, most, replace=False)))
        return self.rows.take(index).flatten(1)


def principal_components(z: torch.Tensor, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (d,) and the leading axes (d, m) that hold `share` of the variance."""
    mean, device = z.mean(0), z.device
    centred = (z - mean).cpu().double()
    if len(z) < z.shape[1]:  # a few large images: never more axes than rows
        _, singular, vectors = torch.linalg.svd(centred, full_matrices=False)
        values, vectors = singular.square(), vectors.T
    else:
        covariance = torch.cov(centred.T).reshape(z.shape[1], z.shape[1])
        values, vectors = torch.linalg.eigh(covariance)
        values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    held = values.cumsum(0) / values.sum().clamp_min(1e-300)
    m = min(int((held < share - 1e-9).sum()) + 1, len(values))
    return mean, vectors[:, :m].float().contiguous().to(device)
