"""All rows through an encoder: in batches, with progress, each content once, resumable."""

import contextlib
import fcntl
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..data.options import warn
from ..data.unpacking import cache_folder
from ..runtime.progress import Progress
from .base import Encoder, EncoderError
from .store import KEY, Store

VERSION = 1  # of how rows are prepared; another one finds none of the old vectors
KEPT_SECONDS = 10.0  # of work that a kill may cost
KEPT_ROWS = 8192  # in memory before they are written


def embed(encoder: Encoder, rows: Any, settings: dict, verbose: int = 0) -> np.ndarray:
    """Vectors (n, d) of rows (a list or an array), float32, at unit length.

    Rows of equal content are embedded once, those of an earlier call are read from disk. What is
    in a batch depends on the rows alone, not on what is known, so that a call that was killed
    ends with the same bits when it is made again.
    """
    keys = row_keys(rows)
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    if encoder.takes == "text":  # texts of one length fill a batch without padding
        lengths = np.array([len(rows[i]) for i in first[order]])
        order = order[np.argsort(lengths, kind="stable")]
    batches = [order[i : i + encoder.batch_rows] for i in range(0, len(order), encoder.batch_rows)]
    store = _store(encoder, settings)
    with _alone(store, unique):
        known, vectors = (np.zeros(len(unique), bool), None) if not store else store.find(unique)
        todo = [batch for batch in batches if not known[batch].all()]
        with Progress(verbose if todo else 0) as progress:
            vectors = _run(encoder, rows, settings, first, unique, todo, vectors, store, progress)
    return unit_length(vectors[inverse])


def _run(encoder, rows, settings, first, unique, todo, vectors, store, progress) -> np.ndarray:
    progress.phase(f"embed ({encoder.reference})", total_steps=len(todo))
    pending: list[np.ndarray] = []
    begin = time.monotonic()
    for step, batch in enumerate(todo, start=1):
        part = _checked(encoder, encoder.embed(_take(rows, first[batch]), settings), len(batch))
        if vectors is None:
            vectors = np.zeros((len(unique), part.shape[1]), np.float32)
        if part.shape[1] != vectors.shape[1]:
            raise EncoderError(
                f"encoder {encoder.reference} gave vectors of {part.shape[1]} numbers after ones "
                f"of {vectors.shape[1]}; every row needs as many"
            )
        vectors[batch] = part
        pending.append(batch)
        late = time.monotonic() - begin > KEPT_SECONDS
        if store and (late or step == len(todo) or sum(map(len, pending)) >= KEPT_ROWS):
            done = np.concatenate(pending)
            store = _keep(store, unique[done], vectors[done])
            pending, begin = [], time.monotonic()
        progress.step(step)
    return vectors


def _checked(encoder: Encoder, part: Any, count: int) -> np.ndarray:
    part = np.asarray(part.detach().cpu() if hasattr(part, "detach") else part)
    if part.ndim != 2 or len(part) != count or part.dtype.kind not in "fiu":
        raise EncoderError(
            f"encoder {encoder.reference} made {part.dtype} of shape {part.shape} out of {count} "
            f"rows; it must give one vector a row, ({count}, d)"
        )
    part = part.astype(np.float32)
    if not np.isfinite(part).all():
        raise EncoderError(f"encoder {encoder.reference} gave NaN or infinity for some rows")
    return part


def _take(rows: Any, index: np.ndarray) -> Any:
    return rows[index] if isinstance(rows, np.ndarray) else [rows[i] for i in index]


def row_keys(rows: Any) -> np.ndarray:  # (n,) of 16 bytes
    """A digest of each row's content, type and shape."""
    keys = np.empty(len(rows), f"S{KEY}")
    for i, row in enumerate(rows):
        if isinstance(row, str):
            about, content = "text", row.encode("utf-8", "surrogatepass")
        elif isinstance(row, np.ndarray) and row.dtype.kind in "fiub":
            about, content = f"{row.dtype.str} {row.shape}", np.ascontiguousarray(row).data
        else:  # objects whose content only their owner knows: each is itself
            about, content = "row", str(i).encode()
        keys[i] = hashlib.blake2b(content, digest_size=KEY, person=_short(about)).digest()
    return keys


def _short(about: str) -> bytes:
    encoded = about.encode()
    return encoded if len(encoded) <= 16 else hashlib.blake2b(encoded, digest_size=16).digest()


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Each row over its norm; zero stays zero."""
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norm > 0, norm, 1)


def _store(encoder: Encoder, settings: dict) -> Store | None:
    if not encoder.kept:
        return None
    about = json.dumps([VERSION, encoder.digest, settings], sort_keys=True)
    name = hashlib.blake2b(about.encode(), digest_size=12).hexdigest()
    return Store(cache_folder() / "embeddings" / name)


def _keep(store: Store, keys: np.ndarray, vectors: np.ndarray) -> Store | None:
    try:
        store.add(keys, vectors)
    except OSError as error:
        warn(
            f"vectors cannot be kept in {store.folder} ({error.strerror or error}) and would have "
            "to be computed again; set COTERIE_CACHE to a folder that can be written"
        )
        return None
    return store


@contextlib.contextmanager
def _alone(store: Store | None, keys: np.ndarray):
    """The processes of one fit embed the same rows: one works, the others wait and read."""
    if store is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a folder that cannot be written is told by _keep
            store.folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(open(_lock_path(store, keys), "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _lock_path(store: Store, keys: np.ndarray) -> Path:
    return store.folder / f".lock-{hashlib.blake2b(keys.tobytes(), digest_size=1).hexdigest()}"
