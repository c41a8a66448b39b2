"""Checkpoints of a fit: what is kept of it, and how it goes on after it was stopped."""

import time
from collections.abc import Callable
from typing import Any

import torch

from ..runtime.processes import World, all_gather
from ..runtime.progress import Progress
from ..storage.tensors import BROKEN, Checkpoint, StateError, check_fit
from .batch import Tally
from .head import Head
from .optim import load_optimizer, optimizer_tensors
from .plan import Call, Phase
from .rows import Rows


class Resuming:
    """The part of the engine that writes and reads its checkpoint."""

    network: Any
    rows: Rows
    assign: Callable[[torch.Tensor, Head], torch.Tensor]
    device: Any
    head: Any
    labels: Any
    plan: list[Phase | Call]
    world: World
    progress: Progress
    checkpoint: Checkpoint | None
    checkpoint_seconds: float
    index: int
    epoch: int
    step: int
    history: list[dict]
    seconds: dict[str, float]
    cached_seconds: float
    notes: list[str]
    _optims: dict
    _average: list[torch.Tensor]
    _averaged: int
    tally: Tally
    limit: int
    _begin: float
    _saved_at: float

    def feed(self, index: torch.Tensor | slice) -> Any:
        raise NotImplementedError

    @property
    def _where(self) -> str:
        return str(self.checkpoint.path) if self.checkpoint else "the checkpoint"

    def _maybe_save(self) -> None:
        if self.checkpoint is None:
            return
        if self.world.agree(time.monotonic() - self._saved_at >= self.checkpoint_seconds):
            extra = {f"average.{i}": t for i, t in enumerate(self._average)}
            extra["averaged"] = torch.tensor(self._averaged)
            for name, (_, _, optimizer) in self._optims.items():
                extra |= {f"optim.{name}.{k}": v for k, v in optimizer_tensors(optimizer).items()}
            mine = torch.tensor(list(self.tally.read().values()), dtype=torch.float64)
            self._save(extra | {"sums": self.world.sum(mine)})

    def _save(self, extra: dict[str, torch.Tensor]) -> None:
        if self.checkpoint is None:
            return
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()} | extra
        if self.head is not None:
            tensors |= {f"head.{k}": v for k, v in self.head.tensors().items()}
        if self.labels is not None:
            tensors["labels"] = self.labels
        for name in filter(_by_row, tensors):
            tensors[name] = self.world.to_leader(tensors[name], self.rows.n)
        if not self.world.leader:
            return
        position = {
            "place": _place(self.plan, self.index),
            "position": [self.index, self.epoch, self.step],
            "spent": time.perf_counter() - self._begin,
            "limit": self.limit,
            "sums": list(self.tally.read()),
            "history": self.history,
            "seconds": self.seconds,
            "lent": self.cached_seconds,
            "notes": self.notes,
        }
        self.checkpoint.save(tensors, position)
        self._saved_at = time.monotonic()

    def _load(self) -> dict | None:
        found = self.checkpoint.load() if self.checkpoint else None
        if found is None:
            self._meet([0, 0, 0])
            return None
        try:
            return self._take(*found)
        except BROKEN as err:
            if isinstance(err, StateError):
                raise
            raise StateError(
                f"{self._where} does not fit this fit ({type(err).__name__}: {err}); "
                "restore it from a copy, or delete it to begin again"
            ) from err

    def _take(self, tensors: dict[str, torch.Tensor], about: dict) -> dict | None:
        """Go to the position of a checkpoint, with tensors that were checked."""
        self._meet(about["position"])
        _, self.epoch, self.step = about["position"]
        # by name: with a cache of pre-trained networks the plan may have become shorter
        places = [_place(self.plan, i) for i in range(len(self.plan) + 1)]
        if about["place"] not in places:
            self.progress.note(f"phase {about['place'][0]!r} is not needed any more; starting over")
            self.epoch = self.step = 0
            return None
        self.index = places.index(about["place"])
        sums = tensors.get("sums", torch.zeros(0)) * self.world.leader  # of all, in one of them
        self.tally = Tally(sums=dict(zip(about["sums"], sums.tolist())))
        self.history, self.notes = about["history"], about["notes"]
        self.seconds, self.cached_seconds = about["seconds"], about["lent"]
        where = self._where
        weights = _under("network", tensors)
        check_fit(weights, self.network.state_dict(), where)
        self.network.load_state_dict(weights)
        tensors = _with_whole(tensors)
        self._check_rows(tensors, where)
        span = slice(*self.world.span(self.rows.n))
        for name in filter(_by_row, tensors if self.world.size > 1 else ()):
            tensors[name] = tensors[name][span].clone()  # the rest is others'
        head = _under("head", tensors)
        self.head = Head.from_tensors(head).to(self.device) if head else None
        self.labels = tensors["labels"].to(self.device) if "labels" in tensors else None
        self._check_head()
        if self.index < len(self.plan):
            self.progress.note(
                f"resuming in phase {self.plan[self.index].name!r}, step {self.step}"
            )
        tensors = {k: v for k, v in tensors.items() if k != "labels" and not k.startswith("head.")}
        return {"tensors": tensors, **about} if self.step else None

    def _check_rows(self, tensors: dict[str, torch.Tensor], where: str) -> None:
        """Labels and what a head knows of each row are there for all rows."""
        n, labels = self.rows.n, tensors.get("labels")
        if labels is not None:
            check_fit({"labels": labels}, {"labels": torch.zeros(n, dtype=torch.long)}, where)
            if n and labels.min() < 0:
                raise StateError(f"{where}: a label is {int(labels.min())}, below 0")
        for full, tensor in tensors.items():
            if full.startswith(("head.rows.", "head.whole.")) and tensor.shape[:1] != (n,):
                name, found = full.split(".", 2)[2], tuple(tensor.shape[:1])
                raise StateError(f"{where}: {name} has {found} rows, the data have {n}")

    def _check_head(self) -> None:
        """The head fits the network."""
        if self.head is None:
            return
        n = self.rows.n
        self.network.eval()
        with torch.no_grad():  # raises if the head has other sizes than the network
            self.assign(self.network.encode(self.feed(torch.arange(min(n, 2)))), self.head)

    def _meet(self, position: list[int]) -> None:
        """All processes stand at the same checkpoint before any of them writes the next one."""
        places = all_gather(self.world, torch.tensor(position))
        if bool((places != places[0]).any()):
            raise StateError(
                f"processes found different checkpoints (phase, epoch, step: {places.tolist()}); "
                "checkpoint_dir has to be a folder that all of them see"
            )

    def _restore(self, resume: dict) -> None:
        """Mid-phase: the optimisers' moments and the running averages."""
        self.limit, where = resume["limit"], self._where
        for name, (_, _, optimizer) in self._optims.items():
            load_optimizer(optimizer, _under(f"optim.{name}", resume["tensors"]), where)
        averages = _under("average", resume["tensors"])
        check_fit(averages, {str(i): t for i, t in enumerate(self._average)}, where)
        for i, total in enumerate(self._average):
            total.copy_(averages[str(i)])
        counted = {k: v for k, v in resume["tensors"].items() if k == "averaged"}
        check_fit(counted, {"averaged": torch.tensor(0)}, where)
        self._averaged = int(counted["averaged"])


def _place(plan: list[Phase | Call], i: int) -> list:
    """Name of a phase, and how many of that name came before; the end has none."""
    name = plan[i].name if i < len(plan) else ""
    return [name, sum(p.name == name for p in plan[:i])]


def _by_row(name: str) -> bool:
    """Whether each process holds a part of a tensor, that of its own rows."""
    return name == "labels" or name.startswith("head.rows.")


def _with_whole(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors under their names of today: what stands beside a graph was once called `rows`."""
    if "head.rows.graph" not in tensors:
        return tensors
    return {k.replace("head.rows.", "head.whole."): v for k, v in tensors.items()}


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k[len(prefix) + 1 :]: v for k, v in tensors.items() if k.startswith(prefix + ".")}
