"""Who shares the full passes over the rows: set by a fit, asked for by the arithmetic below it.

A pass over all rows (k-means, column statistics, labels) reads this process's span and adds up
sums; outside of a fit, or with one process, the span is everything and sums stay as they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch


class Alone:
    """One process."""

    rank, size = 0, 1

    def span(self, n: int) -> tuple[int, int]:
        return 0, n

    def sum(self, t: torch.Tensor) -> torch.Tensor:
        return t

    def concat(self, part: torch.Tensor, n: int) -> torch.Tensor:
        return part


_WORLD: ContextVar[Any] = ContextVar("world", default=None)


@contextmanager
def sharing(world: Any) -> Iterator[None]:
    """Full passes inside are made together by the processes of `world`, all in the same order."""
    token = _WORLD.set(world)
    try:
        yield
    finally:
        _WORLD.reset(token)


def current() -> Any:
    """The processes that share a full pass here and now."""
    return _WORLD.get() or Alone()


def everyone(world: Any, t: torch.Tensor) -> torch.Tensor:  # (...) -> (size, ...)
    """The tensors of all processes, in the order of their ranks."""
    if world.size == 1:
        return t[None]
    whole = t.new_zeros((world.size, *t.shape))
    whole[world.rank] = t
    return world.sum(whole)
