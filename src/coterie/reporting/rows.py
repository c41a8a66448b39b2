"""The rows that a Python user has, as the data set that a page is made of."""

from pathlib import Path

import numpy as np

from coterie.data import Dataset, load
from coterie.data.cells import is_cells
from coterie.data.frames import is_frame
from coterie.encoders.images import as_images, to_batch
from coterie.estimator.raw import IN_MEMORY, further_rows
from coterie.estimator.validate import check_rows

from .row_pictures import PICTURE_SIDE


def as_dataset(model, X) -> Dataset:
    """Rows as the model takes them; a frame gives the names of rows and columns."""
    if isinstance(X, Dataset):
        return X
    recipe = getattr(model, "recipe_", None)
    if hasattr(model, "encoding_") and model.encoding_.takes != "text":
        return _encoded(model, X)
    listed = isinstance(X, (list, tuple)) and not _numbers(X[0])
    read = is_cells(X) or (is_frame(X) and getattr(recipe, "source", None) != IN_MEMORY)
    if recipe is not None and (listed or read):
        return load(X, recipe=recipe)  # which keeps texts, names and pictures
    rows = check_rows(model, *further_rows(model, X))
    return _named(X, rows, "image" if rows.ndim > 2 else "vector")


def _encoded(model, X) -> Dataset:
    """Rows to look at beside those that an encoder takes."""
    if model.encoding_.takes != "image":
        rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        return _named(X, rows, "image" if rows.ndim > 2 else "vector", unread=rows)
    if isinstance(X, (list, tuple)):
        X = [Path(item).expanduser() if isinstance(item, str) else item for item in X]
    images = as_images(X)
    if isinstance(images, np.ndarray):
        return _named(X, images, "image", unread=images)
    # of many sizes: shown in one, taken as they are
    settings, unread = model.encoding_.settings, np.empty(len(images), object)
    unread[:] = images
    high, wide = (min(side, PICTURE_SIDE) for side in settings["size"])
    small = [to_batch([image], (high, wide), settings["unit"]).numpy() for image in images]
    shown = np.moveaxis((255 * np.concatenate(small) + 0.5).astype(np.uint8), 1, 3)
    return _named(X, shown, "image", unread=unread)


def _named(X, rows, kind, unread=None) -> Dataset:
    """Rows with the names that a frame or a list of files has for them."""
    columns = [str(name) for name in X.columns] if is_frame(X) else None
    ids = getattr(X, "index", None) if is_frame(X) else None
    if isinstance(X, list) and all(isinstance(item, Path) for item in X):
        ids = [item.name for item in X]
    ids = range(rows.shape[0]) if ids is None else [str(name) for name in ids]
    kind = "table" if kind == "vector" and columns is not None else kind
    return Dataset(rows, ids, kind, "data", columns, unread=unread)


def _numbers(row) -> bool:
    return isinstance(row, (list, tuple)) or hasattr(row, "ndim")
