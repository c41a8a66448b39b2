"""A plan of training as data: what each phase minimises, over which parameters, until when."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..runtime.rng import numpy_rng
from .batch import Batch, Step, Terms, View
from .head import Head
from .optim import Optim

if TYPE_CHECKING:
    from .engine import Engine


class TrainingError(RuntimeError):
    """Training went wrong in a way that a result would hide: a NaN loss, an empty cluster."""


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
    paced: bool = False  # updates are steps of a schedule: a phase that is cut has as many
    tol: float = 0.0  # stop when a smaller share of labels changes between updates
    align: bool = False  # match label names first (k-means restarted)
    sizes: bool = True  # the record of an epoch has cluster sizes, which may cost a forward pass
    average: bool = False  # end with the mean of the weights over this phase's steps


@dataclass
class Call:
    """Something done once between two phases, with the whole engine at hand."""

    function: Callable[["Engine"], None]
    name: str = "init"


def init_head(
    make: Callable[[torch.Tensor, np.random.Generator], Head],
    name: str = "init",
    move: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None,
) -> Call:
    """Make the head from the embedding of all rows; every process takes the leader's.

    `move` may change the network's code first, (n, d) -> (n, d).
    """

    def function(engine: "Engine") -> None:
        engine.latents = engine.encode_all()
        if move:
            engine.latents = move(engine.network, engine.latents)
        engine.head = make(engine.latents, numpy_rng(engine.seed, name))
        engine.world.broadcast(list(engine.head.tensors().values()))

    return Call(function, name)
