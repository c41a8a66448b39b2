"""DeepClusterer: a clusterer with a network, trained by the engine in phases."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..nets import ACTIVATIONS, INITIALIZERS, build
from ..nets.kith_encoder import KithCoder
from ..nets.rescale import narrow_code
from ..runtime.duration import seconds
from ..runtime.processes import World, join
from ..runtime.progress import Progress
from ..runtime.rng import torch_rng
from ..storage.tensors import Checkpoint, unpack
from ..train.batch import Batch, Terms, View
from ..train.engine import Engine
from ..train.head import Head
from ..train.optim import Optim
from ..train.plan import Call, Phase, init_head
from ..train.pretrain import Cache, pretraining
from ..train.rows import Rows, clusters_kept
from ..train.settings import Sizing
from .base import Clusterer
from .decode import Decoding
from .params import param
from .saving import plain_params

KINDS = ("adam", "sgd")
SCHEDULES = ("constant", "polynomial", "onecycle")
GIANT = 0.8  # share of the rows in one of several clusters that looks like a collapse
AT_CHANCE = 0.1  # neighbours kept together beyond chance, at least


class DeepClusterer(Decoding, Sizing, Clusterer):
    """The hooks of a deep method; see CONTRIBUTING for a walk through DEC.

    init_head(latents, rng)  after pre-training: the head, its parameters are trained
    loss(batch, head)        each step: named, already weighted terms
    update(view, head)       every `update_every`: full-data state; labels for the stop rule
    assign(latents, head)    scores
    training(network)        the phases after `init`, if one phase with `loss` is not enough
    """

    # a network learns by steps: (epochs, steps), whichever is longer, where no number is given
    train_rule: ClassVar[tuple[int, int]] = (20, 700)
    update_rule: ClassVar[tuple[float, int]] = (1.0, 20)
    code_variance: ClassVar[float] = 0.0  # the most that a pre-trained code may have; 0: any
    align_labels: ClassVar[bool] = False  # k-means restarts, so names of clusters may change

    net: Any = param("auto", "auto, mlp, conv, a module, or (encoder, decoder)", group="network")
    embedding_dim: int | None = param(
        None,
        "size of the embedding; None: 10, and for rows other than images one for each cluster "
        "beyond ten, up to 64",
        ge=1,
        group="network",
    )
    hidden: tuple[int, ...] | None = param(
        None,
        "hidden layers of the mlp; None: 512-512, or 500-500-2000 for 20,000 rows of 256 values",
        ge=1,
        group="network",
    )
    channels: tuple[int, int, int] = param(
        (32, 64, 128), "channels of the conv net", ge=1, group="network"
    )
    activation: str = param("relu", "of the mlp", choices=tuple(ACTIVATIONS), group="network")
    initializer: str = param("xavier", "starting weights", choices=INITIALIZERS, group="network")

    init: str = param(
        "pretrained", "start of the network", choices=("pretrained", "random"), group="training"
    )
    batch_size: int = param(256, "rows per step", ge=1, group="training")
    pretrain: str = param(
        "plain",
        "kind of pre-training; kith: its features and body are the encoder (net is not used)",
        choices=("plain", "denoise", "layerwise", "kith"),
        group="training",
    )
    pretrain_epochs: float | None = param(
        None, "epochs of pre-training; None: by the number of rows", ge=0, group="training"
    )
    pretrain_lr: float | None = param(
        None,
        "learning rate of pre-training; None: 3e-3, for many rows 1e-3",
        gt=0,
        group="training",
    )
    pretrain_schedule: str | None = param(
        None,
        "learning-rate schedule; None: onecycle, for many rows constant",
        choices=(*SCHEDULES, None),
        group="training",
    )
    pretrain_optimizer: str = param("adam", "optimiser", choices=KINDS, group="training")
    epochs: float | None = param(
        None, "most epochs of clustering; None: 20, more for few rows", ge=0, group="training"
    )
    lr: float = param(1e-3, "learning rate of clustering", gt=0, group="training")
    schedule: str = param("constant", "learning-rate schedule", choices=SCHEDULES, group="training")
    optimizer: str = param("adam", "optimiser of clustering", choices=KINDS, group="training")
    momentum: float = param(0.9, "momentum of sgd in clustering", ge=0, le=1, group="training")
    clip: float | None = param(
        None, "largest norm of a gradient in clustering", gt=0, group="training"
    )
    update_every: int | float | None = param(
        None,
        "full-data update: a float counts epochs, an int mini-batches; None: an epoch, 20 at least",
        gt=0,
        group="training",
    )
    tol: float = param(
        1e-3, "stop when a smaller share of labels changes between updates", ge=0, group="training"
    )
    n_init: int = param(10, "restarts of k-means", ge=1, group="training")
    augment: str = param(
        "auto",
        "auto (affine for images; with many rows not in pre-training, and for dkm and cnet not "
        "at all), affine, or none",
        choices=("auto", "affine", "none"),
        group="training",
    )
    empty: str = param(
        "reseed",
        "what to do about clusters without rows",
        choices=("reseed", "keep", "raise"),
        group="training",
    )

    checkpoint_dir: Any = param(None, "folder for checkpoints; a fit resumes from it", group="run")
    checkpoint_seconds: float = param(30.0, "time between checkpoints", ge=0, group="run")
    time_budget: float | str | None = param(
        None, 'time that the fit may take: seconds, or such as "5m"', gt=0, group="run"
    )
    cache_dir: Any = param(None, "folder for pre-trained networks, shared by fits", group="run")
    devices: int = param(1, "processes that share the work", ge=1, group="run")
    callback: Any = param(None, "called with the record of each epoch", group="run")

    # -- hooks ------------------------------------------------------------------------------
    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        raise NotImplementedError

    def loss(self, batch: Batch, head: Head) -> Terms:
        raise NotImplementedError

    def update(self, view: View, head: Head) -> torch.Tensor | None:
        return None

    def build_network(self, shape: tuple[int, ...], generator: torch.Generator) -> nn.Module:
        if self._from_kith:
            return KithCoder(shape, self.code_size(), generator)
        return build(
            self.net,
            shape,
            embedding_dim=self.code_size(),
            hidden=self.recipe().hidden,
            channels=self.channels,
            activation=self.activation,
            initializer=self.initializer,
            generator=generator,
        )

    def training(self, network: nn.Module) -> list[Phase | Call]:
        """What follows the start of the head: one phase with `loss` and `update`."""
        return [self.phase("train", self.epochs, loss=self.loss, update=self._update_hook())]

    # -- helpers for `training` -------------------------------------------------------------
    def phase(self, name: str, epochs: float | None, **changes: Any) -> Phase:
        """A phase with this estimator's batch size, optimiser, augmentation and stop rule."""
        settings: dict[str, Any] = {
            "batch_size": self.batch_size,
            "optim": self.optim(),
            "augment": self._augmentation(),
            "update_every": float(self.epochs_of(None, self.update_rule))
            if self.update_every is None
            else self.update_every,
            "tol": self.tol,
            "align": self.align_labels,
        }
        return Phase(name, self.epochs_of(epochs, self.train_rule), **(settings | changes))

    def optim(self, **changes: Any) -> Optim:
        settings: dict[str, Any] = {
            "kind": self.optimizer,
            "lr": self.lr,
            "schedule": self.schedule,
        }
        settings |= {"momentum": self.momentum, "clip": self.clip}
        return Optim(**(settings | changes))

    def pretrain_optim(self) -> Optim:
        recipe = self.recipe()
        return Optim(kind=self.pretrain_optimizer, lr=recipe.lr, schedule=recipe.schedule)

    def _last_update(self, engine: Engine) -> None:
        """Head and labels of the finished network; the last update was some steps ago."""
        with torch.no_grad():
            engine.labels = self.update(View(engine), engine.head)
        engine.world.broadcast(list(engine.head.tensors().values()))

    def _update_hook(self) -> Any:
        return self.update if type(self).update is not DeepClusterer.update else None

    # -- fit --------------------------------------------------------------------------------
    def _world(self) -> World:
        return join(self.devices)

    def _fit(self, rows: Rows) -> None:
        self._look_at(rows)
        keyed = self.checkpoint_dir is not None or self.cache_dir is not None
        fingerprint = rows.fingerprint() if keyed else ""
        checkpoint = self._checkpoint(fingerprint)
        network = self.build_network(rows.shape, torch_rng(self.seed_, "network"))
        engine = self._run(rows, network, self._plan(network, fingerprint), checkpoint=checkpoint)
        self.network_, self.head_ = engine.network.eval(), engine.head
        self.history_, self.seconds_ = engine.history, engine.seconds
        self.notes_ = engine.notes
        self._after_fit()

    def _run(
        self,
        rows: Rows,
        network: nn.Module,
        plan: list[Phase | Call],
        *,
        checkpoint: Checkpoint | None = None,
        head: Head | None = None,
    ) -> Engine:
        """Carry network and head through a plan."""
        world = self._world()
        with Progress(self.verbose if world.leader else 0, self.callback) as progress:
            engine = Engine(
                rows,
                network,
                self.assign,
                seed=self.seed_,
                world=world,
                progress=progress,
                checkpoint=checkpoint,
                checkpoint_seconds=self.checkpoint_seconds,
                time_budget=seconds(self.time_budget),
                empty=self.empty,
            )
            engine.head = head
            engine.run(plan)
        return engine

    def _plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        before: list[Phase | Call] = []
        if self.init == "pretrained":
            before = pretraining(self, network)
            if self.cache_dir is not None and isinstance(self.net, str):
                before = Cache(self, fingerprint, self.seed_).plan(before)
        wide = self.code_variance and self.init == "pretrained"
        head = init_head(self.init_head, move=self._narrow if wide else None)
        return [*before, head, *self.training(network)]

    def _narrow(self, network: nn.Module, latents: torch.Tensor) -> torch.Tensor:
        return narrow_code(network, latents, self.code_variance)

    def _checkpoint(self, fingerprint: str) -> Checkpoint | None:
        if self.checkpoint_dir is None:
            return None
        run_only = {f.name for f in dataclasses.fields(self) if f.metadata.get("group") == "run"}
        params = {k: v for k, v in plain_params(self).items() if k not in run_only}
        key = {"method": self.key, "data": fingerprint, "seed": self.seed_, **params}
        checkpoint = Checkpoint(self.checkpoint_dir, key)
        if self.random_state is None and checkpoint.path.exists():
            # the interrupted fit drew its own seed: go on with that one
            self.seed_ = key["seed"] = (
                unpack(checkpoint.path)[1].get("key", {}).get("seed", self.seed_)
            )
        return checkpoint

    def _few_clusters(self, used: int) -> str:
        longer = "pre-train longer, " if self.init == "pretrained" else ""
        what = "the result has collapsed" if used == 1 else "the others lost their rows"
        return f"{what}: scale the input, {longer}lower the learning rate, or ask for fewer"

    def _check_labels(self, rows: Rows) -> list[tuple[str, str]]:
        """Also a giant cluster, and clusters that near rows do not share."""
        name, largest = type(self).__name__, np.bincount(self.labels_).max() / rows.n
        kept = clusters_kept(rows, self.labels_, self.seed_)
        notes = []
        if self.n_clusters > 2 and GIANT < largest < 1:
            notes.append(f"{name} put {largest:.0%} of the rows into one cluster")
        if kept < AT_CHANCE:
            share = f"{max(kept, 0):.0%} of a row's nearest rows share its cluster"
            notes.append(f"{name} ended near chance: beyond chance, {share}")
        way_out = "look at the losses in history_, train longer, or try another method"
        return super()._check_labels(rows) + [(note, way_out) for note in notes]
