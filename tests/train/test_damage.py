"""Checkpoints and cached networks that are damaged or forged: named, never used, never deleted."""

import numpy as np
import pytest
import torch

from conftest import quick
from coterie.storage.tensors import StateError, pack, unpack, write_bytes
from coterie.train.engine import Engine


class Killed(BaseException):
    """Stands for the end of the process."""


def stopped(monkeypatch, X, folder, phase="train", **params):
    """A checkpoint in the middle of a phase, with the moments of its optimiser."""
    save = Engine._save

    def save_and_stop(self, extra):
        save(self, extra)
        if extra and self.phase.name == phase:
            raise Killed

    monkeypatch.setattr(Engine, "_save", save_and_stop)
    settings = {"checkpoint_dir": folder, "checkpoint_seconds": 0.0, "batch_size": 50, **params}
    with pytest.raises(Killed):
        quick("dec", **settings).fit(X)
    monkeypatch.setattr(Engine, "_save", save)
    return folder / "checkpoint.safetensors", lambda: quick("dec", **settings).fit(X)


def flipped(whole: bytes, at: int) -> bytes:
    return whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :]


def test_no_bit_of_a_checkpoint_changes_unseen(blobs, tmp_path, monkeypatch):
    path, resume = stopped(monkeypatch, blobs[0], tmp_path)
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(flipped(whole, at))
        with pytest.raises(StateError, match="checkpoint"):
            resume()
        assert path.read_bytes() == flipped(whole, at)  # it may be all that is left
    path.write_bytes(whole[:-9])
    with pytest.raises(StateError, match="restore it from a copy, or delete it"):
        resume()
    path.write_bytes(whole)
    assert np.array_equal(resume().labels_, quick("dec", batch_size=50).fit(blobs[0]).labels_)


def test_no_bit_of_a_cached_network_changes_unseen(blobs, tmp_path):
    quick("dec", cache_dir=tmp_path).fit(blobs[0])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(flipped(whole, at))
        with pytest.raises(StateError, match=r"pretrained.*delete it, and it is made anew"):
            quick("dec", cache_dir=tmp_path).fit(blobs[0])
    assert path.exists()


def forgeries():
    """What may be wrong with a tensor whose file has a correct digest."""
    yield "empty", lambda t: t.flatten()[:0]
    yield "halved", lambda t: t.flatten()[: max(1, t.numel() // 2)]
    yield "longer", lambda t: torch.cat([t.flatten(), t.flatten(), t.new_zeros(1)])
    yield "transposed", lambda t: t.reshape(*reversed(t.shape), 1)
    yield "double", lambda t: t.double() if t.dtype == torch.float32 else t.float()
    yield "gone", lambda t: None


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("how", [name for name, _ in forgeries()])
def test_forged_tensors_are_named_before_torch_sees_them(
    how, optimizer, blobs, tmp_path, monkeypatch
):
    """A fused optimiser reads beyond the end of a moment that is too short."""
    path, resume = stopped(monkeypatch, blobs[0], tmp_path, optimizer=optimizer)
    tensors, about = unpack(path)
    kinds = {name.split(".")[0] for name in tensors}
    assert kinds == {"averaged", "head", "labels", "network", "optim", "sums"}
    forge = dict(forgeries())[how]
    for name, tensor in tensors.items():
        if name == "sums" or (how == "gone" and not name.startswith("network")):
            continue  # a moment that is missing is one that the optimiser starts anew
        if name.startswith(("head.rows", "head.state")) and how == "double":
            continue  # a method may keep what it likes
        changed = forge(tensor)
        rest = {k: v for k, v in tensors.items() if k != name}
        write_bytes(path, pack(rest if changed is None else rest | {name: changed}, about))
        with pytest.raises(StateError, match="checkpoint"):
            resume()
        assert path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"position": "zero"},
        {"position": [0]},
        {"place": 7},
        {"history": None, "seconds": None, "key": []},
        {"sums": None},
    ],
)
def test_a_forged_position_is_named(change, blobs, tmp_path, monkeypatch):
    path, resume = stopped(monkeypatch, blobs[0], tmp_path)
    tensors, about = unpack(path)
    write_bytes(path, pack(tensors, about | change))
    with pytest.raises(StateError, match="checkpoint"):
        resume()


def test_a_checkpoint_of_the_first_version_has_no_digest_and_loads(blobs, tmp_path, monkeypatch):
    import json

    from safetensors.torch import save

    path, resume = stopped(monkeypatch, blobs[0], tmp_path)
    tensors, about = unpack(path)
    write_bytes(path, save(tensors, metadata={"coterie": json.dumps(about)}))
    assert np.array_equal(resume().labels_, quick("dec", batch_size=50).fit(blobs[0]).labels_)
