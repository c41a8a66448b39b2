"""Random numbers as pure functions of (seed, keys): nothing global, nothing to restore."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode


def derive(seed: int, *keys: str | int) -> int:
    """A 63-bit seed that depends on every key, e.g. (seed, "train", epoch, "order")."""
    text = "/".join(str(part) for part in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def torch_rng(seed: int, *keys: str | int) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, *keys))


def numpy_rng(seed: int, *keys: str | int) -> np.random.Generator:
    return np.random.default_rng(derive(seed, *keys))


def resolve_seed(random_state: int | np.random.RandomState | None) -> int:
    """The seed of a fit: as given, drawn from a RandomState, or fresh entropy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise TypeError(
        f"random_state={random_state!r}: must be a whole number, a numpy generator or None"
    )


class _OwnStream(TorchDispatchMode):
    """Random operations of this thread draw from `generator` in place of torch's own stream."""

    lock = threading.Lock()

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.generator = generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator"):
            return func(*args, **kwargs)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            return func(*args, **kwargs, generator=self.generator)
        return self._lend(lambda: func(*args, **kwargs))

    def _lend(self, draw: Callable[[], Any]) -> Any:
        """For operations that take no generator, such as randn_like: torch's stream is ours for
        the time of one draw, and then again what it was."""
        with self.lock:
            before = torch.get_rng_state()
            torch.set_rng_state(self.generator.get_state())
            try:
                return draw()
            finally:
                self.generator.set_state(torch.get_rng_state())
                torch.set_rng_state(before)


_STREAM: ContextVar[torch.Generator | None] = ContextVar("stream", default=None)


@contextmanager
def own_stream(seed: int) -> Iterator[None]:
    """Modules inside that draw from torch's stream (dropout) have one of their own, this thread's.

    The process's random state stays as it is, and no other thread can disturb the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    token = _STREAM.set(generator)
    try:
        with _OwnStream(generator):
            yield
    finally:
        _STREAM.reset(token)


def has_own_stream() -> bool:
    """Whether this code runs inside an `own_stream`."""
    return _STREAM.get() is not None


def reseed(seed: int) -> None:
    """Start the stream of the innermost `own_stream` anew; outside of one do nothing."""
    if (generator := _STREAM.get()) is not None:
        generator.manual_seed(seed)
