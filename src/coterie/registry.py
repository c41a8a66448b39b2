"""The list of methods that the command line, the docs, the benchmarks and the tests walk over."""

from importlib import import_module
from pathlib import Path
from typing import Any

from .data.recipe import Recipe
from .estimator.base import Clusterer
from .estimator.encoding import Encoding
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

    Parameters given here replace the stored ones, e.g. `net=` for a model with your own modules.
    """
    tensors, about = load_model(folder)
    model = restore(get(about["method"]), tensors, about, **overrides)
    recipe = Path(folder) / "recipe.json"
    if recipe.is_file() and not hasattr(model, "encoding_"):  # a run whose texts were read first
        read = Recipe.load(folder)
        if read.vocabulary:
            model.encoding_ = Encoding(recipe=read)
    return model
