"""Reading a model that can draw rows: CueGAN's generator and critic after the fit."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import one_hot

from ...estimator.deep import DeepClusterer
from ...estimator.fields import StepFields
from ...runtime.device import to_numpy


class Sampling(StepFields, DeepClusterer):
    """Generated rows of a cluster; the head holds the prior, the network generator and critic."""

    attributes: ClassVar[dict[str, str]] = {"prior_": "share of each cluster"}

    def _after_fit(self) -> None:
        self.prior_ = to_numpy(self.head_.prior)

    def _renumber(self, order: torch.Tensor) -> None:
        super()._renumber(order)
        self.head_.add_state("codes", order)  # the generator's numbers stay

    def sample(self, cluster: int, n: int = 10, random_state: int = 0) -> np.ndarray:
        """n generated rows of a cluster, in the shape and the units of X: (n, *shape)."""
        self._check_clusters(cluster)
        stream = torch.Generator().manual_seed(int(random_state))
        noise = torch.randn(n, self.settings_.n_noise, generator=stream)
        with torch.no_grad():
            code = int(self.head_.codes[cluster]) if "codes" in self.head_ else cluster
            inputs = self._inputs(torch.full((n,), code), noise).to(self.device_)
            return self._to_input(to_numpy(self.network_.averaged("generator")(inputs)))

    def critic_values(self, X: Any) -> np.ndarray:  # (n,) float32
        """What the critic thinks of rows: large where it finds too few generated ones."""
        rows, critic = self._rows(X), self.network_.critique
        with torch.no_grad():
            starts = range(0, rows.n, rows.chunk)
            values = [critic(rows.slice(a, a + rows.chunk))[:, 0] for a in starts]
            return to_numpy(torch.cat(values))

    def _inputs(self, clusters: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return torch.cat([one_hot(clusters, self.n_clusters).to(noise.dtype), noise], 1)
