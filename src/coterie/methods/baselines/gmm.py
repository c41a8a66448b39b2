"""Gaussian mixture by EM, kept as plain tensors."""

import math
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from ...estimator.base import Clusterer
from ...estimator.fields import n_init_param
from ...estimator.params import param
from ...math.mixture import diagonal_mixture
from ...nets import Identity
from ...runtime.device import to_numpy
from ...runtime.rng import derive, numpy_rng
from ...train.head import Head
from ...train.rows import Rows
from .kmeans import FlatRows

FULL_DIM = 64  # up to here a full covariance per cluster is worth its parameters
RIDGES = (1e-6, 1e-4, 1e-2, 1.0)  # added to the variances, times their mean
GMM_ROWS = 200_000  # rows that EM sees, at most


def mixture_head(
    z: np.ndarray, k: int, seed: int, *, start: str, covariance: str, n_init: int
) -> Head:
    """EM on z (n, d); diagonal covariances by `math.mixture`, full ones by scikit-learn."""
    spread = float(z.var(0, dtype=np.float64).mean()) or 1.0
    if covariance == "diag":
        rng = np.random.default_rng(seed)
        found = diagonal_mixture(
            torch.from_numpy(z), k, rng=rng, start=start, ridge=RIDGES[0] * spread, n_init=n_init
        )
        chol = found.variances.rsqrt()
        tensors = {"centers": found.means, "chol": chol, "offset": found.offset}
        return Head(state={name: tensor.float() for name, tensor in tensors.items()})
    model = _full_mixture(z.astype(np.float64), k, seed, start, spread, n_init)
    chol = model.precisions_cholesky_
    log_det = np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(1)
    offset = np.log(model.weights_) + log_det - 0.5 * z.shape[1] * math.log(2 * math.pi)
    tensors = {"centers": model.means_, "chol": chol, "offset": offset}
    return Head(state={k: torch.from_numpy(v.astype(np.float32)) for k, v in tensors.items()})


def _full_mixture(
    z: np.ndarray, k: int, seed: int, start: Any, spread: float, n_init: int
) -> GaussianMixture:
    """A covariance that is not positive definite gets a larger ridge."""
    for ridge in RIDGES:
        model = GaussianMixture(
            k,
            init_params=start,
            n_init=n_init,
            reg_covar=ridge * spread,
            random_state=seed % 2**32,
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                return model.fit(z)
        except ValueError:
            if ridge == RIDGES[-1]:
                raise
    raise AssertionError("the last ridge either fits or raises")


def log_densities(z: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
    """Log of weight times density, one cluster at a time."""
    columns = []
    for center, chol, offset in zip(head.centers, head.chol, head.offset):
        u = (z - center) * chol if chol.ndim == 1 else (z - center) @ chol
        columns.append(offset - 0.5 * u.square().sum(1))
    return torch.stack(columns, 1)


class GMM(Clusterer):
    """Gaussian mixture; the covariance is full for few columns and diagonal for many."""

    key = "gmm"
    title = "GMM"
    summary = "Gaussian mixture by EM"
    reference = "Dempster, Laird, Rubin 1977"
    variants = {"p": {"init": "kmeans", "n_init": 1}, "r": {"init": "random", "n_init": 1}}
    scores_are_probabilities = False
    cluster_axes = {"centers": 0, "chol": 0, "offset": 0}

    init: str = param("kmeans", "start of EM", choices=("kmeans", "random"))
    n_init: int = n_init_param(1)
    covariance: str = param(
        "auto", "full, diag, or auto (full up to 64 columns)", choices=("auto", "full", "diag")
    )

    def _fit(self, rows: Rows) -> None:
        self.network_ = Identity(rows.shape)
        z = to_numpy(FlatRows(rows).sample(GMM_ROWS, numpy_rng(self.seed_, "init")))
        kind = self.covariance
        if kind == "auto":
            kind = "full" if z.shape[1] <= FULL_DIM else "diag"
        self.head_ = mixture_head(
            z,
            self.n_clusters,
            derive(self.seed_, "gmm"),
            start=self.init,
            covariance=kind,
            n_init=self.n_init,
        )

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:
        return log_densities(latents, head)

    def centers_in_input_space(self) -> np.ndarray:
        check_is_fitted(self, "head_")
        return self._to_input(to_numpy(self.network_.decode(self.head_.centers)))
