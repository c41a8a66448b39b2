"""Named data sets: built-in, stored, derived and generated, each scaled as in the papers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import from_array
from ..counts import apply_counts, fit_counts
from ..dataset import Dataset
from ..errors import DataError, did_you_mean, listed
from ..options import Options
from ..pixels import resize
from ..text import from_texts
from . import objects, stored, toys
from .download import SOURCES
from .stored import DIGITS, Raw
from .variants import ARTIFACTS, VARIANTS, with_artifact


@dataclass(frozen=True)
class Named:
    """One line of the catalogue.

    `base` is the stored set it is made of (None: built in or generated), `shape` that of a row
    after reading, `divide` the number that raw values are divided by, `columns` a table's names,
    `tfidf` what differs from `text.SETTINGS`.
    """

    name: str
    rows: int
    shape: tuple[int, ...]
    classes: int
    kind: str
    about: str
    base: str | None = None
    divide: float | None = None
    columns: tuple[str, ...] | None = None
    tfidf: dict | None = None  # how words are weighed, where that is not as usual


def _stored(name, rows, shape, classes, kind, about, **more) -> Named:
    return Named(name, rows, shape, classes, kind, about, base=name, **more)


_PEN = tuple(f"{axis}{point}" for point in range(1, 9) for axis in "xy")
_BYTES = "bytes 0..255"  # scale="auto" of the estimators divides them by 255
_TFIDF = "2,000 words, sublinear tf-idf, rows of unit length"
# as the papers describe them: the most frequent words of all, stop words among them
_NEWS = [
    (
        "20newsgroups_cnet",
        "20newsgroups, stop words kept (C-Net's features)",
        {"stop_words": None},
    ),
    (
        "20newsgroups_dkm",
        "20newsgroups, stop words kept, plain tf-idf (features of DKM and DEKM)",
        {"stop_words": None, "sublinear_tf": False},
    ),
]

_CATALOGUE = [
    Named("digits", 1797, (8, 8), 10, "image", "scikit-learn's digits, divided by 16", None, 16.0),
    _stored("mnist", 70000, (28, 28), 10, "image", f"handwritten digits, {_BYTES}"),
    _stored("fashion_mnist", 70000, (28, 28), 10, "image", f"clothes, {_BYTES}"),
    _stored("usps", 9298, (16, 16), 10, "image", "handwritten digits, 0..1"),
    _stored(
        "pendigits",
        10992,
        (16,),
        10,
        "table",
        "pen strokes, divided by 100",
        divide=100.0,
        columns=_PEN,
    ),
    _stored("20newsgroups", 18846, (2000,), 20, "text", f"news with headers; {_TFIDF}"),
    _stored("reuters_r8", 7674, (2000,), 8, "text", f"Reuters-21578 R8; {_TFIDF}"),
    _stored("cifar10_10k", 10000, (32, 32, 3), 10, "image", f"CIFAR-10's test set, {_BYTES}"),
    _stored("coil20", 1440, (28, 28), 20, "image", f"turned objects resized to 28x28, {_BYTES}"),
    _stored(
        "orl_faces", 400, (112, 92), 40, "image", f"faces (image_size=32: as in CueGAN), {_BYTES}"
    ),
    _stored("gtsrb_test", 12630, (32, 32, 3), 43, "image", f"traffic signs, {_BYTES}"),
    _stored(
        "worm_neuron_cells",
        4186,
        (2000,),
        10,
        "counts",
        "2,000 most variable genes, log2(x + 1) / max",
    ),
    _stored(
        "optdigits", 5620, (8, 8), 10, "image", "handwritten digits, divided by 16", divide=16.0
    ),
    _stored(
        "wholesale",
        440,
        (6,),
        2,
        "table",
        "yearly spending, unscaled",
        columns=tuple(stored.WHOLESALE),
    ),
    *(
        Named(name, 18846, (2000,), 20, "text", about, "20newsgroups", tfidf=tfidf)
        for name, about, tfidf in _NEWS
    ),
    Named("mnist_test", 10000, (28, 28), 10, "image", "the last 10,000 rows of mnist", "mnist"),
    *(
        Named(name, sum(variant.sizes), (16, 16), 10, "image", variant.about, "usps")
        for name, variant in VARIANTS.items()
    ),
    Named("artifact-digits", 1797, (8, 8), 3, "image", "digits whose first pixel tells the class"),
    Named(
        "artifact-mnist",
        70000,
        (28, 28),
        3,
        "image",
        "mnist (0..1) whose first pixel tells the class",
        "mnist",
    ),
    Named("blobs8", 8000, (2,), 8, "vector", "eight Gaussians on a circle"),
    Named("cnet_toy", 2000, (2,), 5, "vector", "five Gaussians in the plane, standardised"),
    Named("objects", 10000, (64, 64), 3, "image", f"spheres, cubes, cylinders; drawn, {_BYTES}"),
]
CATALOGUE = {entry.name: entry for entry in _CATALOGUE}
# measured, not made: what methods are ranked on
REAL = [e.name for e in _CATALOGUE if e.name == "digits" or e.base == e.name]
ALIASES = {
    "20news": "20newsgroups", "newsgroups": "20newsgroups", "fashion": "fashion_mnist",
    "fmnist": "fashion_mnist", "r8": "reuters_r8", "reuters": "reuters_r8",
    "cifar10": "cifar10_10k", "coil": "coil20", "orl": "orl_faces", "gtsrb": "gtsrb_test",
    "worm": "worm_neuron_cells", "pendigit": "pendigits", "cnet-toy": "cnet_toy",
    "artifact_mnist": "artifact-mnist", "artifact_digits": "artifact-digits",
}  # fmt: skip
_SYNTH = re.compile(r"synth[-_]?(\d{1,4})$")
_PLAIN = {name.lower().replace("-", "_"): name for name in CATALOGUE}


def names() -> list[str]:
    """Return every name that can be asked for, `synth-25` standing for its family."""
    return [*CATALOGUE, "synth-25", *ALIASES]


def canonical(name: str) -> str | None:
    """Return the catalogue's name for a name, an alias or another spelling; None if unknown."""
    key = str(name).strip().lower()
    if match := _SYNTH.match(key):
        return f"synth-{int(match[1])}"
    return ALIASES.get(key) or _PLAIN.get(key.replace("-", "_"))


def _entry(name: str) -> Named:
    key = canonical(name)
    if key is None:
        raise DataError(f"there is no data set '{name}'.{did_you_mean(name, names())}")
    if key in CATALOGUE:
        return CATALOGUE[key]
    axes = int(key.removeprefix("synth-"))
    about = f"four clusters in the plane and {axes} unimodal axes (any number: synth-K)"
    return Named(key, 12000, (2 + axes,), 4, "vector", about)


def stored_base(name: str) -> str | None:
    """Return the stored set that a data set is made of; None if it is built in."""
    return _entry(name).base


def describe(name: str, data_dir: str | Path | None = None) -> dict:
    """Return name, rows, shape, classes, kind, where it is found, and a line about it."""
    entry = _entry(name)
    if entry.base is None:
        where = "built in"
    elif folder := stored.find(entry.base, data_dir):
        where = str(folder / entry.base)
    else:
        where = "to fetch" if entry.base in SOURCES else "not found"
    return {
        "name": entry.name,
        "rows": entry.rows,
        "shape": entry.shape,
        "classes": entry.classes,
        "kind": entry.kind,
        "where": where,
        "about": entry.about,
    }


def available(data_dir: str | Path | None = None) -> list[dict]:
    """Return `describe` of every named data set."""
    return [describe(name, data_dir) for name in [*CATALOGUE, "synth-25"]]


def read(name: str, ask: Options, data_dir: str | Path | None = None) -> Dataset:
    """Read a named data set."""
    entry = _entry(name)
    sized = ("image_size",) if entry.kind == "image" else ()
    ask.only(f"the data set {entry.name}", "label_column", *sized)
    raw = _raw(entry, data_dir)
    if entry.kind == "text":
        data = from_texts(raw.values, ask, entry.name, "named", tfidf_as=entry.tfidf)
        return _named(data, raw, entry, ask)
    X = raw.values
    extra: dict[str, Any] = {}
    if entry.kind == "counts":
        if ask.recipe is not None and ask.recipe.counts:
            X = apply_counts(X, ask.recipe, entry.name)
        else:
            X, settings, arrays = fit_counts(X)
            extra = {"counts": settings, "arrays": arrays}
    if entry.divide:
        X, extra["divide"] = X.astype(np.float32) / np.float32(entry.divide), entry.divide
    if entry.kind == "table":
        X = X.astype(np.float32, copy=False)
    size = list(entry.shape if ask.recipe is None else ask.recipe.shape)
    if entry.name == "coil20" and ask.image_size is None and size == [28, 28]:
        X = resize(X, (28, 28))  # stored at 128x128; another size is made from that
    data = from_array(X, ask, entry.name, "named", raw=False)
    return _named(data, raw, entry, ask, **extra)


def _named(data: Dataset, raw: Raw, entry: Named, ask: Options, **extra) -> Dataset:
    """Add what the catalogue knows: labels, kind, columns, and the recipe's scaling."""
    data.labels, data.label_names = raw.labels, raw.names
    if ask.label_column is not None:
        if ask.label_column not in raw.extra:
            there = listed(raw.extra) or "none"
            raise DataError(
                f"{entry.name} has no other labels '{ask.label_column}'; there are: {there}"
            )
        data.labels = raw.extra[ask.label_column].astype(np.int64)
        data.label_names = [str(i) for i in range(int(data.labels.max()) + 1)]
    if ask.recipe is None:
        data.kind = entry.kind
        data.columns = list(entry.columns) if entry.columns else None
        fields: dict[str, Any] = {"kind": data.kind, "columns": data.columns} | extra
        data.recipe = replace(data.recipe, label_column=None, **fields)
    return data


def _raw(entry: Named, data_dir) -> Raw:
    """Return the values of an entry before scaling."""
    if entry.name.startswith("synth-"):
        return Raw(*toys.synth(entry.shape[0] - 2), DIGITS[:4])
    if entry.name == "blobs8":
        return Raw(*toys.blobs8(), DIGITS[:8])
    if entry.name == "cnet_toy":
        return Raw(*toys.cnet_toy(), DIGITS[:5])
    if entry.name == "objects":
        return Raw(*objects.objects(), list(objects.SHAPES))
    raw = _digits() if entry.base is None else _base(entry.base, data_dir)
    if entry.name == "mnist_test":
        return Raw(raw.values[-10000:], raw.labels[-10000:], raw.names)
    if entry.name in VARIANTS:
        rows = VARIANTS[entry.name].rows(raw.labels)
        return Raw(raw.values[rows], raw.labels[rows], raw.names)
    if entry.name.startswith("artifact-"):
        top = 16 if entry.name == "artifact-digits" else 255
        X, labels = with_artifact(raw.values.astype(np.float32) / np.float32(top))
        return Raw(X, labels, [str(value) for value in ARTIFACTS])
    return raw


def _base(name: str, data_dir) -> Raw:
    folder = stored.find(name, data_dir)
    if folder is None:
        searched = listed(stored.folders(data_dir))
        files = " and ".join(stored.STORED[name].files)
        first = f"fetch it with `coterie datasets --fetch {name}`, or " if name in SOURCES else ""
        raise DataError(
            f"data set {name} was not found in {searched}; {first}name the folder that holds "
            f"{files} with data_dir= or COTERIE_DATA"
        )
    raw = stored.read(name, folder)
    rows = raw.values.shape[0] if hasattr(raw.values, "shape") else len(raw.values)
    if not rows == len(raw.labels) == CATALOGUE[name].rows:
        raise DataError(
            f"data set {name} has {rows} rows and {len(raw.labels)} labels; "
            f"{CATALOGUE[name].rows} were expected"
        )
    return raw


def _digits() -> Raw:
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return Raw(bunch.images, bunch.target.astype(np.int64), DIGITS)
