"""DeepClusterer: a clusterer that the engine trains in phases."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from torch import nn

from ..runtime.device import describe
from ..runtime.duration import seconds
from ..runtime.processes import World, join
from ..runtime.progress import Progress
from ..runtime.rng import torch_rng
from ..storage.tensors import Checkpoint, unpack
from ..train.engine import Engine
from ..train.head import Head
from ..train.optim import Optim
from ..train.plan import Call, Phase
from ..train.rows import Rows, clusters_kept
from .base import Clusterer
from .fields import RunFields
from .params import param
from .saving import plain_params
from .tuning import embed_last, with_encoder

GIANT = 0.8  # share of the rows in one of several clusters that looks like a collapse
AT_CHANCE = 0.1  # neighbours kept together beyond chance, at least


class DeepClusterer(RunFields, Clusterer):
    """A method says what is trained (`build_network`) and how (`plan`); the engine does it.

    `settings_` has a value for each field, also for those that were left open.
    """

    train_rule: ClassVar[tuple[float, float]] = (20, 700)  # epochs, steps: whichever is longer

    batch_size: int = param(256, "rows per step", ge=1, group="training")

    # -- hooks ------------------------------------------------------------------------------
    def plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        """The phases of a fit, and what is done between them."""
        raise NotImplementedError

    # -- helpers for `plan` -----------------------------------------------------------------
    def phase(self, name: str, epochs: float, **changes: Any) -> Phase:
        """A phase with this estimator's batch size and optimiser."""
        settings = {"batch_size": self.settings_.batch_size}
        if "optim" not in changes and "optimizers" not in changes:
            settings["optim"] = self.optim()
        return Phase(name, epochs, **(settings | changes))

    def optim(self, **changes: Any) -> Optim:
        s = self.settings_
        settings = {"kind": s.optimizer, "lr": s.lr, "schedule": s.schedule}
        settings |= {"momentum": s.momentum, "eps": s.eps, "clip": s.clip}
        settings["horizon"] = s.decay_epochs
        settings["encoder_lr"] = getattr(s, "encoder_lr", None)
        return Optim(**(settings | changes))

    # -- fit --------------------------------------------------------------------------------
    def _world(self) -> World:
        return join(self.devices, self.device)

    def _fit(self, rows: Rows) -> None:
        keyed = self.checkpoint_dir is not None or getattr(self, "cache_dir", None) is not None
        fingerprint = rows.fingerprint() if keyed else ""
        checkpoint = self._checkpoint(fingerprint)
        network = self.build_network(self.settings_, torch_rng(self.seed_, "network"))
        network = with_encoder(self, network)
        rows.unembedded = vars(self).pop("_unembedded", None)
        engine = self._run(rows, network, self.plan(network, fingerprint), checkpoint=checkpoint)
        self.network_, self.head_ = engine.network.eval(), engine.head
        self.head_.drop_rows()
        self.history_, self.seconds_ = engine.history, engine.seconds
        self.notes_ = engine.notes
        embed_last(rows, self.network_, self.verbose)
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
            if rows.device.type != "cpu":
                progress.note(f"computing on {describe(rows.device)}")
            engine = Engine(
                rows,
                network,
                self.assign,
                seed=self.seed_,
                world=world,
                progress=progress,
                checkpoint=checkpoint,
                checkpoint_seconds=self.checkpoint_seconds,
                time_budget=seconds(self.settings_.time_budget),
                empty=getattr(self.settings_, "empty", "keep"),
                precision=getattr(self.settings_, "precision", "single"),
            )
            engine.head = head if head is None else head.to(rows.device)
            engine.run(plan)
        return engine

    def _checkpoint(self, fingerprint: str) -> Checkpoint | None:
        folder = self.settings_.checkpoint_dir
        if folder is None:
            return None
        run_only = {f.name for f in dataclasses.fields(self) if f.metadata.get("group") == "run"}
        params = {k: v for k, v in plain_params(self).items() if k not in run_only}
        if "precision" in params:  # what auto means on this machine
            params["precision"] = self.settings_.precision
        key = {"method": self.key, "data": fingerprint, "seed": self.seed_, **params}
        checkpoint = Checkpoint(folder, key)
        if self.random_state is None and checkpoint.path.exists():
            # the interrupted fit drew its own seed: go on with that one
            self.seed_ = key["seed"] = (
                unpack(checkpoint.path)[1].get("key", {}).get("seed", self.seed_)
            )
        return checkpoint

    def _few_clusters(self, used: int) -> str:
        longer = "pre-train longer, " if self._pretrained else ""
        what = "the result has collapsed" if used == 1 else "the others lost their rows"
        return f"{what}: scale the input, {longer}lower the learning rate, or ask for fewer"

    def _check_labels(self, rows: Rows) -> list[tuple[str, str]]:
        """Also a giant cluster, and clusters that near rows do not share."""
        name, largest = type(self).__name__, np.bincount(self.labels_).max() / rows.n
        kept = clusters_kept(rows, self.labels_, self.seed_)
        notes = []
        if self.n_clusters_ > 2 and GIANT < largest < 1:
            notes.append(f"{name} put {largest:.0%} of the rows into one cluster")
        if kept < AT_CHANCE:
            share = f"{max(kept, 0):.0%} of a row's nearest rows share its cluster"
            notes.append(f"{name} ended near chance: beyond chance, {share}")
        way_out = "look at the losses in history_, train longer, or try another method"
        return super()._check_labels(rows) + [(note, way_out) for note in notes]

    @property
    def _pretrained(self) -> bool:
        return getattr(self.settings_, "init", "") == "pretrained"
