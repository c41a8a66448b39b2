"""The list of methods that the command line, the docs, the benchmarks and the tests walk over."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .data.recipe import Recipe
from .estimator.base import Clusterer
from .estimator.raw import take_names
from .estimator.saving import restore
from .methods import METHODS
from .runtime.hints import did_you_mean
from .storage.tensors import load_model

DEFAULT = "kith"  # what `coterie fit` uses when no method is named


def get(key: str) -> type[Clusterer]:
    """The class of a method, by its key."""
    if key not in METHODS:
        hint = did_you_mean(key, METHODS)
        raise ValueError(f"there is no method {key!r}{hint} (methods: {', '.join(METHODS)})")
    module, name = METHODS[key]
    return getattr(import_module(f"coterie.methods.{module}"), name)


def list_methods() -> dict[str, type[Clusterer]]:
    """All methods, imported."""
    return {key: get(key) for key in METHODS}


def load(folder: Any, **overrides: Any) -> Clusterer:
    """A model that was saved with `save`, or the model of a run folder.

    It takes rows such as it was fitted on: `recipe_` says how they are read. The model of a run
    takes texts, lists of images (Pillow's, or paths), frames whose columns stand in any order,
    AnnData and arrays.

    Parameters given here replace the stored ones, e.g. `net=` for a model with your own modules.
    """
    tensors, about = load_model(folder)
    model = restore(get(about["method"]), tensors, about, **overrides)
    if (Path(folder) / "recipe.json").is_file():  # a run: how its data were read
        model.recipe_ = Recipe.load(folder)
        take_names(model, model.recipe_)
    if (Path(folder) / "neighbours.npy").is_file():
        model.neighbours_ = np.load(  # pyrefly: ignore
            Path(folder) / "neighbours.npy", mmap_mode="r", allow_pickle=False
        )
    return model
