"""One training step: a batch of rows, turns of several optimisers on it, the sums of its losses."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from ..math.assign import squared_error
from ..runtime.rng import torch_rng
from .rows import send

if TYPE_CHECKING:
    from .engine import Engine
    from .objective import Objective

Terms = dict[str, torch.Tensor]
READ_EVERY = 64  # steps


class TrainingError(RuntimeError):
    """Training went wrong in a way that a result would hide: a NaN loss, an empty cluster."""


class Batch:
    """One mini-batch (this process's part of it).

    Attributes
    ----------
    rows : (b,) where the head's per-row tensors have these rows
    index : (b,) positions of these rows in the data, on the host
    clean : (b, *shape) the rows themselves
    x : (b, *shape) what the network sees: the rows, or their augmented version
    z, x_hat : embedding of x and its reconstruction, computed when first asked for
    """

    def __init__(self, engine: "Engine", index: torch.Tensor, augment: Callable | None):
        self._world = world = engine.world
        self.network: Any = engine.network
        self.epoch, self.step = engine.epoch, engine.step
        self.index, self.size = index, len(index)
        self._total, self.weight = self.size, 1.0
        if world.size > 1:
            # fewer rows than processes: everybody takes all of them, with a smaller weight
            few = self.size < world.size
            self.index = world.share(index)
            self._total = self.size * world.size if few else self.size
            self.weight = len(self.index) / self._total
        self._engine, self._augment, self._whole = engine, augment, index
        # where processes share the per-row tensors, the head has those of this batch alone
        here = torch.arange(len(self.index)) if engine.ahead.cut else self.index
        self.rows = send(here, engine.device)
        self.moved = augment is not None  # is x another than clean?

    @cached_property
    def clean(self) -> torch.Tensor:
        return self._engine.rows.take(self.index)

    @cached_property
    def fed(self) -> Any:
        """The clean rows as the network takes them: sparse ones are not filled with zeros."""
        return self._engine.feed(self.index)

    @cached_property
    def x(self) -> torch.Tensor:
        if self._augment is None:
            return self.clean
        if self._world.size == 1:
            return self._augment(self.clean, self._engine.stream("augment"))
        # the whole batch is augmented everywhere and cut afterwards: the noise of a row must not
        # depend on how many processes share the work
        whole = self._augment(self._engine.rows.take(self._whole), self._engine.stream("augment"))
        return self._world.share(whole)

    @cached_property
    def z(self) -> torch.Tensor:
        return self.network.encode(self.x if self._augment else self.fed)

    @cached_property
    def z_clean(self) -> torch.Tensor:
        return self.network.encode(self.fed) if self._augment else self.z

    @cached_property
    def x_hat(self) -> torch.Tensor:
        return self.network.decode(self.z)

    def others(self, rows: torch.Tensor) -> torch.Tensor:
        """Any rows of the data, clean, by position: (m,) -> (m, *shape)."""
        return self._engine.rows.take(rows)

    def draw(
        self, make: Callable[[int, torch.Generator], torch.Tensor], *keys: str | int
    ) -> torch.Tensor:
        """Noise of this step, one entry per row: `make(b, generator)`, drawn for the whole batch
        and cut, so that it does not depend on the number of processes."""
        return send(self.draw_on_host(make, *keys), self._engine.device)

    def draw_on_host(
        self, make: Callable[[int, torch.Generator], torch.Tensor], *keys: str | int
    ) -> torch.Tensor:
        """The same noise for work that is done on the host."""
        return self._world.share(make(self.size, self._engine.stream(*keys)))

    def mean(self, t: torch.Tensor) -> torch.Tensor:
        """Mean over the whole batch, all processes, with gradient: (b, ...) -> (...)."""
        if self._world.size == 1:
            return t.mean(0)
        return self._world.sum_with_grad(t.sum(0)) / self._total

    def sum(self, t: torch.Tensor) -> torch.Tensor:
        """Sum of a per-process quantity over processes, without gradient."""
        return t if self._world.size == 1 else self._world.sum(t) * (self.size / self._total)

    def terms(self, head: Any, objective: "Objective", rebuild: bool) -> Terms:
        """The objective's terms on these rows and, with `rebuild`, the reconstruction error."""
        clean = self.z_clean if self.moved else None
        terms = objective.loss(self.z, head, self.rows, clean, self.mean)
        return terms | self.reconstruction if rebuild else terms

    @property
    def reconstruction(self) -> Terms:
        """Squared error of x_hat against the clean rows: sum over features, mean over rows."""
        return {"reconstruction": squared_error(self.clean, self.x_hat)}


class Step:
    """One training step of a method with several optimisers (see `Phase.train_step`)."""

    def __init__(self, engine: "Engine", index: torch.Tensor):
        self._engine, self._index = engine, index
        self.epoch, self.step = engine.epoch, engine.step
        self.network: Any = engine.network
        self.n = engine.rows.n

    @cached_property
    def batch(self) -> Batch:
        return Batch(self._engine, self._index, self._engine.phase.augment)

    def draw(self, size: int, *keys: str | int) -> Batch:
        """A batch of rows picked at random, the same for the same (seed, step, keys)."""
        g = torch_rng(self._engine.seed, self._engine.phase.name, self.step, "draw", *keys)
        return Batch(self._engine, torch.randint(self.n, (size,), generator=g), None)

    def stream(self, *keys: str | int) -> torch.Generator:
        """Noise for this step; a pure function of (seed, phase, step, keys)."""
        return self._engine.stream(*keys)

    def part(self, t: torch.Tensor) -> tuple[torch.Tensor, float]:
        """This process's part of something drawn for a whole batch, and its weight in a mean."""
        world, t = self._engine.world, send(t, self._engine.device)
        part = world.share(t)
        return part, 1 / world.size if len(t) < world.size else len(part) / len(t)

    def optimize(self, name: str, terms: Terms, weight: float = 1.0, turns: int = 1) -> None:
        """One step of the optimiser `name` on the sum of the terms; `weight` is a batch's.

        With several turns in a step the history shows the mean over them.
        """
        self._engine.descend(name, terms, weight, turns)

    def log(self, values: Terms, weight: float = 1.0, turns: int = 1) -> None:
        """Numbers for the history that are not part of a loss."""
        self._engine.tally.add(values, weight, turns)


class Tally:
    """Sums of named values over the steps of an epoch.

    To read a number means to wait until an accelerator has computed it. Values therefore stay
    where they are, as tensors, and are read in one transfer: every few steps, at the end of an
    epoch, and before anything that must not happen after a NaN (an update, a checkpoint).
    """

    def __init__(self, phase: str = "", sums: dict[str, float] | None = None):
        self.phase, self._sums = phase, sums or {}
        self._waiting: list[tuple[str, torch.Tensor, float, tuple[int, int] | None]] = []
        self._steps = 0

    def add(
        self,
        values: dict[str, torch.Tensor],
        weight: float,
        turns: int = 1,
        where: tuple[int, int] | None = None,
    ) -> None:
        """Count values by weight / turns; those of a loss say `where`, in epoch and step."""
        for name, value in values.items():
            self._waiting.append((name, value.detach(), weight / turns, where))

    def after_step(self) -> None:
        self._steps += 1
        if self._steps >= READ_EVERY:
            self.read()

    def read(self) -> dict[str, float]:
        """The sums so far; a term of a loss that is no number is an error."""
        waiting, self._waiting, self._steps = self._waiting, [], 0
        numbers = torch.stack([value for _, value, _, _ in waiting]).tolist() if waiting else []
        for (name, _, factor, where), number in zip(waiting, numbers):
            if where and not math.isfinite(number):
                epoch, step = where
                raise TrainingError(
                    f"the loss term {name!r} became {number} in phase {self.phase!r}, epoch "
                    f"{epoch}, step {step}; lower the learning rate or its weight"
                )
            self._sums[name] = self._sums.get(name, 0.0) + number * factor
        return self._sums
