"""Bringing images in arrays to one size and one number of channels."""

from __future__ import annotations

import numpy as np

from .errors import DataError


def fit_images(X, size: tuple[int, int], channels: int | None, notice, name: str):
    """Return images of `size` (height, width), grey (1) or colour (3); None keeps channels.

    X: (n, h, w) or (n, h, w, c) -> (n, *size) or (n, *size, c)
    """
    if channels == 1 and X.ndim == 4:
        X = to_grey(X)
        notice(f"{name}: colour images turned to grey")
    if channels == 3 and X.ndim == 3:
        X = np.repeat(X[..., None], 3, axis=3)
        notice(f"{name}: grey images repeated over three channels")
    if tuple(X.shape[1:3]) == tuple(size):
        return X
    notice(f"{name}: images of {X.shape[1]}x{X.shape[2]} resized to {size[0]}x{size[1]}")
    return resize(X, size)


def to_grey(X):  # (n, h, w, c) -> (n, h, w)
    """Return luma by the ITU-R 601 weights, as Pillow does; a fourth channel is ignored."""
    if X.shape[3] < 3:
        raise DataError(
            f"images with {X.shape[3]} channels cannot be turned to grey; give 1, 3 or 4"
        )
    weights = np.array([0.299, 0.587, 0.114], np.float32)
    grey = X[..., :3].astype(np.float32) @ weights
    return np.rint(grey).astype(np.uint8) if X.dtype == np.uint8 else grey


def resize(X, size: tuple[int, int]):
    """Resize by Pillow's antialiased bilinear filter; bytes stay bytes, others float32."""
    from PIL import Image

    height, width = size
    planes = X[..., None] if X.ndim == 3 else X
    kind = np.uint8 if X.dtype == np.uint8 else np.float32
    out = np.empty((len(X), height, width, planes.shape[3]), kind)
    for row, image in enumerate(planes):
        for channel in range(planes.shape[3]):
            plane = Image.fromarray(np.ascontiguousarray(image[..., channel], kind))
            out[row, ..., channel] = plane.resize((width, height), Image.Resampling.BILINEAR)
    return out[..., 0] if X.ndim == 3 else out
