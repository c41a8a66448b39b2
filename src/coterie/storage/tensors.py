"""Files: saved models and checkpoints as safetensors + JSON. No code ever runs from a file.

Every write is atomic: a temporary file beside the target, fsync, rename. A model's JSON is written
last and names the digest of its tensors, so a folder that is half written never loads.
"""

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors

from .atomic import write_atomic

FORMAT = 1


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
        return json.loads(Path(path).read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as err:
        raise StateError(f"{path} is damaged: not readable as JSON ({err})") from None


def pack(tensors: dict[str, torch.Tensor], about: dict) -> bytes:
    """Tensors and a JSON description in one safetensors file."""
    tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
    # tensors that share memory are refused by the format: store each on its own
    tensors = {
        k: v.clone() if v.untyped_storage().nbytes() != v.nbytes else v for k, v in tensors.items()
    }
    return pack_tensors(tensors, metadata={"coterie": json.dumps(about)})


def unpack(path: str | os.PathLike) -> tuple[dict[str, torch.Tensor], dict]:
    content = Path(path).read_bytes()
    try:
        tensors = parse_tensors(content)
        length = struct.unpack("<Q", content[:8])[0]
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["coterie"])
    except (SafetensorError, KeyError, ValueError, TypeError, struct.error, OverflowError) as err:
        raise StateError(f"{path} is damaged or not a coterie file ({err})") from None
    return tensors, about


def save_model(
    folder: str | os.PathLike,
    tensors: dict[str, torch.Tensor],
    about: dict,
    overwrite: bool = False,
) -> None:
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file; give a folder to save the model in")
    others = [p.name for p in folder.glob("*")] if folder.exists() else []
    if "model.json" in others and "run.toml" in others:  # a run gets its model once, from the fit
        raise StateError(f"{folder} holds a finished run; give a new folder to save the model in")
    if "model.json" in others and not overwrite:
        raise StateError(f"{folder} holds a model already; give a new folder or overwrite=True")
    if others and not {"model.json", "run.toml"} & set(others):
        raise StateError(f"{folder} holds other files ({others[0]}, ...); give a new folder")
    content = pack(tensors, {"format": FORMAT})
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    # the old description goes first: between the two writes the folder does not load
    (folder / "model.json").unlink(missing_ok=True)
    write_bytes(folder / "model.safetensors", content)
    about = {"format": FORMAT, "digest": digest, **about}
    write_json(folder / "model.json", {**about, "seal": _seal(about)})


def _seal(about: dict) -> str:
    """Digest of a description, so that a changed number in it does not go unseen."""
    text = json.dumps(about, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def load_model(folder: str | os.PathLike) -> tuple[dict[str, torch.Tensor], dict]:
    folder = Path(folder)
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
    seal = about.pop("seal", None)
    if seal != _seal(about):
        raise StateError(f"{folder / 'model.json'} is damaged: its digest does not match")
    content = (folder / "model.safetensors").read_bytes()
    if hashlib.blake2b(content, digest_size=16).hexdigest() != about["digest"]:
        raise StateError(f"{folder / 'model.safetensors'} is damaged: its digest does not match")
    return unpack(folder / "model.safetensors")[0], about


class Checkpoint:
    """The latest state of a run in one file; `key` tells whose run it is."""

    def __init__(self, folder: str | os.PathLike, key: dict):
        self.path = Path(folder) / "checkpoint.safetensors"
        self.key = key

    def save(self, tensors: dict[str, torch.Tensor], position: dict) -> None:
        write_bytes(self.path, pack(tensors, {"format": FORMAT, "key": self.key, **position}))

    def load(self) -> tuple[dict[str, torch.Tensor], dict] | None:
        if not self.path.exists():
            return None
        tensors, about = unpack(self.path)
        theirs, ours = about.get("key", {}), json.loads(json.dumps(self.key))
        differ = [k for k in ours if theirs.get(k) != ours[k]]
        if differ:
            k = differ[0]
            raise StateError(
                f"{self.path} belongs to another run ({k} was {theirs.get(k)!r}, now {ours[k]!r}); "
                "give another checkpoint_dir or delete that folder"
            )
        return tensors, about
