"""What the range of the values tells: how to keep them, and in which unit they are."""

from __future__ import annotations

import numpy as np

from .options import warn

_FEW_STEPS = 1e-4  # of the size: float32 has fewer than 2,000 steps over such a range
_FEW_ROWS = 20
_FAR_OFF = 1e4  # ranges of the other rows that a value lies away from them
COARSE = 2**20  # numbers beyond this have steps of an eighth and more in float32


def narrow(low, high):  # (d,), (d,) -> (d,) bool
    """Columns that float32 would round away: far from zero, and close together (Unix seconds)."""
    size = np.maximum(np.abs(low), np.abs(high))
    return (high > low) & (high - low < _FEW_STEPS * size)


def largest(X) -> float:
    """Largest absolute value of about a thousand rows, evenly spread."""
    some = X[:: len(X) // 1000 + 1]
    return max(float(some.max()), -float(some.min()))


def warn_lone_value(X, mean, variance, low, high) -> None:  # (n, d), then 4 of (d,)
    """Tell of a value beside which all others look alike, as a slip of the pen leaves it.

    One value far off lies sqrt(n - 1) deviations from the mean, the most that is possible.
    """
    n = X.shape[0]
    reach = np.maximum(high - mean, mean - low)
    lone = reach > 0.99 * np.sqrt((n - 1) * variance)
    for j in np.flatnonzero(lone & (variance > 0)) if n >= _FEW_ROWS else ():
        column = np.asarray(X[:, j], np.float64)
        row = int(np.argmax(np.abs(column - mean[j])))
        rest = np.delete(column, row)
        if np.ptp(rest) > 0 and reach[j] > _FAR_OFF * np.ptp(rest):
            warn(
                f"row {row} (counted from 0) holds {column[row]:.4g} in column {j}, all others "
                f"{rest.min():.4g} to {rest.max():.4g}: beside it they look alike; "
                "leave the row out or correct the value"
            )
            return


def warn_other_unit(X, fitted: float) -> None:
    """Bytes for a model of fractions, or fractions for a model of bytes, are seldom meant."""
    top = largest(X)
    if top > 100 * fitted or 0 < 100 * top < fitted:
        warn(
            f"new rows reach {top:.4g}, the fitted ones {fitted:.4g}; if one are bytes 0..255 and "
            "the other fractions 0..1, bring them to the same unit"
        )
