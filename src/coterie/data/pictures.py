"""Images in memory: lists of Pillow's images, or of paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def as_pictures(X: Any, strings: bool = False) -> dict[str, Any] | None:
    """Return the images of a list by their ids; None when X is something else.

    The id of a file is its path, that of an image its place. `strings`: texts are paths too.
    """
    if not isinstance(X, (list, tuple)) or not X:
        return None
    kinds = (Path, str) if strings else (Path,)
    if not all(isinstance(item, kinds) or is_picture(item) for item in X):
        return None
    found: dict[str, Any] = {}
    for row, item in enumerate(X):
        image = Path(item).expanduser() if isinstance(item, kinds) else item
        key = str(item) if isinstance(image, Path) else str(row)
        found[key if key not in found else f"{key} (row {row})"] = image
    return found


def is_picture(item: Any) -> bool:
    """Tell an image of Pillow without importing it."""
    return hasattr(item, "convert") and type(item).__module__.split(".")[0] == "PIL"
