"""The thirteen stored data sets: where their files lie and how each is read.

Files have the layout of ``DATA/SET/FILE``. Values are handed back as they are stored; `named`
scales them.
"""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError

DIGITS = [str(digit) for digit in range(10)]
FASHION = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"]
FASHION += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
WHOLESALE = ["fresh", "milk", "grocery", "frozen", "detergents_paper", "delicassen"]


@dataclass
class Raw:
    """Values as stored: an array, a CSR matrix, or documents; and every label array there is."""

    values: Any
    labels: np.ndarray
    names: list[str]
    extra: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """One stored set: its files and its reader."""

    files: tuple[str, ...]
    read: Callable[[list[Path]], Raw]


def user_folder() -> Path:
    """Return the folder for data of this program in the user's home."""
    from platformdirs import user_data_dir

    return Path(user_data_dir("coterie", appauthor=False))


def folders(data_dir: str | Path | None = None) -> list[Path]:
    """Return the folders to search, in order: `data_dir`, $COTERIE_DATA, the user's data folder."""
    given = [data_dir, os.environ.get("COTERIE_DATA")]
    return [*(Path(folder).expanduser() for folder in given if folder), user_folder()]


def find(name: str, data_dir: str | Path | None = None) -> Path | None:
    """Return the folder that holds all files of the set, or None."""
    if data_dir is not None and not Path(data_dir).expanduser().is_dir():
        raise DataError(f"the data folder {data_dir} does not exist")
    return next((folder for folder in folders(data_dir) if holds(folder, name)), None)


def holds(folder: Path, name: str) -> bool:
    """Say whether all files of the set are in `folder`."""
    return all((folder / file).is_file() for file in STORED[name].files)


def read(name: str, folder: Path) -> Raw:
    """Read a stored set from `folder`."""
    paths = [folder / file for file in STORED[name].files]
    try:
        return STORED[name].read(paths)
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"data set {name} in {folder} is damaged: {error!r}") from None


def _idx(names: list[str]):
    def read_idx(paths: list[Path]) -> Raw:
        train, train_labels, test, test_labels = (gzip.decompress(p.read_bytes()) for p in paths)
        images = [np.frombuffer(part, np.uint8, offset=16) for part in (train, test)]
        labels = [np.frombuffer(part, np.uint8, offset=8) for part in (train_labels, test_labels)]
        X = np.concatenate(images).reshape(-1, 28, 28)
        return Raw(X, np.concatenate(labels).astype(np.int64), names)

    return read_idx


def _npz(names: list[str] | None = None):
    def read_npz(paths: list[Path]) -> Raw:
        with np.load(paths[0], allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        labels = arrays.pop("target").astype(np.int64)
        known = names or [str(label) for label in range(int(labels.max()) + 1)]
        return Raw(arrays.pop("data"), labels, known, arrays)

    return read_npz


def _jsonl(paths: list[Path]) -> Raw:
    with gzip.open(paths[0], "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    labels = np.array([record["label"] for record in records], np.int64)
    category = {record["label"]: record["category"] for record in records}
    texts = [record["text"] for record in records]
    return Raw(texts, labels, [category[label] for label in sorted(category)])


def _cells(paths: list[Path]) -> Raw:
    from scipy import sparse

    labels = np.load(paths[1], allow_pickle=False).astype(np.int64)
    return Raw(sparse.load_npz(paths[0]).tocsr(), labels, [f"type {i + 1}" for i in range(10)])


def _idx_files(name: str) -> tuple[str, ...]:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(f"{name}/{part}-ubyte.gz" for part in parts)


STORED = {
    "mnist": Stored(_idx_files("mnist"), _idx(DIGITS)),
    "fashion_mnist": Stored(_idx_files("fashion_mnist"), _idx(FASHION)),
    "usps": Stored(("usps/usps.npz",), _npz(DIGITS)),
    "pendigits": Stored(("pendigits/pendigits.npz",), _npz(DIGITS)),
    "20newsgroups": Stored(("20newsgroups/20news_bydate.jsonl.gz",), _jsonl),
    "reuters_r8": Stored(("reuters_r8/r8.jsonl.gz",), _jsonl),
    "cifar10_10k": Stored(("cifar10_10k/cifar10_10k.npz",), _npz(CIFAR)),
    "coil20": Stored(("coil20/coil20.npz",), _npz()),
    "orl_faces": Stored(("orl_faces/orl_faces.npz",), _npz()),
    "gtsrb_test": Stored(("gtsrb_test/gtsrb_test.npz",), _npz()),
    "worm_neuron_cells": Stored(
        ("worm_neuron_cells/counts.npz", "worm_neuron_cells/labels.npy"), _cells
    ),
    "optdigits": Stored(("optdigits/optdigits.npz",), _npz(DIGITS)),
    "wholesale": Stored(("wholesale/wholesale.npz",), _npz(["horeca", "retail"])),
}
