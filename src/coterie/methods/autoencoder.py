"""What methods share that cluster the code of an autoencoder."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..estimator.decode import Decoding
from ..estimator.deep import DeepClusterer
from ..estimator.fields import NetworkFields, PretrainFields, StepFields, UpdateFields
from ..estimator.params import param
from ..estimator.tuning import unfreeze_encoder
from ..math.augment import affine
from ..nets import build
from ..nets.kith_encoder import KithCoder
from ..nets.rescale import narrow_code
from ..train.batch import Batch, Terms
from ..train.cache import Cache
from ..train.head import Head
from ..train.objective import Objective
from ..train.plan import Call, Phase, init_head
from ..train.pretrain import pretrain_decoder, pretraining
from ..train.settings import Settings
from ..train.view import Context, View
from .start import from_kith


class AutoencoderClusterer(Decoding, NetworkFields, PretrainFields, DeepClusterer):
    """A start (an autoencoder, Kith, or random weights), a head on its code, then `training`."""

    facts: ClassVar[tuple[str, ...]] = ("outside",)  # about the rows, kept in the settings
    pretrain_rule: ClassVar[tuple[float, float]] = (20, 600)  # epochs, steps: whichever is longer
    large_pretrain_rule: ClassVar[tuple[float, float]] = (30, 600)
    decoder_rule: ClassVar[tuple[float, float]] = (5, 200)  # behind Kith

    # -- hooks ------------------------------------------------------------------------------
    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        """After pre-training: the head, from the embedding of all rows."""
        raise NotImplementedError

    def training(self) -> list[Phase | Call]:
        """What follows the start of the head."""
        return []

    # -- network and plan -------------------------------------------------------------------
    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        s = settings
        if s.init == "pretrained" and s.pretrain == "kith":
            return KithCoder(s.shape, s.embedding_dim, generator)
        return build(
            s.net,
            s.shape,
            embedding_dim=s.embedding_dim,
            hidden=s.hidden,
            channels=s.channels,
            activation=s.activation,
            initializer=s.initializer,
            generator=generator,
        )

    def plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        s, most = self.settings_, getattr(self.settings_, "code_variance", 0)
        narrowed = most and s.init == "pretrained"
        move = partial(narrow_code, most=most) if narrowed else None
        start = init_head(self.init_head, move=move)
        plan = [*self._start(network, fingerprint), start]
        if getattr(s, "encoder_lr", None) is not None:
            plan.append(unfreeze_encoder())
        return [*plan, *self.training()]

    def _start(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        s = self.settings_
        if s.init != "pretrained":
            return []
        change = self.augmentation() if s.pretrain_augment else None
        plan: list[Phase | Call]
        if s.pretrain == "kith":
            plan = [from_kith(self), pretrain_decoder(s)]
        else:
            plan = [*pretraining(s, network, change)]
        if s.cache_dir is None or not isinstance(s.net, str):
            return plan
        changed = self.changed_by() if change and s.pretrain == "plain" else {}
        return Cache(s, fingerprint, self.seed_, changed).plan(plan)

    def augmentation(self) -> Any:
        """How images are changed before the network sees them; None: not at all."""
        s = self.settings_
        if s.augment == "none":
            return None
        if not s.images:
            raise ValueError(
                f"augment={s.augment!r} turns images, but each row here has shape {s.shape}; "
                "give X as (n, h, w) or use augment='none'"
            )
        only = {"scale": 0.0, "shear": 0.0} if s.augment == "rigid" else {}
        return partial(affine, outside=s.outside, **only)

    def changed_by(self) -> dict[str, Any]:
        """What decides the changes of `augmentation`, for the cache of pre-trained networks."""
        return {"augment": self.settings_.augment, "outside": self.settings_.outside}


class JointClusterer(StepFields, UpdateFields, AutoencoderClusterer):
    """An autoencoder and an `Objective` on its code, trained together.

    Loss of a batch: the objective's terms, and the reconstruction where `keeps_decoder`.
    """

    update_rule: ClassVar[tuple[float, float]] = (1.0, 20)  # epochs, steps between two updates
    align_labels: ClassVar[bool] = False  # k-means restarts, so names of clusters may change

    encoder_lr: float | None = param(
        None,
        "learning rate of a torch module given as encoder; None: it stays as it is",
        gt=0,
        group="training",
    )

    # -- hooks ------------------------------------------------------------------------------
    def make_objective(self, settings: Settings) -> Objective:
        raise NotImplementedError

    @property
    def loss(self) -> Callable[[Batch, Head], Terms]:
        return partial(Batch.terms, objective=self.objective_, rebuild=self.keeps_decoder)

    # -- what the objective does ------------------------------------------------------------
    def _prepare(self, settings: Settings) -> None:
        super()._prepare(settings)
        self.objective_: Any = self.make_objective(settings)  # each method knows its own

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return self.objective_.init_head(latents, rng)

    def update(self, view: View, head: Head) -> torch.Tensor:
        return self.objective_.update(view.latents, head, view.rng, view.done)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        return self.objective_.assign(latents, head)

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        return self.objective_.probabilities(scores)

    def fit_of(self, scores: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        return self.objective_.fit_of(scores)

    # -- training ---------------------------------------------------------------------------
    def training(self) -> list[Phase | Call]:
        return [self.phase("train", self.settings_.epochs, loss=self.loss, update=self.update)]

    def phase(self, name: str, epochs: float, **changes: Any) -> Phase:
        """A phase with this estimator's batch size, optimiser, augmentation and stop rule."""
        s = self.settings_
        settings = {"update_every": s.update_every, "tol": s.tol, "align": self.align_labels}
        if "augment" not in changes:
            settings["augment"] = self.augmentation()
        return super().phase(name, epochs, **(settings | changes))

    def last_update(self, context: Context) -> None:
        """Head and labels of the finished network; the last update was some steps ago."""
        with torch.no_grad():
            context.labels = self.update(context, context.head)
