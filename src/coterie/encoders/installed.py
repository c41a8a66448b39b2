"""Encoders of other libraries, where they and their weights are installed: timm:NAME, st:NAME."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from .base import Encoder, EncoderError
from .code import state_digest
from .digest import combined
from .images import ImageEncoder


class Timm(ImageEncoder):
    """An image network of timm without its classifier; size and moments are those it names."""

    def __init__(self, name: str):
        timm = _library("timm", "timm", f"timm:{name}")
        self.reference = f"timm:{name}"
        try:
            self.module = timm.create_model(name, pretrained=True, num_classes=0).eval()
        except Exception as error:
            raise EncoderError(f"timm cannot give {name!r} with its weights: {error}") from None
        about = timm.data.resolve_model_data_config(self.module)
        self.mean, self.std = tuple(about["mean"]), tuple(about["std"])
        self.size = tuple(about["input_size"][1:])
        self.largest = max(self.size)
        self.digest = combined(["timm", timm.__version__, state_digest(self.module)])

    @torch.inference_mode()
    def run(self, x: torch.Tensor) -> np.ndarray:
        return self.module(x).float().numpy()


class SentenceModel(Encoder):
    """A model of sentence-transformers, by name or folder."""

    takes = "text"

    def __init__(self, name: str):
        library = _library("sentence_transformers", "sentence-transformers", f"st:{name}")
        self.reference = f"st:{name}"
        try:
            self.model = library.SentenceTransformer(name, device="cpu")
        except Exception as error:
            raise EncoderError(
                f"sentence-transformers cannot give {name!r} with its weights: {error}"
            ) from None
        self.digest = combined(["st", library.__version__, state_digest(self.model)])

    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        return self.model.encode(list(batch), convert_to_numpy=True, show_progress_bar=False)


def _library(name: str, package: str, spec: str) -> Any:
    if find_spec(name) is None:
        raise EncoderError(f"encoder {spec} needs {package}: pip install {package}")
    from importlib import import_module

    return import_module(name)
