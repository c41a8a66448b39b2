"""Stored sets that can be fetched from where their makers publish them.

Every file is checked against its SHA-256 sum before anything is put in place.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coterie.storage.atomic import scratch_folder

from ..errors import DataError, listed
from . import stored

TIMEOUT = 30  # seconds without an answer
CHUNK = 2**18  # bytes

Tell = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all (None: unknown)


@dataclass(frozen=True)
class Source:
    """Where the files of a set are, as (name, SHA-256), and what turns them into the stored file.

    `convert` reads the downloaded files and writes the one stored file; None: they are stored as
    they come.
    """

    url: str
    files: tuple[tuple[str, str], ...]
    convert: Callable[[list[Path], Path], None] | None = None


def fetch(name: str, data_dir: str | Path | None = None, tell: Tell | None = None) -> Path:
    """Download a set into the data folder unless it is there, and return the set's folder.

    The data folder is `data_dir`, else $COTERIE_DATA, else the user's data folder. A download that
    fails or is interrupted leaves nothing behind.
    """
    folder = stored.folders(data_dir)[0]
    files = [folder / file for file in stored.STORED[name].files]
    if name not in SOURCES:
        raise DataError(
            f"data set {name} cannot be fetched (only {listed(SOURCES)}); put "
            f"{' and '.join(stored.STORED[name].files)} into {folder}"
        )
    if stored.holds(folder, name):
        return folder / name
    source = SOURCES[name]
    folder.mkdir(parents=True, exist_ok=True)
    # in the data folder: a rename within one file system is atomic
    with scratch_folder(name, folder) as place:
        got = [place / file for file, _ in source.files]
        for path, (_, digest) in zip(got, source.files):
            _download(source.url + path.name, digest, path, name, folder, tell)
        if source.convert is not None:
            made = place / f"made-{files[0].name}"
            source.convert(got, made)
            got = [made]
        for path, file in zip(got, files):
            file.parent.mkdir(exist_ok=True)
            os.replace(path, file)
    return folder / name


def _download(url: str, digest: str, path: Path, name: str, folder: Path, tell: Tell | None):
    """Write what is at `url` to `path`; an error unless its SHA-256 sum is `digest`."""
    done, found = 0, hashlib.sha256()
    try:
        with open(path, "wb") as file:
            for chunk, total in _chunks(url):
                file.write(chunk)
                found.update(chunk)
                done += len(chunk)
                if tell is not None:
                    tell(path.name, done, total)
    except _NoDownload as error:
        raise DataError(
            f"data set {name}: {url} could not be downloaded ({error}); try again with a network, "
            f"or put {' and '.join(stored.STORED[name].files)} from elsewhere into {folder}"
        ) from None
    if found.hexdigest() != digest:
        raise DataError(
            f"data set {name}: {url} has SHA-256 {found.hexdigest()}, {digest} was expected; the "
            "file was changed at its source or on the way, and nothing of it was kept"
        )


class _NoDownload(Exception):
    """The network, not the disk, is in the way."""


def _chunks(url: str) -> Iterator[tuple[bytes, int | None]]:
    """The content of `url` piece by piece, each with the announced size of the whole."""
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers={"User-Agent": "coterie"}), timeout=TIMEOUT) as answer:
            announced = answer.headers.get("Content-Length")
            total, done = int(announced) if announced else None, 0
            while chunk := answer.read(CHUNK):
                done += len(chunk)
                yield chunk, total
    except (OSError, HTTPException) as error:
        raise _NoDownload(str(getattr(error, "reason", None) or error)) from None
    if total is not None and done < total:
        raise _NoDownload(f"the connection broke after {done} of {total} bytes")


def _digits(shape: tuple[int, ...]):
    """UCI's digits: comma-separated whole numbers, the class last."""

    def convert(paths: list[Path], out: Path):
        rows = np.concatenate([np.loadtxt(path, np.int64, delimiter=",") for path in paths])
        X = rows[:, :-1].astype(np.uint8).reshape(-1, *shape)
        np.savez_compressed(out, data=X, target=rows[:, -1])

    return convert


def _usps(paths: list[Path], out: Path):
    """LIBSVM's lines `class 1:v 2:v ...`: classes from 1, values -1..1 that become 0..1."""
    from io import BytesIO

    from scipy.sparse import csr_matrix
    from sklearn.datasets import load_svmlight_file

    parts = [
        load_svmlight_file(BytesIO(bz2.decompress(path.read_bytes())), n_features=256)
        for path in paths
    ]
    X = np.concatenate([csr_matrix(part[0]).toarray() for part in parts])
    labels = np.concatenate([part[1] for part in parts]).astype(np.int64)
    X = ((X + 1) / 2).astype(np.float32).reshape(-1, 16, 16)
    np.savez_compressed(out, data=X, target=labels - 1)


def _news(paths: list[Path], out: Path):
    """Members SPLIT/CATEGORY/NUMBER of a tar file: training documents first, then by category."""
    import tarfile

    documents = {}
    with tarfile.open(paths[0]) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)) is not None:
                split, category, number = member.name.split("/")[-3:]
                key = (not split.endswith("train"), category, int(number))
                documents[key] = file.read().decode("latin-1")
    categories = sorted({category for _, category, _ in documents})
    with gzip.open(out, "wt", encoding="utf-8") as lines:
        for key in sorted(documents):
            record = {"label": categories.index(key[1]), "category": key[1]}
            lines.write(json.dumps({**record, "text": documents[key]}) + "\n")


def _idx(url: str, *digests: str) -> Source:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return Source(url, tuple((f"{part}-ubyte.gz", digest) for part, digest in zip(parts, digests)))


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
SOURCES = {
    "mnist": _idx(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "fashion_mnist": _idx(
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    "usps": Source(
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/",
        (
            ("usps.bz2", "3771e9dd6ba685185f89867b6e249233dd74652389f263963b3b741e994b034f"),
            ("usps.t.bz2", "a9c0164e797d60142a50604917f0baa604f326e9a689698763793fa5d12ffc4e"),
        ),
        _usps,
    ),
    "pendigits": Source(
        f"{_UCI}pendigits/",
        (
            ("pendigits.tra", "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3"),
            ("pendigits.tes", "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015"),
        ),
        _digits((16,)),
    ),
    "optdigits": Source(
        f"{_UCI}optdigits/",
        (
            ("optdigits.tra", "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"),
            ("optdigits.tes", "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"),
        ),
        _digits((8, 8)),
    ),
    "20newsgroups": Source(
        "https://ndownloader.figshare.com/files/",
        (("5975967", "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610"),),
        _news,
    ),
}
