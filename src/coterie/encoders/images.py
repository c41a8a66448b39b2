"""Images of any size and unit -> a batch as networks take it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from ..data.arrays import channels_last, from_tensor
from ..data.folders import decoded
from ..data.options import warn
from .base import Encoder, EncoderError


class ImageEncoder(Encoder):
    """An encoder of images: resized, as fractions, shifted and divided by channel.

    `size` is (height, width), or None where a subclass chooses it by the images.
    `largest` is the side in pixels beyond which an image has nothing to tell.
    """

    takes = "image"
    size: tuple[int, int] | None = None
    largest: int = 224
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # of ImageNet, unless an encoder says otherwise
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def choose_size(self, sides: np.ndarray) -> tuple[int, int]:  # (n, 2) heights and widths
        raise NotImplementedError

    def settings(self, rows: Any) -> dict:
        some = [rows[i] for i in np.linspace(0, len(rows) - 1, min(len(rows), 500)).astype(int)]
        size = self.size or self.choose_size(np.array([image.shape[:2] for image in some]))
        top = max(float(np.max(image)) for image in some)
        # bytes, or floats that were bytes; fractions otherwise
        unit = 255 if some[0].dtype.kind in "iu" or top > 1.5 else 1
        return {"size": list(size), "unit": unit}

    def embed(self, batch: Any, settings: dict) -> np.ndarray:
        x = to_batch(batch, tuple(settings["size"]), settings["unit"])
        shift, spread = (torch.tensor(v).view(-1, 1, 1) for v in (self.mean, self.std))
        return self.run((x - shift) / spread)

    def run(self, x: torch.Tensor) -> np.ndarray:  # (b, 3, h, w) -> (b, d)
        raise NotImplementedError


def as_images(X: Any) -> Any:
    """Images as an array (n, h, w[, c]) or, where sizes differ, a list of arrays (h, w[, c])."""
    if isinstance(X, torch.Tensor):
        X = from_tensor(X)
    if isinstance(X, np.ndarray) and X.ndim in (3, 4) and X.dtype.kind in "fiub":
        return channels_last(X, "X", warn) if X.ndim == 4 else X
    if isinstance(X, np.ndarray) and X.dtype != object:
        raise EncoderError(
            f"an encoder of images needs images, (n, h, w) or (n, h, w, c), but X has shape "
            f"{X.shape} and type {X.dtype}; give the images themselves, or leave encoder= out"
        )
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise EncoderError(f"an encoder of images needs images, not {type(X).__name__}")
    return [_image(image, row) for row, image in enumerate(X)]


def _image(image: Any, row: int) -> np.ndarray:
    if isinstance(image, Path) or hasattr(image, "convert"):  # a file, or an image of Pillow
        try:
            return np.asarray(decoded(image, colour=True))
        except Exception as error:  # Pillow raises whatever a decoder stumbles over
            name = image if isinstance(image, Path) else f"of row {row}"
            raise EncoderError(
                f"cannot read image {name}: {error}. Repair it or leave it out of the list"
            ) from None
    image = from_tensor(image) if isinstance(image, torch.Tensor) else np.asarray(image)
    if image.ndim == 3 and image.shape[0] in (1, 3) and image.shape[2] > 4:
        image = np.moveaxis(image, 0, 2)
    if image.dtype.kind not in "fiub" or image.ndim not in (2, 3) or 0 in image.shape:
        raise EncoderError(
            f"row {row} is not an image: its shape is {image.shape}, its type {image.dtype}; "
            "give arrays (h, w) or (h, w, c)"
        )
    return image


def to_batch(images: Any, size: tuple[int, int], unit: float) -> torch.Tensor:
    """(b, 3, *size) of fractions; grey is repeated, a fourth channel is left out."""
    if isinstance(images, np.ndarray):
        return _resized(_planes(images), size, unit)
    return torch.cat([_resized(_planes(image[None]), size, unit) for image in images])


def _planes(images: np.ndarray) -> torch.Tensor:  # (b, h, w[, c]) -> (b, 3, h, w)
    x = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))
    if x.ndim == 3:
        x = x[..., None]
    if x.shape[3] not in (1, 3, 4):
        raise EncoderError(f"images have {x.shape[3]} channels; an encoder takes 1, 3 or 4")
    if not bool(torch.isfinite(x).all()):
        raise EncoderError("an image holds NaN or infinity; repair it or leave it out")
    x = x.permute(0, 3, 1, 2)
    return x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x[:, :3]


def _resized(x: torch.Tensor, size: tuple[int, int], unit: float) -> torch.Tensor:
    if tuple(x.shape[2:]) != size:
        x = F.interpolate(x, size, mode="bicubic", antialias=True)
    return (x / unit).clamp(0, 1)  # cubic curves overshoot
