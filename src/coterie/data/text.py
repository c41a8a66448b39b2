"""Documents: .txt and .jsonl files, and the tf-idf rows made of them."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import check_finite, describe_rows, encode_labels
from .dataset import Dataset
from .errors import DataError, did_you_mean, listed
from .options import Options
from .recipe import Recipe

USUAL_WORDS = 2000  # as in the papers' tables
COMMON, RARE, MANY_TEXTS = 0.5, 3, 100  # a wider choice leaves out what nearly all or few texts say
SETTINGS = {
    "max_features": USUAL_WORDS,
    "sublinear_tf": True,
    "stop_words": "english",
    "lowercase": True,
    "norm": "l2",
    "token_pattern": r"(?u)\b\w\w+\b",
}


def from_texts(
    texts: list[str],
    ask: Options,
    name: str = "text",
    source: str = "text",
    ids=None,
    labels=None,
    tfidf_as: dict | None = None,
) -> Dataset:
    """Return sparse tf-idf rows of unit length: the most frequent words, sublinear.

    `tfidf_as` changes some of SETTINGS.
    """
    odd = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
    if odd is not None:
        raise DataError(f"{name}: document {odd} is {type(texts[odd]).__name__}, not a string")
    recipe = ask.recipe
    if recipe is None:
        recipe, counts = fit_tfidf(texts, name, source, ask.words or USUAL_WORDS, tfidf_as)
        recipe.id_column, recipe.label_column = ask.id_column, ask.label_column
        recipe.text_column = ask.text_column
    elif recipe.kind != "text":
        raise DataError(
            f"{name} is text, the model was fitted on {recipe.kind} rows; give those, or fit a "
            "model on texts"
        )
    else:
        counts = count_words(texts, recipe)
    X = tfidf(counts, recipe)
    silent = int(np.count_nonzero(np.diff(X.indptr) == 0))
    if silent and recipe.vocabulary:
        ask.notice(
            f"{name}: {silent} of {len(texts)} documents have none of the "
            f"{len(recipe.vocabulary)} words; their rows are zero"
        )
    codes, label_names = encode_labels(labels, name)
    ids = range(len(texts)) if ids is None else ids
    return Dataset(X, ids, "text", name, None, texts, codes, label_names, recipe=recipe)


def fit_tfidf(
    texts: list[str], name: str, source: str, most: int = USUAL_WORDS, changes: dict | None = None
) -> tuple[Recipe, Any]:
    """Choose the words and weigh them; return the recipe and the counts (n, words).

    More words than usual: those in over half of the texts, and in one or two, are left out.
    """
    settings: dict[str, Any] = SETTINGS | {"max_features": most} | (changes or {})
    chosen: dict[str, Any] = {key: settings[key] for key in ("max_features", "stop_words")}
    if most > USUAL_WORDS and len(texts) >= MANY_TEXTS:
        chosen |= {"max_df": COMMON, "min_df": RARE}
    try:
        counter = _counter(settings, **chosen)
        counts = counter.fit_transform(texts)
    except ValueError as error:
        if "max_df" in chosen:  # all texts say nearly the same
            return fit_tfidf(texts, name, source, USUAL_WORDS, changes)
        raise DataError(f"{name}: no words found in {len(texts)} documents ({error})") from None
    counts = sparse.csr_matrix(counts)
    words = [str(word) for word in counter.get_feature_names_out()]
    seen = np.bincount(counts.indices, minlength=len(words))  # documents with the word
    idf = np.log((1 + len(texts)) / (1 + seen)) + 1
    recipe = Recipe(
        kind="text",
        name=name,
        source=source,
        shape=[len(words)],
        tfidf=settings,
        vocabulary=words,
        arrays={"idf": idf.astype(np.float32)},
    )
    return recipe, counts


def count_words(texts: list[str], recipe: Recipe):
    """Return how often each of the recipe's words stands in each document, CSR (n, words)."""
    if not recipe.vocabulary:  # an encoder reads the texts themselves
        return sparse.csr_matrix((len(texts), 0), dtype=np.float32)
    return _counter(recipe.tfidf, vocabulary=recipe.vocabulary).transform(texts)


def _counter(settings: dict, **more):
    from sklearn.feature_extraction.text import CountVectorizer

    kept = {key: settings[key] for key in ("lowercase", "token_pattern")}
    return CountVectorizer(dtype=np.float32, **kept, **more)


def tfidf(counts, recipe: Recipe):
    """Return float32 CSR rows of unit length; one path for fitted and for new documents."""
    from sklearn.preprocessing import normalize

    rows = counts.tocsr()
    if not recipe.vocabulary:
        return rows
    rows.sort_indices()  # the order of the sum decides its last bit
    if recipe.tfidf["sublinear_tf"]:
        rows.data = np.log(rows.data) + np.float32(1)
    rows.data = rows.data * recipe.arrays["idf"][rows.indices]
    return normalize(rows, norm=recipe.tfidf["norm"], copy=False)


def read_txt(path: Path, ask: Options) -> Dataset:
    """Read one document a line; empty lines are left out, ids are line positions from 0."""
    ask.only("a .txt file")
    lines = [line.rstrip("\r\n") for _, line in _lines(path)]
    kept = [i for i, line in enumerate(lines) if line.strip()]
    if not kept:
        raise DataError(f"{path} is empty")
    ids = None
    if len(kept) < len(lines):
        ids = [str(i) for i in kept]
        ask.notice(f"{path.name}: {len(lines) - len(kept)} empty lines were left out")
    return from_texts([lines[i] for i in kept], ask, _stem(path), "txt", ids)


def read_text_folder(folder: Path, ask: Options) -> Dataset:
    """Read every .txt file below a folder as one document; ids are relative paths.

    ``label_column="folder"`` takes the first subfolder as the known class.
    """
    ask.only("a folder of texts", "label_column")
    if ask.label_column not in (None, "folder"):
        raise DataError(
            f"label_column='{ask.label_column}' names no classes of texts; "
            'label_column="folder" takes the subfolders'
        )
    paths = sorted(p for p in folder.rglob("*.txt") if not _hidden(p.relative_to(folder)))
    if not paths:
        raise DataError(f"{folder} holds no .txt files that are not hidden")
    texts = ["".join(line for _, line in _lines(path)) for path in paths]
    ids = [path.relative_to(folder).as_posix() for path in paths]
    labels = None
    if ask.label_column == "folder":
        labels = [name.split("/")[0] if "/" in name else "" for name in ids]
    return from_texts(texts, ask, folder.name, "texts", ids, labels)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def read_jsonl(path: Path, ask: Options) -> Dataset:
    """Read one JSON object a line: key "text" (or `text_column`), "id" when all have it.

    With `embeddings` the key "embedding" holds the rows and "text" is kept beside them.
    """
    ask.only("a .jsonl file", "id_column", "label_column", "text_column", "embeddings")
    records = _records(path)
    text_key, id_key = ask.text_column or "text", ask.id_column
    if id_key is None and all("id" in record for record in records):
        id_key = "id"
    elif id_key is not None and ask.recipe is not None and id_key not in records[0]:
        id_key = None  # remembered from the fitted file, not asked for
    ids = None if id_key is None else [str(v) for v in _values(records, id_key, path)]
    labels = None
    if ask.label_column is not None:
        labels = [str(v) for v in _values(records, ask.label_column, path)]
    if not ask.embeddings:
        texts = _values(records, text_key, path)
        odd = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
        if odd is not None:
            kind = type(texts[odd]).__name__
            raise DataError(f"{path}, object {odd + 1}: '{text_key}' is {kind}, not a string")
        return from_texts(texts, ask, _stem(path), "jsonl", ids, labels)
    return _embedded(records, text_key, path, ask, ids, labels)


def _embedded(records, text_key: str, path: Path, ask: Options, ids, labels) -> Dataset:
    name = _stem(path)
    try:
        X = np.array(_values(records, "embedding", path), dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        X = None
    if X is None or X.ndim != 2:
        raise DataError(f"{path}: each 'embedding' must be a list of numbers of one length")
    check_finite(X, name)
    recipe = ask.recipe
    if recipe is None:
        recipe = describe_rows(X, "vector", name, "jsonl", embeddings=True)
        recipe.id_column, recipe.label_column = ask.id_column, ask.label_column
        recipe.text_column = ask.text_column
    if list(X.shape[1:]) != list(recipe.shape):
        raise DataError(
            f"{name}: embeddings have {X.shape[1]} numbers, the model was fitted on "
            f"{recipe.shape[0]}; take them from the same encoder"
        )
    texts = [str(record.get(text_key, "")) for record in records]
    codes, label_names = encode_labels(labels, name)
    ids = range(len(X)) if ids is None else ids
    return Dataset(X, ids, "vector", name, None, texts, codes, label_names, recipe=recipe)


def _lines(path: Path):
    from .csvfile import damaged_gzip, not_utf8, open_text

    try:
        with open_text(path) as file:
            # newlines alone end a line: str.splitlines would also break at form feeds
            yield from enumerate(file, start=1)
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(path, error)) from None
    except (EOFError, zlib.error) as error:
        raise DataError(damaged_gzip(path, error)) from None


def _records(path: Path) -> list[dict]:
    records = []
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: a JSON object is needed, like {{'text': ...}}")
        records.append(record)
    if not records:
        raise DataError(f"{path} is empty")
    return records


def _values(records: list[dict], key: str, path: Path) -> list:
    for number, record in enumerate(records, start=1):
        if key not in record:
            raise DataError(
                f"{path}, object {number} has no key '{key}'.{did_you_mean(key, record)} "
                f"It has: {listed(record)}"
            )
    return [record[key] for record in records]


def _stem(path: Path) -> str:
    return re.sub(r"(\.\w+)?(\.gz)?$", "", path.name) or path.name
