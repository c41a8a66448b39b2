"""Half precision: products of matrices in bfloat16, everything else in single.

Weights, their gradients and moments, sums, codes, distances and losses stay float32. Only the
layers of a network that are called inside of `half_products` are affected, and only large ones
gain from it: what is converted must cost less than what is multiplied.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

import torch

QUICK = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # questions to torch.cpu
_HALF: ContextVar[str | None] = ContextVar("half", default=None)  # kind of device


def quick_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 itself; others would imitate it, slowly."""
    asked = [getattr(torch.cpu, name, None) for name in QUICK]  # absent from some versions
    return any(ask() for ask in asked if ask is not None)


@contextmanager
def half_products(device: torch.device) -> Iterator[None]:
    """Layers marked by `in_half` multiply in bfloat16 inside."""
    token = _HALF.set(device.type)
    try:
        yield
    finally:
        _HALF.reset(token)


def in_half(layers: Callable) -> Callable:
    """Mark a function (network, tensor) -> tensor; its result is float32 in any case."""

    @wraps(layers)
    def run(network, x):
        kind = _HALF.get()
        if kind is None:
            return layers(network, x)
        with torch.autocast(kind, torch.bfloat16):
            return layers(network, x).float()

    return run
