"""A plan of training as data: what each phase minimises, over which parameters, until when."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from ..runtime.rng import numpy_rng
from .batch import Batch, Step, Terms
from .head import Head
from .optim import Optim
from .view import Context, View


@dataclass
class Phase:
    """A stretch of training with one loss and one set of optimisers."""

    name: str
    epochs: float
    loss: Callable[[Batch, Head], Terms] | None = None
    train_step: Callable[[Step, Head], None] | None = None  # instead of `loss`
    batch_size: int = 256
    optim: Optim = field(default_factory=Optim)
    optimizers: Callable[[nn.Module, Head], dict[str, tuple[list, Optim]]] | None = None
    augment: Callable[[torch.Tensor, torch.Generator], torch.Tensor] | None = None
    update: Callable[[View, Head], torch.Tensor | bool | None] | None = None  # True ends the phase
    update_every: int | float = 1.0  # int: mini-batches, float: epochs
    keeps_updates: bool = False  # a phase that a time budget cuts has as many (a schedule)
    tol: float = 0.0  # stop when a smaller share of labels changes between updates
    align: bool = False  # match label names first (k-means restarted)
    sizes: bool = True  # the record of an epoch has cluster sizes, which may cost a forward pass
    average: float = 0.0  # end with the mean of the weights over the steps of the last epochs


@dataclass
class Call:
    """Something done once between two phases."""

    function: Callable[[Context], None]
    name: str = "init"


def init_head(
    make: Callable[[torch.Tensor, np.random.Generator], Head],
    name: str = "init",
    move: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None,
) -> Call:
    """Make the head from the embedding of all rows.

    `move` may change the network's code first, (n, d) -> (n, d).
    """

    def function(context: Context) -> None:
        latents = context.latents
        context.keep_latents(move(context.network, latents) if move else latents)
        context.head = make(context.latents, numpy_rng(context.seed, name))

    return Call(function, name)
