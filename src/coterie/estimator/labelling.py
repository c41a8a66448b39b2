"""From scores to clusters: predict, how well rows fit, rows that belong nowhere, centres."""

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..math.assign import log_odds
from ..runtime.device import to_numpy
from ..train.head import Head
from ..train.settings import Settings
from .params import Fields, param

NOWHERE = -1  # the label of rows that were left out


class Labelling(Fields, BaseEstimator):
    """What a clusterer says of rows, once `network_` and `head_` are there.

    A row's label is its largest score. With `reject` above zero, rows whose fit (`score_samples`)
    is below `reject_below_` get the label -1; that threshold is calibrated on the training rows, of
    which the share `reject` lies below it.
    """

    reject: float = param(
        0.0,
        "share of the training rows, those that fit worst, that get the label -1; new rows that "
        "fit as badly get it too",
        ge=0,
        le=0.9,
    )

    scores_are_probabilities: ClassVar[bool] = True
    cluster_axes: ClassVar[dict[str, int]] = {"centers": 0}  # of the head's tensors

    if TYPE_CHECKING:  # set by a fit; annotations outside would be fields of the constructor
        network_: Any  # with `encode`
        head_: Head
        reject_below_: float
        settings_: Settings
        notes_: list[str]
        labels_: np.ndarray

    # -- hooks ------------------------------------------------------------------------------
    def assign(self, latents: torch.Tensor, head: Any) -> torch.Tensor:
        """(n, d) -> (n, k) scores; argmax is the label."""
        raise NotImplementedError

    def _renumber(self, order: torch.Tensor) -> None:  # (k,)
        """Make cluster order[j] cluster j, in all that the head holds of clusters."""
        for name, axis in self.cluster_axes.items():
            if name in self.head_:
                tensor = getattr(self.head_, name)
                tensor.data.copy_(tensor.data.index_select(axis, order))

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        return scores if self.scores_are_probabilities else torch.softmax(scores, 1)

    def fit_of(self, scores: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        """(n, k), (n, d) -> (n,) How well rows fit; higher is better.

        Scores that are no probabilities are logarithms of weight times density.
        """
        return log_odds(scores) if self.scores_are_probabilities else scores.logsumexp(1)

    # -- what a user asks -------------------------------------------------------------------
    def predict(self, X: Any) -> np.ndarray:  # (n,) int
        """Cluster of each row, in the order of the rows; -1 for rows that `reject` leaves out."""
        return self._labels(self._rows(X))

    def predict_proba(self, X: Any) -> np.ndarray:  # (n, k) float32, rows sum to 1
        """Soft assignment by the method's own rule."""
        return self._map(self._rows(X), lambda z: self.probabilities(self.assign(z, self.head_)))

    def predict_both(self, X: Any) -> tuple[np.ndarray, np.ndarray]:  # (n,) int, (n, k) float32
        """`predict` and `predict_proba` from one pass over the rows."""

        def both(z: torch.Tensor) -> torch.Tensor:
            scores = self.assign(z, self.head_)
            labels = self.labels_of(scores, z)[:, None].to(torch.float32)
            return torch.cat([labels, self.probabilities(scores)], 1)

        found = self._map(self._rows(X), both)
        return found[:, 0].astype(np.int64), found[:, 1:]

    def score_samples(self, X: Any) -> np.ndarray:  # (n,) float32
        """How well each row fits: higher is better, and rows that fit worst are rejected first.

        For k-means, mixtures, DCN and DEKM it is the log-density; for spectral clustering, UMAP +
        GMM and Leiden minus the mean distance to the nearest training rows; otherwise the log-odds
        of the row's cluster against all others. Scores of different methods cannot be compared.
        """
        return self._map(self._rows(X), self._fits)

    @property
    def n_clusters_(self) -> int:
        """Clusters of the fitted model: `n_clusters`, or what was found for "auto"."""
        check_is_fitted(self, "settings_")
        return self.settings_.n_clusters

    @property
    def cluster_centers_(self) -> np.ndarray:  # (k, d)
        """Centres in the space of `transform`, for methods that have centres."""
        check_is_fitted(self, "head_")
        if "centers" not in self.head_:
            raise AttributeError(f"{type(self).__name__} has no cluster centres")
        return to_numpy(self.head_.centers)

    # -- inside -----------------------------------------------------------------------------
    def labels_of(self, scores: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        """(n, k), (n, d) -> (n,) int64: the largest score, or -1."""
        labels = scores.argmax(1)
        if self.reject_below_ == -np.inf:
            return labels
        return torch.where(self.fit_of(scores, latents) < self.reject_below_, NOWHERE, labels)

    def _labels(self, rows: Any) -> np.ndarray:
        return self._map(rows, lambda z: self.labels_of(self.assign(z, self.head_), z))

    def _fits(self, latents: torch.Tensor) -> torch.Tensor:
        return self.fit_of(self.assign(latents, self.head_), latents)

    def _calibrate(self, rows: Any) -> None:
        """Find `reject_below_` on the training rows, and take their labels from those below it."""
        fits = self._map(rows, self._fits)
        self.reject_below_ = threshold(fits, self.reject)
        wanted, told = int(self.reject * len(fits)), int((fits < self.reject_below_).sum())
        if told < wanted:
            self.notes_.append(
                f"reject={self.reject:g} asks for {wanted} rows, but the others fit equally well; "
                f"{told} are rejected"
            )
        used, self.labels_ = np.unique(self.labels_), self._labels(rows)
        gone = np.setdiff1d(used, self.labels_)
        if len(gone):
            note = f"reject={self.reject:g} leaves {len(used) - len(gone)} of {len(used)} clusters"
            self.notes_.append(note)
            warnings.warn(
                f"{note}: no row of {gone.tolist()} fits well; lower reject", stacklevel=4
            )

    def _check_labels(self, rows: Any) -> list[tuple[str, str]]:
        """What is wrong with the result, and what to do about it."""
        used = len(np.unique(self.labels_))
        if used == self.n_clusters_:
            return []
        note = f"{type(self).__name__} uses {used} of {self.n_clusters_} clusters"
        return [(note, self._few_clusters(used))]

    def _few_clusters(self, used: int) -> str:
        return f"ask for {used} or fewer, or look for rows that are equal or far off"

    def _check_clusters(self, *clusters: int) -> None:
        check_is_fitted(self, "head_")
        for cluster in clusters:
            if not 0 <= cluster < self.n_clusters_:
                raise ValueError(
                    f"cluster={cluster} but there are {self.n_clusters_}; "
                    f"give a number from 0 to {self.n_clusters_ - 1}"
                )

    def _map(self, rows: Any, function: Any) -> np.ndarray:
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        raise NotImplementedError


def threshold(fits: np.ndarray, share: float) -> float:  # (n,) -> float
    """Where the worst `share` of the rows lies below; fewer where rows are equal at the border.

    Half-way between two rows: a last digit that differs between machines moves none of them.
    """
    count = int(share * len(fits))
    if count == 0:
        return -np.inf
    worst, kept = np.partition(fits.astype(np.float64), (count - 1, count))[[count - 1, count]]
    return float((worst + kept) / 2)
