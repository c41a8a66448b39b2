"""Starting weights, as the papers say and as the reference codes really do (methods differ)."""

import math

import torch
from torch import nn

INITIALIZERS = ("xavier", "glorot_bias", "uniform", "normal", "fan_in")


@torch.no_grad()
def initialise(network: nn.Module, how: str, generator: torch.Generator) -> None:
    """Fill every linear and convolution layer.

    xavier       Glorot-uniform weights, zero biases (DKM)
    glorot_bias  Glorot-uniform weights, biases as normal draws of the same variance (C-Net's code)
    uniform      U(-0.05, 0.05), zero biases (DEKM's code)
    normal       N(0, 0.01^2), zero biases (DEC)
    fan_in       U(-1/sqrt(fan_in), 1/sqrt(fan_in)), zero biases
    """
    for layer in network.modules():
        if not isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            continue
        fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(layer.weight)
        if how in ("xavier", "glorot_bias"):
            bound = math.sqrt(6 / (fan_in + fan_out))
        elif how == "uniform":
            bound = 0.05
        else:
            bound = 1 / math.sqrt(fan_in)
        if how == "normal":
            layer.weight.normal_(0, 0.01, generator=generator)
        else:
            layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.zero_()
            if how == "glorot_bias":  # a vector's fans are its length, twice
                layer.bias.normal_(0, math.sqrt(1 / layer.bias.numel()), generator=generator)
