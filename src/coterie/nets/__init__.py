"""Networks: modules with `encode` and `decode`, and nothing else."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from .conv import Conv
from .init import INITIALIZERS
from .mlp import ACTIVATIONS, MLP, in_half

__all__ = ["ACTIVATIONS", "INITIALIZERS", "MLP", "Conv", "Identity", "Pair", "build"]


class Identity(nn.Module):
    """No network: the rows are their own embedding (k-means, CM)."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = shape
        self.embedding_dim = int(torch.Size(shape).numel())

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return z.view(-1, *self.shape)


class Pair(nn.Module):
    """A user's own encoder and decoder under our two method names."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @in_half
    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)

    @in_half
    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return self.decoder(z)


def build(
    net: Any,
    shape: tuple[int, ...],
    *,
    embedding_dim: int,
    hidden: tuple[int, ...],
    channels: tuple[int, int, int],
    activation: str,
    initializer: str,
    generator: torch.Generator,
) -> nn.Module:
    """`net`: "auto" (conv for images, MLP for the rest), "mlp", "conv", or a user's module(s).

    Modules are copied: a fit leaves the user's as they are, and the next one starts from them.
    """
    if isinstance(net, (tuple, list)):
        encoder, decoder = net
        return Pair(deepcopy(encoder), deepcopy(decoder))
    if isinstance(net, nn.Module):
        if not (hasattr(net, "encode") and hasattr(net, "decode")):
            raise TypeError(
                f"net={type(net).__name__} needs the methods encode(x) and decode(z); "
                "or give a pair: net=(encoder, decoder)"
            )
        return deepcopy(net)
    if net == "auto":
        net = "conv" if len(shape) == 3 and min(shape[1:]) >= 4 else "mlp"
    if net == "conv":
        if len(shape) != 3:
            raise ValueError(
                f"net='conv' needs images (n, h, w) or (n, h, w, c), but each row here has "
                f"{shape[0]} values; reshape X to images or use net='mlp'"
            )
        return Conv(shape, embedding_dim, tuple(channels), initializer, generator)
    if net != "mlp":
        raise ValueError(f"net={net!r}: choose 'auto', 'mlp', 'conv' or give a module")
    return MLP(shape, embedding_dim, tuple(hidden), activation, initializer, generator)
