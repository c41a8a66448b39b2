"""Single cells: .h5ad files, and the folders that 10x Genomics' tools write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import check_finite, describe_rows, encode_labels
from .dataset import Dataset
from .errors import DataError, did_you_mean, listed
from .limits import check_unpacked
from .options import Options


def read_h5ad(path: Path, ask: Options) -> Dataset:
    """Read the matrix of an AnnData file, or with `use_rep` one of its representations."""
    ask.only("an .h5ad file", "label_column", "use_rep")
    return from_anndata(open_h5ad(path), ask, path.stem)


def is_cells(source: Any) -> bool:
    """Tell an AnnData without importing its library."""
    return type(source).__module__.split(".")[0] == "anndata" and hasattr(source, "obsm")


def from_anndata(adata: Any, ask: Options, name: str) -> Dataset:
    """The same of an AnnData in memory."""
    rep = ask.use_rep or (ask.recipe.use_rep if ask.recipe is not None else None)
    labels = None
    if ask.label_column is not None:
        if ask.label_column not in adata.obs:
            raise DataError(
                f"{name} has no obs column '{ask.label_column}'."
                f"{did_you_mean(ask.label_column, adata.obs.columns)} "
                f"It has: {listed(map(str, adata.obs.columns))}"
            )
        labels = [str(value) for value in adata.obs[ask.label_column]]
    if rep is not None:
        if rep not in adata.obsm:
            raise DataError(f"{name} has no obsm '{rep}'; it has: {listed(adata.obsm) or 'none'}")
        X, columns = np.asarray(adata.obsm[rep]), None
    elif adata.X is None:
        raise DataError(f"{name} has no matrix X; name a representation: use_rep=")
    else:
        X, columns = adata.X, [str(gene) for gene in adata.var_names]
    ids = [str(cell) for cell in adata.obs_names]
    return _cells(X, ids, columns, labels, name, "h5ad", rep, ask)


def open_h5ad(path: Path) -> Any:
    """The AnnData of a file."""
    try:
        import anndata
    except ImportError:
        raise DataError("reading .h5ad needs anndata: pip install 'coterie[cells]'") from None
    try:
        _check_room(path)
        return anndata.read_h5ad(path)
    except DataError:
        raise
    except Exception as error:  # h5py and anndata raise what they like
        raise DataError(f"cannot read {path} as AnnData: {error}") from None


def _check_room(path: Path) -> None:
    """Refuse a file whose arrays are far larger than it: what was not written counts as zeros."""
    import h5py

    sizes = []

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            sizes.append(int(item.size or 0) * item.dtype.itemsize)

    with h5py.File(path, "r") as file:
        file.visititems(add)
    check_unpacked(path, path.stat().st_size, sum(sizes))


def is_10x(folder: Path) -> bool:
    return any((folder / f"matrix.mtx{end}").is_file() for end in ("", ".gz"))


def read_10x(folder: Path, ask: Options) -> Dataset:
    """Read matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), packed or not."""
    from scipy.io import mmread

    ask.only("a 10x folder")
    path = _either(folder, "matrix.mtx")
    try:
        X = sparse.csr_matrix(mmread(str(path)).T)  # stored as genes by cells
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"cannot read {path} as a Matrix Market file: {error}") from None
    ids = [line.split("\t")[0] for line in _lines(_either(folder, "barcodes.tsv"))]
    lines = [line.split("\t") for line in _lines(_either(folder, "features.tsv", "genes.tsv"))]
    names = [parts[min(1, len(parts) - 1)] for parts in lines]
    twice = (
        {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()
    )
    columns = [f"{n} ({p[0]})" if n in twice else n for n, p in zip(names, lines, strict=True)]
    for what, found, want in (("barcodes", ids, X.shape[0]), ("genes", columns, X.shape[1])):
        if len(found) != want:
            raise DataError(f"{folder}: {len(found)} {what} for {want} in {path.name}")
    return _cells(X, ids, columns, None, folder.name, "10x", None, ask)


def _cells(X, ids, columns, labels, name, source, rep, ask: Options) -> Dataset:
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise DataError(f"{name} holds values of type {X.dtype}; only numbers can be clustered")
    X = X.astype(np.float32) if X.dtype != np.float32 else X
    recipe = ask.recipe
    if recipe is not None:
        X, columns = _like(X, columns, recipe, name), recipe.columns
    check_finite(X, name)
    if recipe is None:
        values = np.asarray(X.data if sparse.issparse(X) else X)
        counted = rep is None and bool((values >= 0).all() and (values == np.rint(values)).all())
        kind = "counts" if counted else "vector"
        recipe = describe_rows(X, kind, name, source, columns=columns, use_rep=rep)
        recipe.label_column = ask.label_column
    codes, label_names = encode_labels(labels, name)
    return Dataset(X, ids, recipe.kind, name, columns, None, codes, label_names, recipe=recipe)


def _like(X, columns, recipe, name: str):
    """The genes of the fit in their order; the same width where there are no names."""
    if recipe.columns and columns and recipe.columns != columns:
        place = {column: i for i, column in enumerate(columns)}
        absent = [column for column in recipe.columns if column not in place]
        if absent:
            raise DataError(
                f"{name} lacks {len(absent)} of the {len(recipe.columns)} genes that the model was "
                f"fitted on: {listed(absent)}"
            )
        X = X[:, [place[column] for column in recipe.columns]]
    if list(X.shape[1:]) != list(recipe.shape):
        raise DataError(
            f"{name} has rows of {X.shape[1]} numbers, the model was fitted on {recipe.shape[0]}"
        )
    return X


def _either(folder: Path, *names: str) -> Path:
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataError(f"{folder} has no {' or '.join(names)} (packed as .gz or not)")


def _lines(path: Path) -> list[str]:
    from .csvfile import open_text

    with open_text(path) as file:
        return [line.rstrip("\r\n") for line in file]
