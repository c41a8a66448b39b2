"""An estimator as tensors and plain values in a folder, and back. No pickle anywhere."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data.recipe import Recipe
from ..runtime.device import pick_device
from ..storage.renamed import current_names
from ..storage.tensors import StateError, check_fit, save_model
from ..train.head import Head
from ..train.scaling import Scaling
from ..train.settings import Settings, resolve
from .counting import Counting
from .encoding import Encoding
from .fields import RUN_FIELDS
from .params import as_tuples
from .tuning import with_encoder
from .words_or_encoder import tries_both


def save(model: Any, folder: Any, overwrite: bool) -> None:
    """Write model.safetensors and model.json."""
    tensors = {f"network.{k}": v for k, v in model.network_.state_dict().items()}
    tensors |= {f"head.{k}": v for k, v in model.head_.tensors(("param", "state")).items()}
    tensors["labels"] = torch.from_numpy(model.labels_.astype(np.int32))
    tensors["input.shift"] = torch.from_numpy(np.array(model.scaling_.shift))
    tensors["input.factor"] = torch.from_numpy(np.array(model.scaling_.factor, np.float32))
    fitted = {
        "input_shape": model.input_shape_,
        "row_shape": model.row_shape_,
        "scaling": model.scaling_.choice,
        "seed": model.seed_,
        "n_features_in": model.n_features_in_,
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))),
        "history": model.history_,
        "seconds": model.seconds_,
        "notes": model.notes_,
        "reject_below": model.reject_below_ if model.reject_below_ > -np.inf else None,
        "settings": plain_settings(model.settings_),
    }
    if hasattr(model, "counting_"):
        tensors["counting.columns"] = torch.from_numpy(model.counting_.columns)
        fitted["counting"] = {"depth": model.counting_.depth, "width": model.counting_.width}
    if hasattr(model, "encoding_"):
        fitted["encoding"] = dataclasses.asdict(model.encoding_)
    if hasattr(model, "tried_"):
        fitted["tried"] = model.tried_
    recipe = getattr(model, "recipe_", None)
    if recipe is not None and not (Path(folder) / "recipe.json").exists():  # which a run has
        arrays = {f"recipe.{k}": torch.from_numpy(np.array(v)) for k, v in recipe.arrays.items()}
        tensors, fitted["recipe"] = tensors | arrays, recipe.to_dict()
    save_model(
        folder,
        tensors,
        {"method": model.key, "params": _kept_params(model), "fitted": fitted},
        overwrite,
    )


def restore(cls: type, tensors: dict, about: dict, **overrides: Any) -> Any:
    """The inverse of `save`."""
    names = {f.name for f in dataclasses.fields(cls) if not _of_one_fit(f)}
    stored = current_names(cls.key, about["params"])
    params = {k: as_tuples(v) for k, v in stored.items() if k in names}
    model = cls(**(params | overrides))
    fitted = about["fitted"]
    model.input_shape_, model.row_shape_ = (
        tuple(fitted["input_shape"]),
        tuple(fitted["row_shape"]),
    )
    model.n_features_in_, model.seed_ = fitted["n_features_in"], fitted["seed"]
    if fitted["feature_names"]:
        model.feature_names_in_ = np.asarray(fitted["feature_names"], dtype=object)
    model.history_, model.seconds_ = fitted["history"], fitted["seconds"]
    model.notes_ = fitted["notes"]
    below = fitted.get("reject_below")
    model.reject_below_ = -np.inf if below is None else below
    if "counting" in fitted:
        model.counting_ = Counting(tensors["counting.columns"].numpy(), **fitted["counting"])
    if "encoding" in fitted:
        model.encoding_ = Encoding(**fitted["encoding"])
        named = isinstance(params.get("encoder"), str) and "encoder" not in overrides
        if named and not tries_both(params["encoder"]):
            model.encoder = model.encoding_.reference  # a path holds from any folder
    if "tried" in fitted:
        model.tried_ = fitted["tried"]
    if "recipe" in fitted:
        known = {k: v for k, v in fitted["recipe"].items() if k != "format"}
        arrays = {k[7:]: v.numpy() for k, v in tensors.items() if k.startswith("recipe.")}
        model.recipe_ = Recipe(**known, arrays=arrays)
    model.scaling_ = Scaling(
        fitted["scaling"], tensors["input.shift"].numpy(), tensors["input.factor"].numpy()
    )
    model.labels_ = tensors["labels"].numpy().astype(np.int64)
    model._prepare(_settings_of(model, fitted, overrides))
    model.head_ = Head.from_tensors({k[5:]: v for k, v in tensors.items() if k.startswith("head.")})
    model.network_ = with_encoder(model, model.build_network(model.settings_, torch.Generator()))
    weights = {k[8:]: v for k, v in tensors.items() if k.startswith("network.")}
    try:
        check_fit(weights, model.network_.state_dict(), "model.safetensors")
        model.network_.load_state_dict(weights)
    except (RuntimeError, StateError) as err:
        raise StateError(
            f"the stored weights do not fit the network ({err}); a model with modules of your "
            "own is loaded by coterie.load(folder, net=...), an encoder by encoder=..."
        ) from None
    model.network_.eval()
    model.device_ = pick_device(model.device)
    model._place()
    model._after_fit()
    return model


def _of_one_fit(field: dataclasses.Field) -> bool:
    """Folders, processes and progress belong to the fit that had them, not to the model."""
    decides = ("random_state", "time_budget")  # of the result
    return field.metadata.get("group") == "run" and field.name not in decides


def _kept_params(model: Any) -> dict:
    gone = {f.name for f in dataclasses.fields(model) if _of_one_fit(f)}
    return {name: value for name, value in plain_params(model).items() if name not in gone}


def plain_params(model: Any) -> dict:
    """Parameters that a file can hold: no modules and no functions."""
    params = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
    if params["random_state"] is not None:
        params["random_state"] = getattr(model, "seed_", None)
    return _storable(params)


def plain_settings(settings: Settings) -> dict:
    """Settings as a file holds them."""
    run_only = ("random_state", "verbose", "cache_dir", *RUN_FIELDS)
    return {
        "rows": settings.n,
        "shape": list(settings.shape),
        "fields": _storable({k: v for k, v in settings.fields.items() if k not in run_only}),
        "facts": _storable(settings.facts),
    }


def _settings_of(model: Any, fitted: dict, overrides: dict) -> Settings:
    """The settings that a model was fitted with; files of version 0.1 do not have them."""
    stored = fitted.get("settings")
    if stored is None:
        return resolve(model, len(model.labels_), model.row_shape_)
    fields = current_names(model.key, stored["fields"])
    known = {k: as_tuples(v) for k, v in fields.items()}
    known |= {k: v for k, v in overrides.items() if k != "device"}  # the fit's is kept
    look = SimpleNamespace(**stored["facts"])
    return resolve(model, stored["rows"], tuple(stored["shape"]), look, known)


def _storable(values: Mapping[str, Any]) -> dict:
    return {name: _plain(value) for name, value in values.items() if not _is_code(name, value)}


def _is_code(name: str, value: Any) -> bool:
    parts = value if isinstance(value, (tuple, list)) else [value]
    return name == "callback" or any(callable(v) or isinstance(v, nn.Module) for v in parts)


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers of numpy become Python's own."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value
