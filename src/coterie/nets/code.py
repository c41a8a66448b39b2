"""Moving the code of an autoencoder without changing what it rebuilds."""

from typing import Any

import torch


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
