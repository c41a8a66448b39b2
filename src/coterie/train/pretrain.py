"""Pre-training of an autoencoder: end to end, denoising, or layer by layer; and its cache."""

import hashlib
import json
import os
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..math.augment import dropout_rows
from ..math.losses import squared_error
from ..nets.kith_encoder import BODY
from ..runtime.processes import all_gather, current
from ..runtime.rng import torch_rng
from ..storage.tensors import StateError, pack, unpack, write_bytes
from .batch import Batch, Terms
from .head import Head
from .optim import Optim
from .plan import Call, Phase

if TYPE_CHECKING:
    from ..estimator.deep import DeepClusterer
    from .engine import Engine

DECODER_RULE = (5, 200)  # epochs and steps of a decoder behind Kith
KITH_SHARE = 0.5  # of a time budget, where Kith is the start
CORRUPTION = 0.2  # share of the input that a denoising autoencoder does not see (DEC)


def reconstruction(batch: Batch, head: Head | None = None) -> Terms:
    """Squared error, sum over features, mean over the batch; the target is the clean row."""
    return {"reconstruction": squared_error(batch.clean, batch.x_hat)}


def pretraining(method: "DeepClusterer", network: Any) -> list[Phase | Call]:
    """The phases of `method.pretrain`; the layer-wise ones end with a fine-tuning of the whole."""
    recipe = method.recipe()
    optim = method.pretrain_optim()
    common: dict[str, Any] = {"batch_size": method.batch_size, "optim": optim}

    def corrupt(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return dropout_rows(x, generator, CORRUPTION)

    epochs = method.epochs_of(method.pretrain_epochs, recipe.epochs)
    if method.pretrain == "kith":
        return [Call(_from_kith(method), "kith"), _way_back(method, common)]
    noise = corrupt
    if method.pretrain == "plain":
        moved = recipe.moved or method.augment == "affine"
        noise = method._augmentation() if moved else None
    plan: list[Phase | Call] = []
    if method.pretrain == "layerwise":
        if not hasattr(network, "level_parameters"):
            raise ValueError(
                "pretrain='layerwise' needs net='mlp'; use pretrain='plain' or 'denoise'"
            )
        each = epochs / (2 * network.levels)  # half of the epochs, then the whole
        for i in range(network.levels):
            plan.append(_level(i, each, optim, common))
        plan.append(Phase("pretrain", epochs / 2, reconstruction, **common))
    else:
        plan.append(Phase("pretrain", epochs, reconstruction, augment=noise, **common))
    return plan


def _from_kith(method: "DeepClusterer"):
    """Fit Kith on the rows and hand its features and body to the network."""

    def function(engine: "Engine") -> None:
        # found by name: methods are made of phases, and phases know no method
        kith = import_module("coterie.methods.kith").Kith(
            method.n_clusters,
            random_state=engine.seed,
            scale=method.scale,
            kind=engine.network.net.features.kind,
            hidden=BODY[:-1],
            embedding_dim=BODY[-1],
            time_budget=method.time_budget and KITH_SHARE * method.time_budget,
        )
        kith.fit(engine.rows.source)
        labels = torch.from_numpy(kith.labels_).long()
        stream = torch_rng(engine.seed, "kith", "code")
        engine.network.take_over(kith.network_, kith.head_.z, labels, stream)
        engine.world.broadcast(list(engine.network.state_dict().values()))

    return function


def _way_back(method: "DeepClusterer", common: dict) -> Phase:
    """The decoder learns to rebuild rows from Kith's code, which stays as it is."""

    def optimizers(network, head):
        return {"main": (list(network.back.parameters()), common["optim"])}

    epochs = method.epochs_of(method.pretrain_epochs, DECODER_RULE)
    return Phase("pretrain", epochs, reconstruction, optimizers=optimizers, **common)


def _level(i: int, epochs: float, optim: Optim, common: dict) -> Phase:
    """One level of a stacked denoising autoencoder; noise on its input, except on the raw one."""

    def loss(batch: Batch, head: Head | None) -> Terms:
        network = batch.network
        with torch.no_grad():
            clean = network.below(batch.clean, i)
        seen = clean
        if i > 0:
            lost = batch.draw(lambda b, g: torch.rand(b, clean.shape[1], generator=g), "lost")
            seen = clean * (lost >= CORRUPTION)
        rebuilt = network.rebuild(seen, i)
        return {"reconstruction": squared_error(clean, rebuilt)}

    def optimizers(network, head):
        return {"main": (network.level_parameters(i), optim)}

    return Phase(f"pretrain-{i}", epochs, loss, optimizers=optimizers, **common)


class Cache:
    """Pre-trained networks by content: data, network, pre-training settings and seed.

    Methods, numbers of clusters and repeated runs share an entry; the seconds of the original
    training are kept with it, so that costs stay comparable.
    """

    FIELDS = [
        "net",
        "channels",
        "activation",
        "initializer",
        "batch_size",
        "pretrain",
        "pretrain_optimizer",
        "augment",
    ]

    def __init__(self, method: "DeepClusterer", fingerprint: str, seed: int):
        recipe = method.recipe()
        about = {name: getattr(method, name, None) for name in [*self.FIELDS, "clean_share"]}
        about["embedding_dim"] = method.code_size()
        if method._outside != "zeros":
            about["outside"] = method._outside
        if method.pretrain == "kith":
            about["n_clusters"] = method.n_clusters
        about |= asdict(recipe) | {
            "epochs": method.epochs_of(method.pretrain_epochs, recipe.epochs)
        }
        about |= {"data": fingerprint, "seed": seed, "threads": torch.get_num_threads()}
        about["torch"] = torch.__version__
        self.whole = method.time_budget is None  # a pre-training that was cut short is not kept
        digest = hashlib.blake2b(
            json.dumps(about, sort_keys=True, default=str).encode(), digest_size=16
        )
        self.path = (
            Path(os.fspath(method.cache_dir)) / f"pretrained-{digest.hexdigest()}.safetensors"
        )

    def plan(self, phases: list[Phase | Call]) -> list[Phase | Call]:
        """The phases followed by a store, or a single load when the entry is there."""
        if bool(all_gather(current(), torch.tensor(self.path.exists()).int())[0]):
            return [Call(self._load, "pretrain")]  # the leader has it
        return [*phases, Call(self._store, "store")] if self.whole else phases

    def _store(self, engine: "Engine") -> None:
        if engine.world.leader:
            about = {"seconds": sum(engine.seconds.values()), "history": engine.history}
            write_bytes(self.path, pack(engine.network.state_dict(), about))

    def _load(self, engine: "Engine") -> None:
        if engine.world.leader or self.path.exists():
            tensors, about = unpack(self.path)
            try:
                engine.network.load_state_dict(tensors)
            except RuntimeError as err:
                raise StateError(
                    f"{self.path} does not fit this network; delete it ({err})"
                ) from None
            engine.history, engine.seconds = about["history"], {"pretrain": about["seconds"]}
            engine.lent = about["seconds"]
        engine.world.broadcast(list(engine.network.state_dict().values()))
        engine.progress.note("pre-trained network taken from the cache")
