"""The one error that reading data raises, and the suggestions that go with it."""

from __future__ import annotations

from collections.abc import Iterable

from ..runtime.hints import closest


class DataError(ValueError):
    """The data cannot be used as they are; the message says where and what to do."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A sentence of its own, `` Did you mean 'x'?``, for the closest of `choices`, or nothing."""
    near = closest(name, choices)
    return f" Did you mean '{near}'?" if near else ""


def count_of(n: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{n} {noun}" + ("" if n == 1 else "s")


def listed(names: Iterable[object], most: int = 12) -> str:
    """Return ``a, b, c, ... (40 in all)``: a list that never floods the screen."""
    shown = [str(name) for name in names]
    if len(shown) <= most:
        return ", ".join(shown)
    return ", ".join(shown[:most]) + f", ... ({len(shown)} in all)"
