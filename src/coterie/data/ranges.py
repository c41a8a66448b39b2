"""What the range of the values tells about how to keep them."""

from __future__ import annotations

import numpy as np

_FEW_STEPS = 1e-4  # of the size: float32 has fewer than 2,000 steps over such a range


def narrow(low, high):  # (d,), (d,) -> (d,) bool
    """Columns that float32 would round away: far from zero, and close together (Unix seconds)."""
    size = np.maximum(np.abs(low), np.abs(high))
    return (high > low) & (high - low < _FEW_STEPS * size)
