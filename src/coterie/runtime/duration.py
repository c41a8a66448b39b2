"""Lengths of time as people write them."""

import re


def seconds(value: float | str | None) -> float | None:
    """Seconds from a number, ``"90"``, ``"90s"``, ``"5m"`` or ``"1h"``; None stays None."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)", value.strip())
    if not match or float(match[1]) <= 0:
        raise ValueError(f"{value!r} is not a length of time; write 90, 90s, 5m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
