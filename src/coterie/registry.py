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
from .storage import runs
from .storage.tensors import StateError, load_model

# what a description with a correct digest and values of the wrong kind or size ends in
BUILD_ERRORS = (LookupError, TypeError, AttributeError, OverflowError, RuntimeError, MemoryError)
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

    It takes the kind of rows that it was fitted on: `recipe_` says how they are read. The model of
    a run takes texts, lists of images (from Pillow, or paths), frames with their columns in any
    order, AnnData and arrays.

    Parameters given here replace the stored ones, e.g. `net=` for a model with your own modules.
    """
    tensors, about = load_model(folder)
    cls = get(str(about["method"]))
    try:
        model = restore(cls, tensors, about, **overrides)
    except BUILD_ERRORS as error:
        if overrides:  # the caller's own modules
            raise
        raise StateError(
            f"{Path(folder) / 'model.json'} describes no model that can be built here "
            f"({type(error).__name__}: {str(error).splitlines()[0][:200]}); fit again, or load it "
            "with the version of coterie that saved it"
        ) from error
    if (Path(folder) / "recipe.json").is_file():  # a run: how its data were read
        model.recipe_ = Recipe.load(folder)
        take_names(model, model.recipe_)
    meta = runs.peek(folder)
    if meta and (Path(folder) / "neighbours.npy").is_file():
        runs.Run(Path(folder), meta).verify("neighbours.npy")
        model.neighbours_ = np.load(
            Path(folder) / "neighbours.npy", mmap_mode="r", allow_pickle=False
        )
    return model
