"""Arrays, memory maps, sparse matrices and tensors, in memory or as .npy and .npz files."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse

from .counts import apply_counts
from .dataset import Dataset
from .errors import DataError, listed
from .limits import check_unpacked
from .options import Options
from .pixels import fit_images
from .ranges import largest
from .recipe import Recipe

MAPPED_ABOVE = 256 << 20  # .npy files above this size stay on disk
_CHECK_BYTES = 32 << 20
_DATA_NAMES = ("data", "X", "x", "images", "features")
_LABEL_NAMES = ("target", "y", "labels")
# what numpy raises over a file that is none of its own
_BROKEN = (ValueError, EOFError, TypeError, OverflowError, MemoryError, SyntaxError)
_BROKEN += (tokenize.TokenError, RecursionError, AttributeError)


def from_array(
    X, ask: Options, name: str = "array", source: str = "array", labels=None, raw: bool = True
) -> Dataset:
    """Check an array and wrap it; nothing is copied unless its type must change.

    `raw` says that the values are in the units of the source, so that what the recipe did to
    them (`divide`, gene selection) is still to be done.
    """
    X = _as_rows(X, name, ask)
    if X.ndim == 2:
        ask.only(f"rows of {X.shape[1]} numbers", "label_column", "embeddings", "names")
    recipe = ask.recipe
    if recipe is not None:
        X = _like(X, recipe, name, ask, raw)
        kind = recipe.kind if recipe.kind != "text" else "vector"
        columns = recipe.columns
    else:
        kind = "image" if X.ndim > 2 else "vector"
        columns = _named(X, ask, name)
        if ask.image_size and kind == "image":
            X = fit_images(X, ask.image_size, None, ask.notice, name)
        recipe = describe_rows(X, kind, name, source, embeddings=ask.embeddings, columns=columns)
    if not isinstance(X, np.memmap):  # an estimator reads the whole map anyway, and checks then
        check_finite(X, name)
    codes, label_names = encode_labels(labels, name)
    return Dataset(
        X, range(X.shape[0]), kind, name, columns, None, codes, label_names, recipe=recipe
    )


def _named(X, ask: Options, name: str) -> list[str] | None:
    """Return the names that were given for the columns."""
    if ask.names is None:
        return None
    if X.ndim > 2 or len(ask.names) != X.shape[1]:
        raise DataError(
            f"{name} has rows of shape {tuple(X.shape[1:])}, but names= holds {len(ask.names)} "
            "names; give one for each column"
        )
    return list(ask.names)


def describe_rows(X, kind: str, name: str, source: str, **more) -> Recipe:
    """Return the recipe that any source of these rows shares."""
    shape = [int(side) for side in X.shape[1:]]
    if kind == "image" and X.dtype.kind == "f":
        more["top"] = largest(X)
    return Recipe(kind=kind, name=name, source=source, shape=shape, dtype=X.dtype.name, **more)


def from_tensor(X) -> np.ndarray:
    """Return the numbers of a torch tensor; numpy has no bfloat16."""
    X = X.detach().cpu()
    return (X.float() if str(X.dtype) == "torch.bfloat16" else X).numpy()


def _as_rows(X, name: str, ask: Options):
    """Return (n, d) or (n, h, w[, c]) of a numeric type, or raise."""
    if type(X).__module__.split(".")[0] == "torch":
        X = from_tensor(X)
    if sparse.issparse(X):
        check_sparse(X, name)
        X = X if X.format == "csr" else X.tocsr()
    elif not isinstance(X, np.ndarray):
        try:
            X = np.asarray(X)
        except ValueError:
            raise DataError(
                f"{name}: rows have different shapes; every row must have the same"
            ) from None
    if X.dtype.kind not in "fiub":
        raise DataError(
            f"{name} holds values of type {X.dtype}; only numbers can be clustered. "
            "Convert them to float32 or integers"
        )
    if X.ndim == 1:
        raise DataError(
            f"{name} has one dimension, shape {X.shape}; rows are needed: "
            "reshape(-1, 1) for one feature, reshape(1, -1) for one row"
        )
    if not 2 <= X.ndim <= 4:
        raise DataError(
            f"{name} has {X.ndim} dimensions, shape {X.shape}; give (rows, features), "
            "(rows, height, width) or (rows, height, width, channels)"
        )
    if 0 in X.shape:
        raise DataError(f"{name} is empty: its shape is {X.shape}")
    if X.ndim == 4:
        X = channels_last(X, name, ask.notice)
        if X.shape[3] > 4:
            raise DataError(
                f"{name} has shape {X.shape}; images need 1 to 4 channels in the last place"
            )
        X = X[..., 0] if X.shape[3] == 1 else X
    if X.dtype.kind == "b" or (X.dtype == np.float16 and not isinstance(X, np.memmap)):
        X = X.astype(np.float32)
    return X


def check_sparse(X, name: str) -> None:
    """Refuse a sparse matrix whose indices point outside: compiled code would follow them."""
    if X.format not in ("csr", "csc", "bsr"):
        return  # the others are checked when they are made
    try:
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"{name} is a damaged sparse matrix ({error}); make it again") from None


def channels_last(X, name: str, notice):  # (n, c, h, w) or (n, h, w, c) -> (n, h, w, c)
    """Move channels from where torch has them; more than four are taken for a side."""
    if X.shape[1] > 4 or X.shape[3] <= 4:
        return X
    X = np.moveaxis(X, 1, 3)
    notice(f"{name}: channels moved to the last place, shape is now {X.shape}")
    return X


def _like(X, recipe: Recipe, name: str, ask: Options, raw: bool):
    """Bring new rows to the shape and type of the rows that the recipe describes."""
    want = tuple(recipe.shape)
    if recipe.counts and raw:
        return apply_counts(X, recipe, name)
    if recipe.kind == "image" and X.ndim > 2:
        X = fit_images(X, (want[0], want[1]), 3 if len(want) == 3 else 1, ask.notice, name)
    if tuple(X.shape[1:]) != want:
        raise DataError(
            f"{name} has rows of shape {tuple(X.shape[1:])}, the model was fitted on {want}; "
            "give rows of that shape"
        )
    if recipe.divide and raw:
        return np.asarray(X, np.float32) / np.float32(recipe.divide)
    return match_type(X, recipe, name)


def match_type(X, recipe: Recipe, name: str):
    """Pixels were fitted as bytes (0..255), as fractions (0..1) or as floats 0..255: keep to it."""
    if recipe.kind == "image" and X.dtype == np.uint8 and recipe.dtype.startswith("float"):
        fractions = recipe.top is None or recipe.top <= 1
        return X.astype(np.float32) / np.float32(255 if fractions else 1)
    if recipe.kind == "image" and recipe.dtype == "uint8" and X.dtype != np.uint8:
        raise DataError(
            f"{name} holds pixels of type {X.dtype}, the model was fitted on bytes 0..255; "
            "give them as uint8"
        )
    return X


def check_finite(X, name: str, before: int = 0) -> None:
    """Raise when a value is not finite, naming the first; `before` rows stand above those of X."""
    if X.dtype.kind != "f":
        return
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if len(bad):
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            _not_finite(name, len(bad), row, f"column {X.indices[bad[0]]}")
        return
    rows = max(1, _CHECK_BYTES // max(1, X.nbytes // len(X)))
    count, first = 0, None
    for start in range(0, len(X), rows):
        block = X[start : start + rows]
        good = np.isfinite(block)
        if not good.all():
            count += int(good.size - np.count_nonzero(good))
            if first is None:
                spot = np.argwhere(~good)[0]
                where = "column " if X.ndim == 2 else "pixel "
                first = before + start + int(spot[0]), where + ", ".join(str(i) for i in spot[1:])
    if first:
        _not_finite(name, count, *first)


def _not_finite(name: str, count: int, row: int, where: str):
    raise DataError(
        f"{name}: {count} values are missing or infinite, the first in row {row}, {where} "
        "(counted from 0). Fill them (for example with the column's mean) or leave those rows out"
    )


def encode_labels(values, name: str) -> tuple[np.ndarray | None, list[str] | None]:
    """Return class numbers 0..k-1 and the classes' names in sorted order."""
    if values is None:
        return None, None
    values = np.asarray(values)
    if values.ndim != 1:
        raise DataError(f"{name}: labels have shape {values.shape}; give one label per row")
    classes, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), [str(label) for label in classes]


def read_npy(path: Path, ask: Options) -> Dataset:
    """Read .npy; a large file is mapped, not loaded."""
    ask.only("a .npy file", "image_size", "embeddings", "names")
    size = path.stat().st_size
    mode = "r" if size > MAPPED_ABOVE else None
    try:
        with open(path, "rb") as file:
            _check_header(file, size)
        X = np.load(path, mmap_mode=mode, allow_pickle=False)
    except _BROKEN as error:
        raise DataError(f"{path} is not a readable .npy file of numbers: {error}") from None
    return from_array(X, ask, path.stem, "npy")


def _check_header(file, size: int) -> None:
    """Refuse a .npy stream of `size` bytes whose header promises more: room would be made first."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        return  # numpy says what it thinks of it
    shape, _, dtype = read[version](file)
    if any(side < 0 for side in shape):  # numpy before 2 reads such a file
        raise ValueError(f"its header says {shape}, a size below 0")
    need = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and need > size:
        raise ValueError(f"its header says {shape} of {dtype}, {need:,} bytes, it has {size:,}")


def read_npz(path: Path, ask: Options) -> Dataset:
    """Read .npz: arrays `data` and `target`, or the only array, or a saved sparse matrix."""
    ask.only("a .npz file", "label_column", "image_size", "embeddings", "names")
    try:
        with zipfile.ZipFile(path) as packed:
            members = packed.infolist()
            check_unpacked(path, path.stat().st_size, sum(m.file_size for m in members))
            for member in (m for m in members if m.filename.endswith(".npy")):
                with packed.open(member) as file:
                    _check_header(file, member.file_size)
        with np.load(path, allow_pickle=False) as file:
            if {"format", "shape"} <= set(file.files):  # as scipy.sparse.save_npz writes it
                # a pointer for each row, a number for each column of a centre: room is made first
                room = 8 * sum(int(side) for side in file["shape"].flat)
                check_unpacked(path, path.stat().st_size, room)
                return from_array(sparse.load_npz(path), ask, path.stem, "npz")
            data, target = _pick(file.files, path, ask.label_column)
            X, labels = file[data], None if target is None else file[target]
    except (*_BROKEN, zipfile.BadZipFile, zlib.error, LookupError, RuntimeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a readable .npz file of numbers: {error}") from None
    return from_array(X, ask, path.stem, "npz", labels)


def _pick(files: list[str], path: Path, label_column: str | None) -> tuple[str, str | None]:
    """Return the names of the data array and of the label array."""
    target = label_column or next((n for n in _LABEL_NAMES if n in files), None)
    if label_column and label_column not in files:
        raise DataError(f"{path} has no array '{label_column}'; it has {listed(files)}")
    data = next((n for n in _DATA_NAMES if n in files), None)
    rest = [n for n in files if n != target]
    if data is None and len(rest) == 1:
        data = rest[0]
    if not rest:
        raise DataError(
            f"{path} holds only '{target}', which is read as known classes; add the rows as "
            "'data', or name the array so if it holds them"
        )
    if data is None:
        raise DataError(
            f"{path} holds {len(files)} arrays ({listed(files)}); name the rows 'data' "
            "(and known classes 'target'), or store one array"
        )
    return data, target
