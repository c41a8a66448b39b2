"""A user's encoder that is trained along with the clusters."""

from copy import deepcopy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..runtime.device import Fetched

TINY = 1e-12  # length below which a vector has no direction


class FineTuned(nn.Module):
    """Rows as the encoder takes them -> scaled vectors of unit length: (b, ...) -> (b, d).

    It hangs at the network whose input its vectors are, so that both are trained, stored and
    resumed as one. Until it is `awake` the network gets the vectors that the encoder gave at
    first. The encoder stays in its evaluation mode: no dropout, moments of batches as learned.
    """

    def __init__(self, module: nn.Module, shift: np.ndarray, factor: np.ndarray):
        super().__init__()
        self.module = deepcopy(module)  # a fit leaves the user's as it is
        self.register_buffer("shift", torch.from_numpy(np.asarray(shift, np.float32).copy()))
        self.register_buffer("factor", torch.from_numpy(np.asarray(factor, np.float32).copy()))
        self.register_buffer("awake", torch.tensor(False))
        self._fetched = Fetched()

    @property
    def is_awake(self) -> bool:
        return bool(self._fetched(self.awake)[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (F.normalize(self.module(x).float(), eps=TINY) - self.shift) * self.factor

    def train(self, mode: bool = True) -> "FineTuned":
        super().train(mode)
        self.module.eval()
        return self
