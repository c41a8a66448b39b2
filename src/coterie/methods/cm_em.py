"""CM-EM: the mixture behind CM, fitted by EM instead of gradients."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ..estimator.base import Clusterer
from ..estimator.fields import n_init_param
from ..estimator.params import param
from ..math.assign import squared_distances
from ..math.centers import kmeans
from ..math.kmeans import CHUNK_VALUES
from ..nets import Identity
from ..runtime.device import to_numpy, wide_dtype
from ..runtime.rng import numpy_rng
from ..train.head import Head
from ..train.rows import Rows
from .baselines.kmeans import FlatRows


def log_joint(z: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
    """log phi_k - |z - mu_k|^2 / (2 variance)."""
    return head.log_weights - squared_distances(z, head.centers) / (2 * head.variance)


class CMEM(Clusterer):
    """EM for equal round Gaussians of fixed variance 1/2 with a Dirichlet prior on their weights.

    The paper gives figures for it (Table 6) and no definition; this is the model that CM relaxes.
    Where squared distances are small against the variance (pendigits in 0..1) all centres merge
    at the mean, as published.
    """

    key = "cm_em"
    title = "CM-EM"
    summary = "CM's Gaussian mixture with fixed variance, fitted by EM"
    reference = "Boubekki, Kampffmeyer, Brefeld, Jenssen: Joint optimization of an autoencoder ..."
    variants = {"r": {"init": "random", "n_init": 1}, "p": {"init": "k-means++", "n_init": 1}}
    tiny = {"n_init": 2, "max_iter": 5}
    scores_are_probabilities = False
    cluster_axes = {"centers": 0, "log_weights": 0}

    init: str = param("k-means++", "starting centres", choices=("k-means++", "random"))
    alpha: float = param(10.0, "concentration of the Dirichlet prior on the weights", ge=1)
    variance: float = param(0.5, "variance of every cluster along every axis", gt=0)
    n_init: int = n_init_param(5)
    max_iter: int = param(150, "most iterations of a restart", ge=1)
    tol: float = param(1e-6, "stop when the log posterior per row grows by less", ge=0)

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        data, best = FlatRows(rows), -np.inf
        for r in range(self.n_init):
            head, score, n_iter = self._run(data, numpy_rng(self.seed_, "start", r))
            if score > best:
                best, head.n_iter = score, torch.tensor(n_iter)
                self.head_ = head

    def _run(self, data: FlatRows, rng: np.random.Generator) -> tuple[Head, float, int]:
        k, before, n_iter = self.n_clusters, -np.inf, 0
        start = kmeans(data, k, rng=rng, n_init=1, max_iter=1, init=self.init)
        head = Head(
            state={
                "centers": start.centers,
                "log_weights": torch.full((k,), -float(np.log(k))),
                "variance": torch.tensor(self.variance),
                "n_iter": torch.tensor(0),
            }
        ).to(start.centers.device)
        while n_iter < self.max_iter:
            n_iter += 1
            mass, sums, evidence = self._expect(data, head)
            prior = (self.alpha - 1) * head.log_weights.to(mass.dtype).sum()
            score = float((evidence + prior) / data.n)
            # an empty cluster stays where it is: it has no rows to take a mean of
            moved = sums / mass.clamp_min(1e-30)[:, None]
            head.centers.copy_(
                torch.where(mass[:, None] > 1e-12, moved, head.centers.to(moved.dtype))
            )
            weights = (mass + self.alpha - 1) / (data.n + k * (self.alpha - 1))
            head.log_weights.copy_(weights.clamp_min(1e-300).log())
            if score - before <= self.tol:
                break
            before = score
        return head, score, n_iter

    def _expect(self, data: FlatRows, head: Head) -> tuple[torch.Tensor, ...]:
        """Soft counts (k,), soft sums (k, d) and the log likelihood, in blocks that fit a cache."""
        block, wider = max(256, CHUNK_VALUES // data.shape[1]), wide_dtype(head.centers.device)
        mass: Any = 0.0
        sums: Any = 0.0
        evidence: Any = 0.0
        for a in range(0, data.n, data.rows.chunk):
            for z in data.slice(a, a + data.rows.chunk).split(block):
                scores = log_joint(z, head)
                total = scores.logsumexp(1)  # exponents reach -1000 and more
                gamma = (scores - total[:, None]).exp()
                mass = mass + gamma.sum(0, dtype=wider)
                sums = sums + (gamma.T @ z).to(wider)
                evidence = evidence + total.sum(dtype=wider)
        return mass, sums, evidence

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return log_joint(latents, head)

    def centers_in_input_space(self) -> Any:  # (k, *shape of a row)
        check_is_fitted(self, "head_")
        return self._to_input(to_numpy(self.network_.decode(self.head_.centers)))
