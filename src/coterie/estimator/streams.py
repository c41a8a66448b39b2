"""Whose random numbers a fit may draw."""

import dataclasses
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

from ..runtime.rng import derive, own_stream


def guarded_draws(model: Any) -> AbstractContextManager:
    """Inside, whatever a user's module draws comes from the fit's seed alone.

    coterie's own networks and methods draw from generators that they are given and need no guard,
    which costs time at every operation.
    """
    return own_stream(derive(model.seed_, "modules")) if _has_foreign_code(model) else nullcontext()


def _has_foreign_code(model: Any) -> bool:
    if not type(model).__module__.startswith("coterie."):
        return True
    values = [getattr(model, f.name) for f in dataclasses.fields(model) if f.name != "callback"]
    parts = [part for v in values for part in (v if isinstance(v, (tuple, list)) else (v,))]
    return any(isinstance(part, nn.Module) or callable(part) for part in parts)
