"""An estimator as tensors and plain values in a folder, and back. No pickle anywhere."""

import dataclasses
import os
from typing import Any

import numpy as np
import torch
from torch import nn

from ..storage.tensors import StateError, check_fit, save_model
from ..train.head import Head
from ..train.scaling import Scaling
from .params import as_tuples


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
    }
    save_model(
        folder,
        tensors,
        {"method": model.key, "params": plain_params(model), "fitted": fitted},
        overwrite,
    )


def restore(cls: type, tensors: dict, about: dict, **overrides: Any) -> Any:
    """The inverse of `save`."""
    names = {f.name for f in dataclasses.fields(cls)}
    params = {k: as_tuples(v) for k, v in about["params"].items() if k in names}
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
    model.scaling_ = Scaling(
        fitted["scaling"], tensors["input.shift"].numpy(), tensors["input.factor"].numpy()
    )
    model.labels_ = tensors["labels"].numpy().astype(np.int64)
    model._n_rows = len(model.labels_)
    model.head_ = Head.from_tensors({k[5:]: v for k, v in tensors.items() if k.startswith("head.")})
    model.network_ = model.build_network(model.row_shape_, torch.Generator())
    weights = {k[8:]: v for k, v in tensors.items() if k.startswith("network.")}
    try:
        check_fit(weights, model.network_.state_dict(), "model.safetensors")
        model.network_.load_state_dict(weights)
    except (RuntimeError, StateError) as err:
        raise StateError(
            f"the stored weights do not fit the network ({err}); a model with modules of your "
            "own is loaded by coterie.load(folder, net=...)"
        ) from None
    model.network_.eval()
    model._after_fit()
    return model


def plain_params(model: Any) -> dict:
    """Parameters that a file can hold: no modules and no functions."""
    params = {}
    for f in dataclasses.fields(model):
        value = getattr(model, f.name)
        if callable(value) or isinstance(value, nn.Module) or f.name == "callback":
            continue
        if isinstance(value, (tuple, list)) and any(isinstance(v, nn.Module) for v in value):
            continue
        if f.name == "random_state" and value is not None:
            value = model.seed_ if hasattr(model, "seed_") else None
        params[f.name] = _plain(value)
    return params


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers of numpy and paths become Python's own numbers and words."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value
