"""What the range of the values tells: how to keep them, and in which unit they are."""

from __future__ import annotations

import numpy as np

from .options import warn

_FEW_STEPS = 1e-4  # of the size: float32 has fewer than 2,000 steps over such a range
COARSE = 2**20  # numbers beyond this have steps of an eighth and more in float32


def narrow(low, high):  # (d,), (d,) -> (d,) bool
    """Columns that float32 would round away: far from zero, and close together (Unix seconds)."""
    size = np.maximum(np.abs(low), np.abs(high))
    return (high > low) & (high - low < _FEW_STEPS * size)


def largest(X) -> float:
    """Largest absolute value of about a thousand rows, evenly spread."""
    some = X[:: len(X) // 1000 + 1]
    return max(float(some.max()), -float(some.min()))


def warn_other_unit(X, fitted: float) -> None:
    """Bytes for a model of fractions, or fractions for a model of bytes, are seldom meant."""
    top = largest(X)
    if top > 100 * fitted or 0 < 100 * top < fitted:
        warn(
            f"new rows reach {top:.4g}, the fitted ones {fitted:.4g}; if one are bytes 0..255 and "
            "the other fractions 0..1, bring them to the same unit"
        )
