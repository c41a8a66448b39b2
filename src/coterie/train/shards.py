"""Per-row tensors of a head, of which each process keeps those of its own span of the rows.

The order of an epoch is random: a process trains on rows whose targets others hold. They are sent
ahead, for many steps in one message, and thrown away when an update has made new ones.
"""

from typing import TYPE_CHECKING, Any

import torch

from ..math.axes import Replaced
from ..runtime.processes import rows_at

if TYPE_CHECKING:
    from .engine import Engine

AHEAD_BYTES = 1 << 22  # of per-row tensors that are sent in one message


class Ahead:
    """Per-row tensors of the next batches."""

    def __init__(self, engine: "Engine"):
        self._engine = engine
        self.forget()

    def forget(self) -> None:
        """What was sent does not hold any more: an update, another epoch, another phase."""
        self._first, self._rows, self._tensors = 0, 0, {}
        self.head: Any = None  # for the batch that `turn_to` named
        self.cut = False  # whether its per-row tensors are those of the batch alone

    def turn_to(self, order: torch.Tensor, first: int, stop: int) -> None:
        """Make `head` that of the batch order[first:stop]: its per-row tensors are those of this
        process's part of the batch, unless one process holds them all."""
        self.head, world = self._engine.head, self._engine.world
        self.cut = world.size > 1 and self.head is not None and bool(self.head.kinds["rows"])
        if not self.cut:
            return
        if not self._first <= first < stop <= self._first + self._rows:
            self._send(order, first, stop)
        at = slice(first - self._first, stop - self._first)
        mine = {name: world.share(t[at]) for name, t in self._tensors.items()}
        self.head = Replaced(self.head, **mine)

    def _send(self, order: torch.Tensor, first: int, stop: int) -> None:
        engine = self._engine
        own = {name: getattr(engine.head, name) for name in engine.head.kinds["rows"]}
        width = sum(t[:1].nbytes for t in own.values())
        stop = min(len(order), max(stop, first + AHEAD_BYTES // max(width, 1)))
        index = order[first:stop].long().to(engine.device)
        self._first, self._rows = first, stop - first
        self._tensors = {
            name: rows_at(engine.world, t, index, engine.rows.n) for name, t in own.items()
        }
