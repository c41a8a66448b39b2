"""Encoders that are Python objects of the user's: functions and torch modules."""

import hashlib
from typing import Any

import numpy as np
import torch
from torch import nn

from ..runtime.device import to_numpy
from .base import Encoder, EncoderError
from .images import ImageEncoder, to_batch


class Function(Encoder):
    """Any callable: a list or an array of rows in, one vector a row out."""

    kept = False

    def __init__(self, function: Any):
        self.function = function
        self.reference = getattr(function, "__qualname__", type(function).__qualname__)

    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        return self.function(batch)


class Module(ImageEncoder):
    """A torch module: images as fractions (b, c, h, w), other rows as float32 (b, ...).

    Images keep their size and unit, unless the module says otherwise, as those of timm do
    (`pretrained_cfg`: input_size, mean, std).
    """

    takes = "rows"
    kept = False

    def __init__(self, module: nn.Module):
        self.module, self.reference = module, type(module).__qualname__
        self.digest = state_digest(module)
        about = getattr(module, "pretrained_cfg", None) or {}
        self.wants_size = about.get("input_size")
        self.mean, self.std = about.get("mean", (0.0,) * 3), about.get("std", (1.0,) * 3)

    def settings(self, rows: Any) -> dict:
        if np.ndim(rows[0]) < 2:
            return {}
        size = self.wants_size[1:] if self.wants_size else np.shape(rows[0])[:2]
        self.size = int(size[0]), int(size[1])
        return super().settings(rows)

    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        if isinstance(batch[0], str):
            raise EncoderError(
                f"{self.reference} is a torch module and takes numbers, not texts; give a "
                "function that splits texts into tokens and calls it"
            )
        return self.run(self.prepare(batch, settings))

    def prepare(self, batch: Any, settings: dict) -> torch.Tensor:
        """Rows as the module takes them."""
        if not settings:
            return torch.from_numpy(np.asarray(batch, np.float32))
        grey = np.ndim(batch[0]) == 2
        x = to_batch(batch, tuple(settings["size"]), settings["unit"])
        shift, spread = (torch.tensor(v).view(-1, 1, 1) for v in (self.mean, self.std))
        x = (x - shift) / spread
        return x[:, :1] if grey and not self.wants_size else x

    def run(self, x: torch.Tensor) -> np.ndarray:
        training = self.module.training
        self.module.eval()
        try:
            with torch.inference_mode():
                at = next(self.module.parameters(), x).device
                return to_numpy(self.module(x.to(at)).float())
        finally:
            self.module.train(training)


def state_digest(module: nn.Module) -> str:
    """SHA-256 of the structure and the weights of a module."""
    digest = hashlib.sha256(repr(module).encode())
    for name, value in module.state_dict().items():
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(flat.numpy().data)
    return digest.hexdigest()
