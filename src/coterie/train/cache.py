"""Pre-trained networks in a folder, shared by methods, numbers of clusters and repeated runs."""

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from ..runtime.processes import all_gather, current
from ..storage.atomic import sweep
from ..storage.tensors import StateError, check_fit, pack, unpack, write_bytes
from .plan import Call, Phase
from .settings import Settings
from .view import Context

NETWORK = ("net", "embedding_dim", "hidden", "channels", "activation", "initializer")
TRAINING = ("batch_size", "optimizer", "epochs", "lr", "schedule")  # of pre-training


class Cache:
    """An entry is found by content: data, network, pre-training settings and seed.

    The seconds of the original training are kept with it, so that costs stay comparable.

    Parameters
    ----------
    changed : how pre-training changes images, as plain values; empty: it does not
    """

    def __init__(self, s: Settings, fingerprint: str, seed: int, changed: dict[str, Any]):
        about = {name: getattr(s, name) for name in (*NETWORK, "pretrain")}
        about |= {f"pretrain_{name}": getattr(s, f"pretrain_{name}") for name in TRAINING}
        about["horizon"] = s.decay_epochs if s.pretrain_schedule != "constant" else None
        about["normalize"] = getattr(s, "normalize", False)
        if getattr(s, "precision", "single") != "single":
            about["precision"] = s.precision
        if s.pretrain == "kith":
            about["n_clusters"] = s.n_clusters
        about |= {"changed": changed, "data": fingerprint, "seed": seed}
        about |= {"threads": torch.get_num_threads(), "torch": torch.__version__}
        about["coterie"] = version("coterie")  # another one may train in another way
        self.whole = s.time_budget is None  # a pre-training that was cut short is not kept
        text = json.dumps(about, sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        self.path = Path(os.fspath(s.cache_dir)) / f"pretrained-{digest}.safetensors"

    def plan(self, phases: list[Phase | Call]) -> list[Phase | Call]:
        """The phases followed by a store, or a single load when the entry is there."""
        if bool(all_gather(current(), torch.tensor(self.path.exists()).int())[0]):
            return [Call(self._load, "pretrain")]  # the leader has it
        return [*phases, Call(self._store, "store")] if self.whole else phases

    def _store(self, context: Context) -> None:
        if context.world.leader:
            about = {"seconds": sum(context.seconds.values()), "history": context.history}
            sweep(self.path.parent)
            write_bytes(self.path, pack(context.network.state_dict(), about))

    def _load(self, context: Context) -> None:
        if context.world.leader or self.path.exists():
            try:
                tensors, about = unpack(self.path)
                check_fit(tensors, context.network.state_dict(), str(self.path))
            except StateError as err:
                raise StateError(f"{err}; delete it, and it is made anew") from None
            context.network.load_state_dict(tensors)
            context.begin_with(about["history"], about["seconds"])
        context.tell("pre-trained network taken from the cache")
