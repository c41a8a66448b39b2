"""What a user gives -> the rows that a fit sees; predict goes the same way.

The way is a `Recipe`, kept as `recipe_`: that of a reader where data were read (a run on the
command line, `load_data`), else a description of what came in. An encoder comes after it.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.arrays import describe_rows
from ..data.cells import is_cells
from ..data.counts import apply_counts
from ..data.dataset import Dataset
from ..data.errors import DataError, count_of, listed
from ..data.frames import is_frame
from ..data.library_sets import is_torch_set, torch_rows
from ..data.options import warn
from ..data.pictures import as_pictures
from ..data.reading import load
from ..data.recipe import Recipe
from ..data.text import count_words, fit_tfidf, tfidf
from ..data.texts import as_texts
from ..encoders.base import EncoderError
from ..encoders.find import find
from .encoding import embed_again, embed_first
from .tuning import check_tuning
from .words_or_encoder import compared, installed, order, said, tries_both, what_is

IN_MEMORY = "memory"  # the source of rows that no reader has read


def first_rows(model: Any, X: Any) -> Any:
    """Rows for a fit; what was decided on the way is kept in `recipe_` and `encoding_`."""
    for name in ("recipe_", "encoding_", "feature_names_in_", "tried_", "_unembedded"):
        vars(model).pop(name, None)
    check_tuning(model)
    _refuse_names_and_streams(X)
    if is_cells(X) or (as_pictures(X) is not None and model.encoder is None):
        X = load(X)
    words = None
    if isinstance(X, Dataset):
        model.recipe_, words = X.recipe, X.X if X.recipe.vocabulary else None
        X = X.given_to(model)
    if is_torch_set(X):
        X = torch_rows(X)
    texts = as_texts(X)
    if tries_both(model.encoder):
        return _better(model, X, texts, words)
    if model.encoder is not None:
        encoder = find(model.encoder)
        # strings for an encoder of images are paths
        if texts is not None and encoder.takes != "image" and not hasattr(model, "recipe_"):
            model.recipe_ = Recipe(kind="text", source=IN_MEMORY, shape=[0])
        return embed_first(model, X, texts, encoder)
    return X if texts is None else _weigh(model, texts)


def _better(model: Any, X: Any, texts: list[str] | None, words: Any) -> Any:
    """Words or vectors, whichever has the clearer clusters; `words`: those of a reader."""
    if texts is None:
        raise EncoderError(
            f"encoder={model.encoder!r} chooses between the words of texts and an encoder, but X "
            f"is {what_is(X)}; give a list of strings, or name an encoder of such rows"
        )
    encoder, missing = installed(model.encoder)
    words = _weigh(model, texts) if words is None else words
    if encoder is None:
        model.tried_ = {}
        model._told = f"texts are described by their words alone; {missing}"
        return words
    vectors = embed_first(model, X, texts, encoder)
    model.tried_ = compared(words, vectors, model.n_clusters)
    model._told = said(model.tried_, encoder.reference)
    if order(model.tried_)[0] == "encoder":
        return vectors
    del model.encoding_
    return words


def _weigh(model: Any, texts: list[str]) -> Any:
    model.recipe_, counts = fit_tfidf(texts, "X", IN_MEMORY, model.words)
    rows = tfidf(counts, model.recipe_)
    silent = int(np.count_nonzero(np.diff(rows.indptr) == 0))
    if silent:
        warn(
            f"{silent} of {count_of(len(texts), 'text')} have none of the "
            f"{len(model.recipe_.vocabulary)} words; their rows are zero"
        )
    return rows


def remember(model: Any, rows: Any, given: Any) -> None:
    """Complete `recipe_` and `feature_names_in_` once the rows of a fit are numbers.

    `given`: what came in. Rows that an encoder made of others have no description.
    """
    recipe = getattr(model, "recipe_", None)
    if recipe is not None:
        take_names(model, recipe)
    elif not hasattr(model, "encoding_"):
        names = getattr(model, "feature_names_in_", None)
        kind = "image" if rows.ndim > 2 else "vector" if names is None else "table"
        columns = None if names is None else [str(name) for name in names]
        model.recipe_ = describe_rows(rows, kind, "X", IN_MEMORY, columns=columns)
    elif isinstance(given, np.ndarray) and given.ndim > 1 and given.dtype.kind in "fiub":
        model.recipe_ = describe_rows(
            given, "image" if given.ndim > 2 else "vector", "X", IN_MEMORY
        )


def take_names(model: Any, recipe: Recipe) -> None:
    """The columns that a reader has found are the names that scikit-learn knows."""
    if recipe.source != IN_MEMORY and recipe.columns and recipe.named:
        model.feature_names_in_ = np.asarray(recipe.columns, dtype=object)


def further_rows(model: Any, X: Any) -> tuple[Any, bool]:
    """Rows for predict, and whether they are known to have the columns of the fit."""
    recipe: Recipe | None = getattr(model, "recipe_", None)
    _refuse_names_and_streams(X, recipe)
    was_read = recipe is not None and recipe.source != IN_MEMORY
    if is_torch_set(X):
        X = torch_rows(X)
    X, read = _read_again(model, X, recipe) if recipe is not None else (X, False)
    if isinstance(X, Dataset):
        X = X.given_to(model)
    if hasattr(model, "encoding_"):
        return embed_again(model, X, as_texts(X)), True
    if read:
        return X, True
    texts = as_texts(X)
    if texts is not None and recipe is not None and recipe.vocabulary:
        return tfidf(count_words(texts, recipe), recipe), True
    if texts is not None:
        kind = "numbers" if recipe is None or recipe.kind == "vector" else f"{recipe.kind} rows"
        raise ValueError(
            f"X is {count_of(len(texts), 'text')}, but {type(model).__name__} was fitted on "
            f"{kind}; give rows such as the fit had, or fit on texts"
        )
    return X, was_read


def _read_again(model: Any, X: Any, recipe: Recipe) -> tuple[Any, bool]:
    """Rows as the recipe makes them, where X is something that a reader has to look at."""
    if isinstance(X, Dataset):
        return _same_columns(X, recipe), True
    pictures = as_pictures(X, strings=recipe.kind == "image")
    if (pictures is not None and recipe.shape) or is_cells(X):
        return load(X, recipe=recipe), True
    # frames that were fitted as they are stay scikit-learn's: it refuses columns in another order
    if is_frame(X) and recipe.source != IN_MEMORY:
        return load(X, recipe=recipe), True
    shape = tuple(getattr(X, "shape", ())[1:])
    if recipe.source == IN_MEMORY or not shape or hasattr(model, "encoding_"):
        return X, False
    if recipe.kind == "image" and _differs(X, shape, recipe):
        return load(X, recipe=recipe), True
    if recipe.counts and shape != tuple(recipe.shape):
        return apply_counts(sp.csr_matrix(X), recipe, "X"), True
    if recipe.divide and X.max() > 1:  # in the unit of the source; divided rows end at 1
        return load(X, recipe=recipe), True
    return X, False


def _differs(X: Any, shape: tuple[int, ...], recipe: Recipe) -> bool:
    return shape != tuple(recipe.shape) or (X.dtype == np.uint8) != (recipe.dtype == "uint8")


def _same_columns(data: Dataset, recipe: Recipe) -> Any:
    """Data that were read already, in the columns of the fit."""
    if data.recipe is recipe or _equal(data.recipe, recipe):
        return data
    if data.recipe.prepared != recipe.prepared:
        raise DataError(
            f"{data.name} was not prepared as the rows of the fit were (categories, dates, gaps); "
            "read it with load_data(source, recipe=model.recipe_)"
        )
    if data.texts is not None and recipe.kind == "text":  # another choice of words
        return load(data.texts, recipe=recipe)
    if data.kind == "image" and recipe.kind == "image":
        return load(data.X, recipe=recipe)
    known, there = recipe.columns, data.columns
    if not (known and there and recipe.named and data.recipe.named) or known == there:
        return data
    place = {column: i for i, column in enumerate(there)}
    absent = [column for column in known if column not in place]
    if absent:
        raise DataError(
            f"{data.name} lacks {len(absent)} of the {len(known)} columns that the model was "
            f"fitted on: {listed(absent)}. Add them under the same names"
        )
    return data.X[:, [place[column] for column in known]]


def _equal(one: Recipe, other: Recipe) -> bool:
    same = one.to_dict() == other.to_dict() and one.arrays.keys() == other.arrays.keys()
    return same and all(np.array_equal(a, other.arrays[name]) for name, a in one.arrays.items())


def _refuse_names_and_streams(X: Any, recipe: Recipe | None = None) -> None:
    """Tell what only leads to rows from rows."""
    if isinstance(X, (str, PurePath)):
        name = f"{str(X)!r:.60}"
        how = f"coterie.load_data({name})"
        if recipe is not None:
            how = f"coterie.load_data({name}, recipe=model.recipe_), or give a list, [{name}]"
        raise ValueError(f"X is one name, {name}, not rows; read it first: {how}")
    if type(X).__module__.startswith("torch.utils.data") and hasattr(X, "batch_size"):
        raise ValueError(
            "X is a DataLoader, which shuffles and drops rows as it likes; give the data set "
            "behind it, X.dataset, or an array (batch_size= says how many rows a step takes)"
        )
    if isinstance(X, Iterator):
        raise ValueError(
            "X is a stream of rows that can be read once only; collect it, list(X) or "
            "np.stack(list(X)), or write it to a .npy file, which is read from disk if it is large"
        )
