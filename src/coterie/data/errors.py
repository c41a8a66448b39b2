"""The one error that reading data raises, and the suggestions that go with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """The data cannot be used as they are; the message says where and what to do."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest of `choices`, or an empty string."""
    by_lower = {str(choice).lower(): str(choice) for choice in choices}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[close[0]]}'?" if close else ""


def listed(names: Iterable[object], most: int = 12) -> str:
    """Return ``a, b, c, ... (40 in all)``: a list that never floods the screen."""
    shown = [str(name) for name in names]
    if len(shown) <= most:
        return ", ".join(shown)
    return ", ".join(shown[:most]) + f", ... ({len(shown)} in all)"
