"""Looking inside a fitted model whose decoder still belongs to its embedding."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if

from ..runtime.device import to_numpy


def _has_decoder(self: "Decoding") -> bool:
    return self.keeps_decoder


class Decoding:
    """The part of a deep clusterer that shows rows, centres and ways between them."""

    keeps_decoder: ClassVar[bool] = False  # it was trained to the end, or again after the encoder
    network_: Any
    head_: Any
    _rows: Any
    _map: Any
    _to_input: Any
    _check_clusters: Any

    @available_if(_has_decoder)
    def reconstruct(self, X: Any) -> np.ndarray:
        """X through the network and back, in the units and the shape of X."""
        return self._to_input(self._map(self._rows(X), self._decode))

    @available_if(_has_decoder)
    def centers_in_input_space(self) -> np.ndarray:  # (k, *shape of a row)
        """The cluster centres, decoded."""
        self._check_clusters()
        with torch.no_grad():
            return self._to_input(to_numpy(self._decode(self.head_.centers)))

    @available_if(_has_decoder)
    def interpolate(self, a: int, b: int, steps: int = 8) -> np.ndarray:  # (steps, *shape)
        """Decoded path from the centre of cluster a to that of cluster b."""
        self._check_clusters(a, b)
        t = torch.linspace(0, 1, steps, device=self.head_.centers.device).unsqueeze(1)
        with torch.no_grad():
            path = (1 - t) * self.head_.centers[a] + t * self.head_.centers[b]
            return self._to_input(to_numpy(self._decode(path)))

    def _decode(self, latents: torch.Tensor) -> torch.Tensor:
        return self.network_.decode(latents)
