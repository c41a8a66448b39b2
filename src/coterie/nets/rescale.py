"""Moving the code of an autoencoder without changing what it rebuilds."""

from typing import Any

import torch
from torch import nn

from ..runtime.processes import row_variance


class UnitCode(nn.Module):
    """A network whose codes are brought to unit length."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network
        self.takes_sparse = getattr(network, "takes_sparse", False)

    def encode(self, x: Any) -> torch.Tensor:
        return nn.functional.normalize(self.network.encode(x))

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return self.network.decode(z)


def narrow_code(network: Any, latents: torch.Tensor, most: float) -> torch.Tensor:  # (n, p)
    """Shrink a code whose total variance is above `most` to that; returns the codes given.

    The scale of a code is that of the rows and means nothing, but a step of Adam has a length:
    in a wide code (texts, whose many words are scaled alike) centres fall behind their rows.
    """
    variance = float(row_variance(latents).sum())
    if not variance > most:  # nor NaN, the variance of a single row
        return latents
    scale, origin = (most / variance) ** 0.5, latents.new_zeros(latents.shape[1])
    return latents.mul_(scale) if move_code(network, origin, scale, origin) else latents


@torch.no_grad()
def move_code(network: Any, middle, scale, to) -> bool:  # (p,), (), (p,)
    """z becomes ``scale (z - middle) + to``; the first layer of the decoder takes it back.

    Returns
    -------
    False for a user's own module, which does not name its `code_layers` and stays as it is
    """
    if not hasattr(network, "code_layers"):
        return False
    into, out = network.code_layers
    into.weight.mul_(scale)
    into.bias.sub_(middle).mul_(scale).add_(to)
    out.bias.add_(out.weight @ (middle - to / scale))
    out.weight.div_(scale)
    return True
