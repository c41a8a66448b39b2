"""The rows that a Python user has, as the data set that a page is made of."""

from coterie.data import Dataset, load
from coterie.data.frames import is_frame
from coterie.estimator.raw import IN_MEMORY, further_rows
from coterie.estimator.validate import check_rows


def as_dataset(model, X) -> Dataset:
    """Rows as the model takes them; a frame gives the names of rows and columns."""
    if isinstance(X, Dataset):
        return X
    recipe = getattr(model, "recipe_", None)
    listed = isinstance(X, (list, tuple)) and not _numbers(X[0])
    if recipe is not None and (listed or (is_frame(X) and recipe.source != IN_MEMORY)):
        return load(X, recipe=recipe)  # which keeps texts, names and pictures
    rows = check_rows(model, *further_rows(model, X))
    columns = [str(name) for name in X.columns] if is_frame(X) else None
    index = getattr(X, "index", None) if is_frame(X) else None
    ids = range(rows.shape[0]) if index is None else [str(name) for name in index]
    kind = "image" if rows.ndim > 2 else "vector" if columns is None else "table"
    return Dataset(rows, ids, kind, "data", columns)


def _numbers(row) -> bool:
    return isinstance(row, (list, tuple)) or hasattr(row, "ndim")
