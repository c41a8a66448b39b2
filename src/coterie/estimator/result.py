"""What a fit has found: labels, embedding and soft assignments, and whether they are numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..train.batch import TrainingError
from ..train.rows import Rows


@dataclass
class Outcome:
    """What a model says about rows, from one encoding of them."""

    labels: np.ndarray  # (n,)
    embedding: Any  # (n, d) float32; None where it was stored block by block
    probabilities: np.ndarray  # (n, k) float32
    fits: np.ndarray  # (n,) float32, how well each row fits (`score_samples`)


class Collector:
    """Takes embedding and soft assignments of a model's rows.

    Parameters
    ----------
    store : takes the embedding in place of memory: `store(block, n)`, blocks in the order of the
        n rows
    """

    def __init__(self, store: Callable[[np.ndarray, int], None] | None = None):
        self.store = store

    @torch.no_grad()
    def collect(self, model: Any, rows: Rows, labels: np.ndarray) -> None:
        embedding: Any = None
        probabilities: Any = None
        fits = np.empty(rows.n, np.float32)
        for start, z in rows.codes(model.network_, 0, rows.n):
            seen = model.embed(z).numpy().astype(np.float32, copy=False)
            scores = model.assign(z, model.head_)
            soft = model.probabilities(scores).numpy()
            fits[start : start + len(soft)] = model.fit_of(scores, z).numpy()
            if start == 0:
                probabilities = np.empty((rows.n, soft.shape[1]), np.float32)
                if self.store is None:
                    embedding = np.empty((rows.n, *seen.shape[1:]), np.float32)
            probabilities[start : start + len(soft)] = soft
            if self.store is None:
                embedding[start : start + len(seen)] = seen
            else:
                self.store(seen, rows.n)
        self.outcome = Outcome(labels, embedding, probabilities, fits)


def check_numbers(model: Any) -> None:
    """Refuse a result with NaN or infinity in it: labels made from it would mean nothing."""
    made = {**model.network_.state_dict(), **model.head_.tensors(("param", "state"))}
    for name, tensor in made.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"{name} of the fitted {type(model).__name__} holds NaN or infinity; scale the "
                "input (scale='auto'), or lower the learning rate"
            )


def number_used_first(model: Any, rows: Rows) -> None:
    """Number clusters that have rows before those that have none: labels without holes."""
    for _ in range(model.n_clusters_):  # once is enough, unless rows change between equal centres
        used = np.unique(model.labels_)
        if used[-1] < len(used):
            return
        empty = np.setdiff1d(np.arange(model.n_clusters_), used)
        order = torch.from_numpy(np.concatenate([used, empty]))
        model._renumber(order.to(model.device_))
        model._after_fit()
        model.labels_ = model._labels(rows)
