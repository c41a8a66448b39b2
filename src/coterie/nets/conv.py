"""The small convolutional autoencoder of DCEC and DEKM, for any image size and channel count."""

import torch
from torch import nn
from torch.nn.utils import skip_init

from .init import initialise
from .mlp import in_half


class Conv(nn.Module):
    """Three strided convolutions (32@5x5, 64@5x5, 128@3x3), a linear code, and the way back."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        embedding_dim: int,
        channels: tuple[int, int, int],
        initializer: str,
        generator: torch.Generator,
    ):
        super().__init__()
        self.shape, self.embedding_dim = shape, embedding_dim
        c, h, w = shape
        if len(channels) != 3:
            raise ValueError(
                f"channels={channels}: the conv net has 3 layers, not {len(channels)}; "
                "give three numbers"
            )
        # the papers' rule: no padding in the third layer unless the height divides by 8
        last_pad = 1 if h % 8 == 0 or min(h, w) < 9 else 0
        layers = ((5, 2), (5, 2), (3, last_pad))
        sizes: list[tuple[int, ...]] = [(h, w)]
        for kernel, pad in layers:
            sizes.append(tuple((s + 2 * pad - kernel) // 2 + 1 for s in sizes[-1]))
        widths = [c, *channels]
        self.down = nn.ModuleList(
            skip_init(nn.Conv2d, widths[i], widths[i + 1], kernel, stride=2, padding=pad)
            for i, (kernel, pad) in enumerate(layers)
        )
        self.up = nn.ModuleList()
        for i in reversed(range(3)):
            kernel, pad = layers[i]
            # what a stride of 2 rounds away on the way down is added back on the way up
            missing = tuple(
                target - ((small - 1) * 2 - 2 * pad + kernel)
                for target, small in zip(sizes[i], sizes[i + 1])
            )
            self.up.append(
                skip_init(
                    nn.ConvTranspose2d,
                    widths[i + 1],
                    widths[i],
                    kernel,
                    stride=2,
                    padding=pad,
                    output_padding=missing,
                )
            )
        self.inner = (channels[-1], *sizes[-1])
        flat = channels[-1] * sizes[-1][0] * sizes[-1][1]
        self.to_code = skip_init(nn.Linear, flat, embedding_dim)
        self.from_code = skip_init(nn.Linear, embedding_dim, flat)
        initialise(self, initializer, generator)

    @property
    def code_layers(self) -> tuple[nn.Module, nn.Module]:
        return self.to_code, self.from_code

    def encode(self, x: torch.Tensor) -> torch.Tensor:  # (b, c, h, w) -> (b, p)
        return self.to_code(self._down(x))

    @in_half  # not the code: distances are measured in it
    def _down(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.down:
            x = torch.relu_(layer(x))
        return x.flatten(1)

    @in_half
    def decode(self, z: torch.Tensor) -> torch.Tensor:  # (b, p) -> (b, c, h, w)
        x = torch.relu_(self.from_code(z)).view(-1, *self.inner)
        for layer in self.up[:-1]:
            x = torch.relu_(layer(x))
        return self.up[-1](x)
