"""Objective: a clustering loss on any embedding, usable without an estimator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..math.assign import log_odds
from .batch import Terms
from .head import Head

Streams = Callable[..., np.random.Generator]


def no_seed(*keys: str | int) -> np.random.Generator:
    """Random numbers for those who do not ask for the same ones twice."""
    return np.random.default_rng()


class Objective:
    """How an embedding is clustered while a network learns it.

    ::

        head = objective.init_head(latents, rng)   # once: latents (n, d) of this process's rows
        labels = objective.update(latents, head)   # now and then, without gradient
        terms = objective.loss(z, head, rows)      # each step: z (b, d), rows (b,) in the head
        scores = objective.assign(z, head)         # (b, k), the largest is the label

    The head holds all tensors; its parameters are trained together with the network.
    """

    n_clusters: int

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        raise NotImplementedError

    def update(
        self, latents: torch.Tensor, head: Head, rng: Streams = no_seed, done: float = 0.0
    ) -> torch.Tensor:  # (n, d) -> (n,)
        """Refresh the full-data state of the head.

        Parameters
        ----------
        rng : keys -> generator, for objectives that draw
        done : share of the training that is over, for objectives with a schedule

        Returns
        -------
        the label of each row
        """
        raise NotImplementedError

    def loss(
        self,
        z: torch.Tensor,
        head: Head,
        rows: torch.Tensor,
        clean: torch.Tensor | None = None,
        mean: Any = None,
    ) -> Terms:
        """Named, already weighted terms: sums over features, means over rows.

        Parameters
        ----------
        clean : codes of the rows themselves, where z is that of changed copies
        mean : mean over the whole batch where several processes share it
        """
        raise NotImplementedError

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        raise NotImplementedError

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:  # (n, k) -> (n, k)
        """Scores as soft assignments; rows sum to 1."""
        return scores

    def fit_of(self, scores: torch.Tensor) -> torch.Tensor:  # (n, k) -> (n,)
        """How well rows fit, by their scores; higher is better."""
        return log_odds(self.probabilities(scores))
