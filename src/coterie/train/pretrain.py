"""Pre-training of an autoencoder: end to end, denoising, or layer by layer."""

from collections.abc import Callable
from typing import Any

import torch

from ..math.assign import squared_error
from ..math.augment import dropout_rows
from .batch import Batch, Terms
from .head import Head
from .optim import Optim
from .plan import Phase
from .settings import Settings

CORRUPTION = 0.2  # share of the input that a denoising autoencoder does not see (DEC)


def reconstruction(batch: Batch, head: Head | None = None) -> Terms:
    return batch.reconstruction


def pretrain_optim(s: Settings) -> Optim:
    return Optim(
        kind=s.pretrain_optimizer,
        lr=s.pretrain_lr,
        schedule=s.pretrain_schedule,
        horizon=s.decay_epochs,
    )


def pretraining(s: Settings, network: Any, change: Callable | None) -> list[Phase]:
    """The phases of `pretrain`; the layer-wise ones end with a fine-tuning of the whole.

    Parameters
    ----------
    change : what plain pre-training does to images that are then rebuilt unchanged; None: nothing
    """
    epochs, optim = s.pretrain_epochs, pretrain_optim(s)
    common: dict[str, Any] = {"batch_size": s.pretrain_batch_size, "optim": optim}
    if s.pretrain == "layerwise":
        if not hasattr(network, "level_parameters"):
            raise ValueError(
                "pretrain='layerwise' needs net='mlp'; use pretrain='plain' or 'denoise'"
            )
        each = epochs / (2 * network.levels)  # half of the epochs, then the whole
        levels = [_level(i, each, optim, common) for i in range(network.levels)]
        return [*levels, Phase("pretrain", epochs / 2, reconstruction, **common)]
    noise = _corrupt if s.pretrain == "denoise" else change
    return [Phase("pretrain", epochs, reconstruction, augment=noise, **common)]


def pretrain_decoder(s: Settings) -> Phase:
    """The decoder alone learns to rebuild rows from a code that stays as it is."""

    def optimizers(network, head):
        return {"main": (list(network.back.parameters()), optim)}

    optim = pretrain_optim(s)
    settings: dict[str, Any] = {"batch_size": s.pretrain_batch_size, "optim": optim}
    return Phase("pretrain", s.pretrain_epochs, reconstruction, optimizers=optimizers, **settings)


def _corrupt(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return dropout_rows(x, generator, CORRUPTION)


def _level(i: int, epochs: float, optim: Optim, common: dict) -> Phase:
    """One level of a stacked denoising autoencoder; noise on its input, except on the raw one."""

    def loss(batch: Batch, head: Head | None) -> Terms:
        network = batch.network
        with torch.no_grad():
            clean = network.below(batch.clean, i)
        seen = clean
        if i > 0:
            lost = batch.draw(lambda b, g: torch.rand(b, clean.shape[1], generator=g), "lost")
            seen = clean * (lost >= CORRUPTION)
        rebuilt = network.rebuild(seen, i)
        return {"reconstruction": squared_error(clean, rebuilt)}

    def optimizers(network, head):
        return {"main": (network.level_parameters(i), optim)}

    return Phase(f"pretrain-{i}", epochs, loss, optimizers=optimizers, **common)
