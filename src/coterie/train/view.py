"""All rows at once: for updates within a phase, and for what is done between two phases."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..runtime.rng import numpy_rng

if TYPE_CHECKING:
    from .engine import Engine


class View:
    """All rows at once, for `update`: embeddings are computed in chunks, when first asked for."""

    def __init__(self, engine: "Engine"):
        self._engine = engine
        self.n = engine.rows.n
        self.epoch, self.step = engine.epoch, engine.step
        self.network: Any = engine.network
        self.done = engine.step / max(1, engine.limit)  # share of the phase; a budget may cut it

    @cached_property
    def latents(self) -> torch.Tensor:  # (part, d)
        """Embedding of this process's span of the rows; sums over all: `runtime.processes`."""
        return self._engine.encode_all()

    def rng(self, *keys: str | int) -> np.random.Generator:
        e = self._engine
        return numpy_rng(e.seed, e.phase.name, e.step, *keys)


class Context(View):
    """What a method may do between two phases: look at all rows, set the head, leave a note.

    Every process takes the leader's network and head when it is done.
    """

    @property
    def rows(self) -> Any:
        return self._engine.rows

    @property
    def seed(self) -> int:
        return self._engine.seed

    @property
    def world(self) -> Any:
        """The processes that fit together."""
        return self._engine.world

    @property
    def head(self) -> Any:
        return self._engine.head

    @head.setter
    def head(self, head: Any) -> None:
        self._engine.head = head.to(self.device)

    @property
    def device(self) -> torch.device:
        """Where network, head and embeddings are."""
        return self._engine.device

    @property
    def labels(self) -> Any:
        """Labels of this process's rows at the last update: the stop rule compares the next
        ones with them."""
        return self._engine.labels

    @labels.setter
    def labels(self, labels: Any) -> None:
        self._engine.labels = labels

    def keep_latents(self, latents: torch.Tensor) -> None:
        """The embedding, for whoever asks before the network moves again."""
        self._engine.latents = self.__dict__["latents"] = latents

    @torch.no_grad()
    def chunks(self) -> Iterator[torch.Tensor]:
        """The embedding of this process's share of the rows, chunk by chunk."""
        start, stop = self.world.span(self.n)
        step = min(4096, self.rows.chunk)
        for a in range(start, stop, step):
            yield self.network.encode(self.rows.slice(a, min(a + step, stop)))

    def note(self, text: str) -> None:
        """Something the user should know about the result (`notes_`)."""
        self._engine.notes.append(text)

    def tell(self, text: str) -> None:
        """Something to show while the fit runs."""
        self._engine.progress.note(text)

    @property
    def seconds(self) -> dict[str, float]:
        """What each phase has taken so far."""
        return self._engine.seconds

    def count_apart(self, name: str, seconds: float) -> None:
        """Give a part of this call's time a name of its own."""
        here = self._engine.phase.name  # which gets the whole of it in the end
        for key, value in ((name, seconds), (here, -seconds)):
            self.seconds[key] = self.seconds.get(key, 0.0) + value

    @property
    def history(self) -> list[dict]:
        return self._engine.history

    def begin_with(self, history: list[dict], seconds: float) -> None:
        """Take over a pre-training that an earlier fit has paid for."""
        self._engine.history, self._engine.seconds = history, {"pretrain": seconds}
        self._engine.cached_seconds = seconds
