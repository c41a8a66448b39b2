"""Files: saved models and checkpoints as safetensors + JSON. No code ever runs from a file.

Every write is atomic: a temporary file beside the target, fsync, rename. A model's JSON is written
last and names the digest of its tensors, so a folder that is half written never loads.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors

from . import swap
from .atomic import TEMP, read_bytes, sweep, write_atomic
from .renamed import current_names
from .seals import digest, seal

FORMAT = 1
UNSEALED = "0" * 32  # where a file's digest stands while the digest is computed
MARK = b'"coterie.sealed":"{\\"digest\\": \\"'  # what precedes it in the header of the file
BROKEN = (SafetensorError, LookupError, ValueError, TypeError, AttributeError)
BROKEN += (struct.error, OverflowError, RuntimeError, MemoryError)


class StateError(ValueError):
    """A file of ours is damaged, foreign, from a newer version, or belongs to another run."""


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never a part."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)


def write_json(path: str | os.PathLike, value: Any) -> None:
    write_bytes(path, json.dumps(value, indent=1, allow_nan=True).encode())


def read_json(path: str | os.PathLike) -> Any:
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as err:
        raise StateError(f"{path} is damaged: not readable as JSON ({err})") from None


def pack(tensors: dict[str, torch.Tensor], about: dict) -> bytes:
    """Tensors and a JSON description in one safetensors file, which holds its own digest."""
    tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
    # tensors that share memory are refused by the format: store each on its own
    tensors = {
        k: v.clone() if v.untyped_storage().nbytes() != v.nbytes else v for k, v in tensors.items()
    }
    described = json.dumps({"digest": UNSEALED, **about})
    content = pack_tensors(tensors, metadata={"coterie.sealed": described})
    at = content.index(MARK) + len(MARK)
    return content[:at] + digest(content).encode() + content[at + len(UNSEALED) :]


def unpack(path: str | os.PathLike) -> tuple[dict[str, torch.Tensor], dict]:
    """What `pack` made of tensors and description; a file with one wrong bit is refused."""
    try:
        content = read_bytes(path)
    except ValueError as err:
        raise StateError(str(err)) from None
    return parse(content, path)


def parse(content: bytes, path: str | os.PathLike) -> tuple[dict[str, torch.Tensor], dict]:
    """The same from the bytes of the file `path`."""
    try:
        length = struct.unpack("<Q", content[:8])[0]
        header = content[8 : 8 + length]
        metadata = json.loads(header)["__metadata__"]
        if "coterie" in metadata:  # a file of the first version, which had no digest
            return parse_tensors(content), json.loads(metadata["coterie"])
        about = json.loads(metadata["coterie.sealed"])
        at, view = 8 + header.index(MARK) + len(MARK), memoryview(content)
        if digest(view[:at], UNSEALED.encode(), view[at + len(UNSEALED) :]) != about.pop("digest"):
            raise StateError(f"{path} is damaged: its digest does not match")
        return parse_tensors(content), about
    except StateError:
        raise
    except BROKEN as err:
        raise StateError(f"{path} is damaged or not a coterie file ({err})") from None


def check_fit(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], where: str) -> None:
    """Refuse tensors that differ from `wanted` in a name, a shape or a type.

    torch would convert some of them, and its fused optimisers read beyond the end of others.
    """
    differ = sorted(found.keys() ^ wanted.keys())
    if differ:
        have = "has" if differ[0] in found else "lacks"
        raise StateError(f"{where} {have} the tensor {differ[0]!r}: it does not fit this model")
    for name, tensor in found.items():
        other = wanted[name]
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            raise StateError(
                f"{where}: {name} is {tuple(tensor.shape)} {tensor.dtype}, but this model has "
                f"{tuple(other.shape)} {other.dtype}: it does not fit"
            )


def save_model(
    folder: str | os.PathLike,
    tensors: dict[str, torch.Tensor],
    about: dict,
    overwrite: bool = False,
) -> None:
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file; give a folder to save the model in")
    swap.complete(folder)
    sweep(folder)
    ours = (swap.NEW, "model.safetensors")  # of a save that was killed
    others = [p.name for p in folder.glob("*") if p.name not in ours and TEMP not in p.name]
    if "model.json" in others and "run.toml" in others:  # a run gets its model once, from the fit
        raise StateError(f"{folder} holds a finished run; give a new folder to save the model in")
    if "model.json" in others and not overwrite:
        raise StateError(f"{folder} holds a model already; give a new folder or overwrite=True")
    if others and not {"model.json", "run.toml"} & set(others):
        raise StateError(f"{folder} holds other files ({others[0]}, ...); give a new folder")
    content = pack(tensors, {"format": FORMAT})
    about = {"format": FORMAT, "digest": digest(content), **about}
    replaced = "model.json" in others
    target = swap.begin(folder) if replaced else folder
    try:
        write_bytes(target / "model.safetensors", content)
        write_json(target / "model.json", {**about, "seal": seal(about)})
        if replaced:
            swap.commit(target)
    except BaseException:
        if replaced and target.is_dir():
            swap.remove(target)
        raise


def load_model(folder: str | os.PathLike) -> tuple[dict[str, torch.Tensor], dict]:
    folder = Path(folder)
    swap.complete(folder)
    for name in ("model.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise StateError(f"{folder} holds no saved model: {name} is missing")
    about = read_json(folder / "model.json")
    if not isinstance(about, dict) or "method" not in about or "digest" not in about:
        raise StateError(f"{folder / 'model.json'} is not a coterie model")
    if about.get("format") != FORMAT:
        raise StateError(
            f"{folder} has format {about.get('format')}, but {FORMAT} is read here; "
            "fit again, or load it with the version of coterie that saved it"
        )
    if about.pop("seal", None) != seal(about):
        raise StateError(f"{folder / 'model.json'} is damaged: its digest does not match")
    path = folder / "model.safetensors"
    content = path.read_bytes()
    if digest(content) != about["digest"]:
        raise StateError(f"{path} is damaged: its digest does not match")
    return parse(content, path)[0], about


class Checkpoint:
    """The latest state of a run in one file; `key` tells whose run it is."""

    def __init__(self, folder: str | os.PathLike, key: dict):
        self.path = Path(folder) / "checkpoint.safetensors"
        self.key = key

    def save(self, tensors: dict[str, torch.Tensor], position: dict) -> None:
        write_bytes(self.path, pack(tensors, {"format": FORMAT, "key": self.key, **position}))

    def load(self) -> tuple[dict[str, torch.Tensor], dict] | None:
        sweep(self.path.parent)
        if not self.path.exists():
            return None
        try:
            tensors, about = unpack(self.path)
        except StateError as err:
            raise StateError(
                f"{err}; restore it from a copy, or delete it to begin again"
            ) from None
        theirs, ours = about.get("key"), json.loads(json.dumps(self.key))
        if not isinstance(theirs, dict):
            raise StateError(f"{self.path} is not a checkpoint: it does not say of which run")
        theirs = current_names(theirs.get("method"), theirs)
        differ = [k for k in ours if theirs.get(k) != ours[k]]
        if differ:
            k = differ[0]
            raise StateError(
                f"{self.path} belongs to another run ({k} was {theirs.get(k)!r}, now {ours[k]!r}); "
                "give another checkpoint_dir or delete that folder"
            )
        return tensors, about
