"""An encoder in an ONNX file, run by onnxruntime.

What it takes is read off its inputs: (b, 3, h, w) are images, `input_ids` are tokens of texts (with
tokenizer.json in the same folder), strings are texts, (b, d) are rows of numbers.
"""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .base import EncoderError, read_settings
from .digest import combined, file_digest
from .images import ImageEncoder
from .tokens import load_tokenizer, padded

SIDE = 224  # of images where the file leaves it open
TOKENS = 512
SETTINGS = "preprocessor_config.json"


class OnnxFile(ImageEncoder):
    """Images: brought to the size of the input and normalised as preprocessor_config.json beside
    the file says, by the moments of ImageNet if there is none."""

    def __init__(self, path: Path):
        if find_spec("onnxruntime") is None:
            raise EncoderError(f"encoder {path} needs onnxruntime: pip install 'coterie[onnx]'")
        if not path.is_file():
            raise EncoderError(f"there is no ONNX file {path}")
        self.path, self.reference = path, str(path.resolve())
        # by what they are for, not by name: a file that was moved is the same encoder
        parts = {"model": path, "data": path.with_name(f"{path.name}.data")}
        parts["_data"] = path.with_name(f"{path.name}_data")
        parts |= {name: path.with_name(name) for name in ("tokenizer.json", SETTINGS)}
        self.digest = combined(
            part for use, p in parts.items() if p.is_file() for part in (use, file_digest(p))
        )
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.takes = self._takes()
        if self.takes == "image":
            self._image_settings()

    @cached_property
    def session(self) -> Any:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            return ort.InferenceSession(str(self.path), options, ["CPUExecutionProvider"])
        except Exception as error:  # a family of classes without a common base
            raise EncoderError(
                f"{self.path} cannot be read as ONNX ({str(error).splitlines()[0][:200]}); "
                "export it again or copy the whole file"
            ) from None

    def _takes(self) -> str:
        first = next(iter(self.inputs.values()))
        if "input_ids" in self.inputs or "string" in first.type:
            return "text"
        return "image" if len(first.shape) == 4 else "rows"

    def _image_settings(self) -> None:
        first = next(iter(self.inputs.values()))
        sides = [s if isinstance(s, int) else SIDE for s in first.shape[2:]]
        about = self.path.with_name(SETTINGS)
        if about.is_file():
            config = read_settings(about)
            self.mean = tuple(config.get("image_mean", self.mean))
            self.std = tuple(config.get("image_std", self.std))
        if first.shape[1] not in (3, "3") and isinstance(first.shape[1], int):
            raise EncoderError(
                f"{self.path} takes inputs of shape {first.shape}; images come as (b, 3, h, w)"
            )
        self.size, self.largest = (sides[0], sides[1]), max(sides)

    def settings(self, rows: Any) -> dict:
        return super().settings(rows) if self.takes == "image" else {}

    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        if self.takes == "image":
            return super().embed(batch, settings)
        name, first = next(iter(self.inputs.items()))
        if self.takes == "rows":
            return self._vectors({name: np.asarray(batch, np.float32)}, None)
        if "string" in first.type:
            return self._vectors({name: np.array(batch, object)}, None)
        tokens, mask = padded(self.tokenizer.encode_batch(list(batch)), 0)
        feed = {"input_ids": tokens, "attention_mask": mask}
        feed["token_type_ids"] = torch.zeros_like(tokens)
        numbers = {k: v.numpy() for k, v in feed.items() if k in self.inputs}
        return self._vectors(numbers, mask.numpy())

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(self.path.with_name("tokenizer.json"), TOKENS)

    def run(self, x: torch.Tensor) -> np.ndarray:
        return self._vectors({next(iter(self.inputs)): x.numpy()}, None)

    def _vectors(self, feed: dict, mask: np.ndarray | None) -> np.ndarray:
        """`sentence_embedding` or the first output; the mean over its tokens or places."""
        names = [out.name for out in self.session.get_outputs()]
        wanted = "sentence_embedding" if "sentence_embedding" in names else names[0]
        try:
            found = self.session.run([wanted], feed)[0]
        except Exception as error:
            raise EncoderError(
                f"{self.path} does not take these rows ({str(error).splitlines()[0][:200]})"
            ) from None
        if found.ndim == 4:
            return found.mean((2, 3))
        if found.ndim == 3:
            weights = np.ones(found.shape[:2], np.float32) if mask is None else mask
            weights = weights[..., None].astype(np.float32)
            return (found * weights).sum(1) / weights.sum(1)
        return found
