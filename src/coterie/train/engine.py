"""The only training loop: phases, batches, optimisers, the stop rule, checkpoints, averaging.

Order and noise are pure functions of (seed, phase, epoch, step), so a checkpoint holds nothing but
tensors and counters, and a resumed run makes the same bits as one that was never stopped.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..data.chunks import epoch_steps
from ..math.centers import align
from ..nets.mlp import half_products
from ..runtime.processes import World, all_gather
from ..runtime.progress import Progress
from ..runtime.rng import derive, has_own_stream, reseed, torch_rng
from ..storage.tensors import Checkpoint
from .batch import Batch, Step, Tally, Terms
from .budget import KEPT_BACK, Pace
from .checkpoint import Resuming
from .clusters import cluster_sizes, reseed_lost
from .head import Head
from .plan import Call, Phase
from .rows import Rows
from .shards import Ahead
from .view import Context, View


class Engine(Resuming):
    """Carries (network, head) through the phases of a plan."""

    def __init__(
        self,
        rows: Rows,
        network: nn.Module,
        assign: Callable[[torch.Tensor, Head], torch.Tensor],
        *,
        seed: int,
        world: World,
        progress: Progress,
        checkpoint: Checkpoint | None = None,
        checkpoint_seconds: float = 30.0,
        time_budget: float | None = None,
        empty: str = "reseed",
        precision: str = "single",
    ):
        if rows.n < world.size:
            raise ValueError(f"{rows.n} rows for {world.size} processes; start fewer of them")
        self.device: Any = rows.device  # where network, head and per-row state are
        self.network: Any = network.to(rows.device)  # with `encode`, and most with `decode`
        self.rows, self.assign = rows, assign
        self.seed, self.world, self.progress = seed, world, progress
        self.checkpoint, self.checkpoint_seconds = checkpoint, checkpoint_seconds
        self.time_budget, self.empty = time_budget, empty
        self.half = precision == "half"  # in steps and updates, not between phases
        self.head: Any = None  # a Head from `init` on
        # of this process's span of the rows:
        self.labels: Any = None  # (part,) of the last update
        self.latents: Any = None  # (part, d) from `init` until the network moves
        self.ahead = Ahead(self)
        self.history: list[dict] = []
        self.seconds: dict[str, float] = {}
        self.cached_seconds = 0.0  # of them, spent by an earlier fit (a cached network)
        self.notes: list[str] = []
        self.index = self.epoch = self.step = 0  # position: phase, epoch, step in the phase
        self.limit = 0  # steps of the phase
        self.tally = Tally()
        self.epoch_steps = 0
        self._saved_at = time.monotonic()

    # -- the plan ---------------------------------------------------------------------------
    def run(self, plan: list[Phase | Call]) -> None:
        self.plan = plan
        resume = self._load() if self.checkpoint else None
        for i in range(self.index, len(plan)):
            here = plan[i]
            self.index, self.phase = i, here if isinstance(here, Phase) else Phase(here.name, 0)
            spent = resume["spent"] if resume else 0.0  # before the fit was stopped
            self._begin = time.perf_counter() - spent
            if isinstance(here, Call):
                self.progress.phase(here.name)
                self.latents = None
                here.function(Context(self))
                self._share_result()
            else:
                self._train(resume)
            self.ahead.forget()
            resume = None
            took = time.perf_counter() - self._begin
            self.seconds[here.name] = self.seconds.get(here.name, 0.0) + took
            self.index, self.epoch, self.step, self.tally = i + 1, 0, 0, Tally()
            self._save({})

    def _train(self, resume: dict | None) -> None:
        phase, n = self.phase, self.rows.n
        steps = self.epoch_steps = epoch_steps(n, phase.batch_size)
        self._reseeds = has_own_stream()  # dropout in a user's module
        self.limit = max(1, math.ceil(phase.epochs * steps)) if phase.epochs > 0 else 0
        if phase.optimizers:
            groups = phase.optimizers(self.network, self.head)
        else:
            modules = [m for m in (self.network, self.head) if m is not None]
            groups = {"main": ([p for m in modules for p in m.parameters()], phase.optim)}
        self._optims = {}
        for name, (params, optim) in groups.items():
            if params := [p for p in params if p.requires_grad]:  # the user may have frozen some
                encoder = getattr(self.network, "fine_tuned", None)
                self._optims[name] = params, optim, optim.build(params, encoder)
        self._average = [torch.zeros_like(p) for p in self._trained()] if phase.average else []
        self._averaged = 0
        most = self.limit
        if resume:
            self._restore(resume)
        self.tally.phase = phase.name
        every = phase.update_every
        every = every if isinstance(every, int) else max(1, round(every * steps))
        pace = Pace(self.step, resume["spent"] if resume else 0.0)
        self.network.train()
        self.progress.phase(phase.name, math.ceil(self.limit / steps), self.limit)
        order_epoch, order = -1, None
        small = torch.int32 if n < 2**31 else torch.int64
        while self.step < self.limit:
            self.epoch, s = divmod(self.step, steps)
            if order_epoch != self.epoch:
                order = None  # not beside what an update needs
            # a time budget may have cut the phase
            interval = max(1, round(every * self.limit / most)) if phase.keeps_updates else every
            if phase.update and self.step % interval == 0:
                self.tally.read()
                updating = time.perf_counter()
                converged = self._update()
                pace.update_took(time.perf_counter() - updating)
                if converged:
                    break
            if order is None:
                self.latents = None
                stream = torch_rng(self.seed, phase.name, self.epoch)
                order, order_epoch = torch.randperm(n, generator=stream, dtype=small), self.epoch
                self.ahead.forget()
            first = s * phase.batch_size
            stop = n if s + 1 == steps else first + phase.batch_size
            self.ahead.turn_to(order, first, stop)
            self._one_step(order[first:stop].long())
            self.step += 1
            if s + 1 == steps or self.step == self.limit:
                self._end_epoch(s + 1)
            if self.time_budget and self.step < self.limit and pace.due(self.step):
                self.tally.read()  # waits for the steps, so that their time is known
                self._fit_budget(pace, interval, most)
            self.progress.step(self.step)
            self._maybe_save()
        if self.step == self.limit < most:
            self.notes.append(
                f"the time budget ended phase {phase.name!r} after "
                f"{round(self.limit / steps, 1):g} of {round(most / steps, 1):g} epochs"
            )
        if self._averaged:
            for p, total in zip(self._trained(), self._average):
                p.data.copy_(total / self._averaged)
        self.network.eval()

    def _one_step(self, index: torch.Tensor) -> None:
        self.latents, head = None, self.ahead.head
        if self._reseeds:
            reseed(derive(self.seed, self.phase.name, self.step))
        try:
            with half_products(self.device, self.half):
                if self.phase.train_step:
                    self.phase.train_step(Step(self, index), head)
                elif self.phase.loss:
                    batch = Batch(self, index, self.phase.augment)
                    self.descend("main", self.phase.loss(batch, head), batch.weight)
        except Exception:
            self.tally.read()  # a NaN of an earlier step may be the cause, and says more
            raise
        self.tally.after_step()
        if self._average and self.limit - self.step <= self._last_steps():
            self._averaged += 1
            for p, total in zip(self._trained(), self._average):
                total += p.data

    def _last_steps(self) -> int:
        """Steps whose weights are averaged; a time budget may have cut the phase."""
        return max(1, round(self.limit * self.phase.average / self.phase.epochs))

    def descend(self, name: str, terms: Terms, weight: float = 1.0, turns: int = 1) -> None:
        """One optimiser step on the sum of the terms; `weight` is this process's share of rows."""
        self.tally.add(terms, weight, turns, (self.epoch, self.step))
        params, optim, optimizer = self._optims[name]
        total: Any = sum(terms.values()) if len(terms) > 1 else next(iter(terms.values()))
        # gradients go to this optimiser's parameters only: a generator's turn leaves the critic be
        grads = torch.autograd.grad(
            total * weight if weight != 1 else total, params, allow_unused=True
        )
        for p, g in zip(params, grads):
            p.grad = g
        if self.world.size > 1:
            self.world.sum_gradients(params, change=bool(optim.clip))
        if optim.clip:
            nn.utils.clip_grad_norm_(params, optim.clip)
        if optim.schedule != "constant":
            whole = optim.horizon * self.epoch_steps if optim.horizon else self.limit
            for group in optimizer.param_groups:
                group["lr"] = optim.rate(self.step / whole) * group.get("share", 1.0)
        optimizer.step()

    # -- full-data work ---------------------------------------------------------------------
    def encode_all(self) -> torch.Tensor:  # (part, d), rows in order
        """Embedding of all rows, each process those of its span."""
        if self.latents is not None:
            return self.latents
        training = self.network.training
        self.network.eval()
        mine = self.rows.through(self.network, *self.world.span(self.rows.n))
        self.network.train(training)
        return mine

    def feed(self, index: torch.Tensor | slice) -> Any:
        """Rows as the network takes them."""
        return self.rows.fed_to(self.network, index)

    def _share_result(self) -> None:
        """All processes take the leader's network and head."""
        self.world.broadcast(list(self.network.state_dict().values()))
        self._share_head()

    def _share_head(self) -> None:
        if self.head is not None:  # per-row tensors are each process's own
            self.world.broadcast(list(self.head.tensors(("param", "state", "whole")).values()))

    def _update(self) -> bool:
        """Refresh the method's full-data state; True when the labels hardly change any more."""
        phase, k = self.phase, 0
        if phase.update is None:
            return False
        with torch.no_grad(), half_products(self.device, self.half):
            labels = phase.update(View(self), self.head)
            if isinstance(labels, torch.Tensor) and "centers" in self.head:
                k = self.head.centers.shape[0]
                if reseed_lost(self, labels, k):
                    labels = phase.update(View(self), self.head)
        self._share_head()
        self.ahead.forget()
        if labels is None or isinstance(labels, bool):
            return self.world.agree(bool(labels) and self.step > 0)
        if self.labels is not None and phase.align:
            most = torch.stack([labels.max(), self.labels.max()]).max()
            k = max(k, int(all_gather(self.world, most).max()) + 1)  # a head may have no centres
            labels = align(labels, self.labels, k, self.world.sum)
        converged = False
        if self.labels is not None:
            changed = self.world.sum((labels != self.labels).sum())
            converged = float(changed) / self.rows.n < phase.tol
        self.labels = labels
        return self.world.agree(converged and self.step > 0)

    def _end_epoch(self, steps: int) -> None:
        record: dict[str, Any] = {"phase": self.phase.name, "epoch": self.epoch}
        sums = self.tally.read()
        means = self.world.sum(torch.tensor(list(sums.values()), dtype=torch.float64)) / steps
        record |= dict(zip(sums, means.tolist()))
        if self.head is not None and (self.phase.sizes or self.labels is not None):
            record |= cluster_sizes(self)
        record["seconds"] = round(time.perf_counter() - self._begin, 3)
        self.tally = Tally(self.phase.name)
        self.history.append(record)
        self.progress.epoch(record)

    def _fit_budget(self, pace: Pace, every: int, most: int) -> None:
        """End this phase when it has taken its share of the time that is left."""
        spent = sum(self.seconds.values()) - self.cached_seconds
        left = (1 - KEPT_BACK) * (self.time_budget or 0) - spent
        later = [p.epochs for p in self.plan[self.index + 1 :] if isinstance(p, Phase)]
        share = left * self.phase.epochs / (self.phase.epochs + sum(later) or 1)
        limit = max(self.step + 1, min(most, pace.last_step(self.step, share, every)))
        self.limit = int(self.world.sum(torch.tensor(limit if self.world.leader else 0)))

    def _trained(self) -> list[nn.Parameter]:
        return [p for params, _, _ in self._optims.values() for p in params]

    def stream(self, *keys: str | int) -> torch.Generator:
        return torch_rng(self.seed, self.phase.name, self.step, *keys)
