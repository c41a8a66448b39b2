"""The fully connected autoencoder of the papers: d-500-500-2000-p and its mirror image."""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.nn.utils import skip_init

from .init import initialise
from .sparse import linear


def leaky_relu(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.leaky_relu(x, 0.2, inplace=True)


# in place: they only ever see what a layer has just made
ACTIVATIONS = {"relu": torch.relu_, "leaky_relu": leaky_relu}


# Half precision: products of matrices in bfloat16. Weights, their gradients and moments, sums,
# embeddings, distances and losses stay float32; only what is marked by `in_half` is affected.
_HALF: ContextVar[str | None] = ContextVar("half", default=None)  # kind of device


@contextmanager
def half_products(device: torch.device, on: bool = True) -> Iterator[None]:
    """Layers marked by `in_half` multiply in bfloat16 inside; with `on` false nothing changes."""
    token = _HALF.set(device.type if on else None)
    try:
        yield
    finally:
        _HALF.reset(token)


def in_half(layers: Callable) -> Callable:
    """Mark a function (network, tensor) -> tensor; its result is float32 in any case."""

    @wraps(layers)
    def run(network, x):
        kind = _HALF.get()
        if kind is None:
            return layers(network, x)
        with torch.autocast(kind, torch.bfloat16):
            return layers(network, x).float()

    return run


class MLP(nn.Module):
    """Encoder d-hidden-p and decoder p-reversed(hidden)-d; code and output are linear."""

    takes_sparse = True  # encode also takes a scipy CSR matrix

    def __init__(
        self,
        shape: tuple[int, ...],
        embedding_dim: int,
        hidden: tuple[int, ...],
        activation: str,
        initializer: str,
        generator: torch.Generator,
    ):
        super().__init__()
        self.shape, self.embedding_dim = shape, embedding_dim
        self._act = ACTIVATIONS[activation]
        sizes = [math.prod(shape), *hidden, embedding_dim]
        down = list(itertools.pairwise(sizes))
        # skip_init: the layers' own start would draw from the global random stream
        self.encoder = nn.ModuleList(skip_init(nn.Linear, i, o) for i, o in down)
        self.decoder = nn.ModuleList(skip_init(nn.Linear, o, i) for i, o in reversed(down))
        initialise(self, initializer, generator)

    def encode(self, x: Any) -> torch.Tensor:  # (b, *shape) -> (b, p)
        if len(self.encoder) > 1:
            return self.encoder[-1](self._down(x))
        first = self.encoder[0]
        return first(x.flatten(1)) if isinstance(x, torch.Tensor) else linear(x, first)

    @in_half  # not the code: distances are measured in it
    def _down(self, x: Any) -> torch.Tensor:  # (b, *shape) -> (b, last hidden)
        first = self.encoder[0]
        h = self._act(first(x.flatten(1)) if isinstance(x, torch.Tensor) else linear(x, first))
        for layer in self.encoder[1:-1]:
            h = self._act(layer(h))
        return h

    @in_half
    def decode(self, z: torch.Tensor) -> torch.Tensor:  # (b, p) -> (b, *shape)
        for layer in self.decoder[:-1]:
            z = self._act(layer(z))
        return self.decoder[-1](z).view(-1, *self.shape)

    @property
    def code_layers(self) -> tuple[nn.Module, nn.Module]:
        return self.encoder[-1], self.decoder[0]

    # -- greedy layer-wise pre-training: level i is encoder layer i and its mirror --------------
    @property
    def levels(self) -> int:
        return len(self.encoder)

    def level_parameters(self, i: int) -> list[nn.Parameter]:
        return [*self.encoder[i].parameters(), *self.decoder[-1 - i].parameters()]

    def below(self, x: torch.Tensor, i: int) -> torch.Tensor:
        """The input of level i: what the already trained layers make of x."""
        h = x.flatten(1)
        for layer in self.encoder[:i]:
            h = self._act(layer(h))
        return h

    def rebuild(self, h: torch.Tensor, i: int) -> torch.Tensor:
        """Level i alone, there and back; activations as in the whole network."""
        code = self.encoder[i](h)
        code = code if i == self.levels - 1 else self._act(code)
        out = self.decoder[-1 - i](code)
        return out if i == 0 else self._act(out)
