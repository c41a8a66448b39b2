"""Fine-tuning (`encoder_lr`): a torch module given as encoder learns along with the clusters.

Pre-training and the start of the head see the vectors of the encoder as it was given. From then on
its parameters are trained too, and a reconstruction aims at those first vectors.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from ..encoders.base import EncoderError
from ..encoders.code import Module
from ..encoders.embed import embed
from ..nets.fine_tuned import FineTuned
from ..train.plan import Call
from ..train.rows import Rows
from ..train.view import Context


class Unembedded:
    """The rows of a fit as the encoder takes them, a batch at a time."""

    def __init__(self, encoder: Module, rows: Any, settings: dict):
        self.encoder, self.rows, self.settings = encoder, rows, settings
        self.step = encoder.batch_rows  # of a pass without gradient

    def __getitem__(self, index: torch.Tensor | slice) -> torch.Tensor:
        if isinstance(self.rows, np.ndarray):
            batch = self.rows[index.numpy() if isinstance(index, torch.Tensor) else index]
        else:
            places = range(len(self.rows))[index] if isinstance(index, slice) else index.tolist()
            batch = [self.rows[i] for i in places]
        return self.encoder.prepare(batch, self.settings)

    def vectors(self, module: nn.Module, verbose: int) -> np.ndarray:  # (n, d)
        return embed(Module(module), self.rows, self.settings, verbose)


def wants_tuning(model: Any) -> bool:
    return getattr(model, "encoder_lr", None) is not None


def check_tuning(model: Any) -> None:
    """Only a module has something to tune."""
    if wants_tuning(model) and not isinstance(model.encoder, nn.Module):
        raise EncoderError(
            f"encoder_lr={model.encoder_lr:g} trains a torch module given as encoder, but encoder "
            f"is {model.encoder!r}; give a module (in Python), or leave encoder_lr out"
        )


def with_encoder(model: Any, network: nn.Module) -> nn.Module:
    """The network of a model, with the encoder that is trained with it if there is one."""
    if getattr(model.settings_, "encoder_lr", None) is None:
        return network
    if not isinstance(model.encoder, nn.Module):
        raise EncoderError(
            f"this model holds the trained weights of your module {model.encoding_.reference}, not "
            "its code; coterie.load(folder, encoder=MODULE) takes a module of the same structure"
        )
    network.fine_tuned = FineTuned(model.encoder, model.scaling_.shift, model.scaling_.factor)
    return network


def unfreeze_encoder() -> Call:
    """From here on the encoder is part of the network."""

    def function(context: Context) -> None:
        context.network.fine_tuned.awake.fill_(True)

    return Call(function, "fine-tune")


def embed_last(rows: Rows, network: Any, verbose: int) -> None:
    """Rows of a finished fit as `predict` will see them."""
    if rows.unembedded is not None:
        rows.replace(rows.unembedded.vectors(network.fine_tuned.module, verbose))
