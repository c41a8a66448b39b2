"""The rows that a Python user has, as the data set that a page is made of."""

from coterie.data import Dataset
from coterie.data.frames import is_frame


def as_dataset(model, X) -> Dataset:
    """Rows as the model takes them; a frame gives the names of rows and columns."""
    if isinstance(X, Dataset):
        return X
    rows = model._check(X, reset=False)
    columns = [str(name) for name in X.columns] if is_frame(X) else None
    index = getattr(X, "index", None) if is_frame(X) else None
    ids = range(rows.shape[0]) if index is None else [str(name) for name in index]
    kind = "image" if rows.ndim > 2 else "vector" if columns is None else "table"
    return Dataset(rows, ids, kind, "data", columns)
