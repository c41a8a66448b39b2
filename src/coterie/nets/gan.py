"""Three networks of a conditional WGAN: a generator, a critic, and a classifier of its own."""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import leaky_relu
from torch.nn.utils import skip_init

SMALLEST = 4  # side at which the way down ends and the generator begins, in pixels
OUTPUTS = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "linear": nn.Identity}


def sides(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Image sizes on the way down, largest first.

    28-14-7-4, 32-16-8-4 and 64-32-16-8-4; small images keep their size in the first layers
    (16-16-8-4 as in the paper, and 8-8-4), so that there is something to learn before the end.
    """
    halvings = [max(0, math.ceil(math.log2(s / SMALLEST))) for s in shape[1:]]
    layers = max(*halvings, 3 if max(shape[1:]) >= 16 else 2)
    down = [tuple(shape[1:])]
    for i in range(layers):
        down.append(tuple(-(-s // 2) if i >= layers - h else s for s, h in zip(down[-1], halvings)))
    return down


def widths(channels: tuple[int, ...], layers: int) -> list[int]:
    """One width per layer: as given, then doubling."""
    return [
        channels[i] if i < len(channels) else channels[-1] * 2 ** (i - len(channels) + 1)
        for i in range(layers)
    ]


class ConvTrunk(nn.Module):
    """Strided 5x5 convolutions without normalisation, flattened: (b, c, h, w) -> (b, f)."""

    def __init__(self, shape: tuple[int, ...], channels: tuple[int, ...]):
        super().__init__()
        down = sides(shape)
        sizes = [shape[0], *widths(channels, len(down) - 1)]
        self.layers = nn.ModuleList(
            skip_init(
                nn.Conv2d,
                sizes[i],
                sizes[i + 1],
                5,
                padding=2,
                stride=_stride(down[i], down[i + 1]),
            )
            for i in range(len(down) - 1)
        )
        self.features = sizes[-1] * math.prod(down[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = leaky_relu(layer(x), 0.2)
        return x.flatten(1)


class ConvGenerator(nn.Module):
    """The way back: (b, inputs) -> (b, c, h, w)."""

    def __init__(self, inputs: int, shape: tuple[int, ...], channels: tuple[int, ...], output: str):
        super().__init__()
        up = sides(shape)[::-1]
        sizes = [*widths(channels, len(up) - 1)[::-1], shape[0]]
        self.inner, self.output = (sizes[0], *up[0]), OUTPUTS[output]()
        self.first = skip_init(nn.Linear, inputs, math.prod(self.inner))
        self.layers = nn.ModuleList()
        for i in range(len(up) - 1):
            stride = _stride(up[i + 1], up[i])
            # a stride of 2 makes 2s - 1 pixels out of s, or 2s with one more
            missing = tuple(b - (s * (a - 1) + 1) for a, b, s in zip(up[i], up[i + 1], stride))
            self.layers.append(
                skip_init(
                    nn.ConvTranspose2d, sizes[i], sizes[i + 1], 5,
                    stride=stride, padding=2, output_padding=missing,
                )
            )  # fmt: skip

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(inputs)).view(-1, *self.inner)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.output(self.layers[-1](x))


class DenseTrunk(nn.Module):
    """Fully connected ReLU layers: (b, *shape) -> (b, f)."""

    def __init__(self, inputs: int, hidden: tuple[int, ...]):
        super().__init__()
        sizes = [inputs, *hidden]
        self.layers = nn.ModuleList(skip_init(nn.Linear, a, b) for a, b in zip(sizes, hidden))
        self.features = sizes[-1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class DenseGenerator(nn.Module):
    def __init__(self, inputs: int, shape: tuple[int, ...], hidden: tuple[int, ...], output: str):
        super().__init__()
        self.shape, self.output = shape, OUTPUTS[output]()
        self.trunk = DenseTrunk(inputs, hidden)
        self.last = skip_init(nn.Linear, self.trunk.features, math.prod(shape))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.output(self.last(self.trunk(inputs))).view(-1, *self.shape)


class GAN(nn.Module):
    """Generator, critic and classifier; the embedding is what the classifier's last layer sees.

    Parameters
    ----------
    sizes : channels of the convolutions (kind "conv") or hidden units (kind "mlp")
    share_trunk : critic and classifier differ in their last layer only
    slow : keep a slowly following copy of generator and classifier, which then speaks for them
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        inputs: int,
        *,
        kind: str,
        sizes: tuple[int, ...],
        output: str,
        share_trunk: bool,
        slow: bool,
        generator: torch.Generator,
    ):
        super().__init__()
        if kind == "conv" and len(shape) != 3:
            raise ValueError(
                f"net='conv' needs images (n, h, w) or (n, h, w, c), but each row here has shape "
                f"{shape}; reshape X to images or use net='mlp'"
            )

        def trunk() -> nn.Module:
            return (
                ConvTrunk(shape, sizes) if kind == "conv" else DenseTrunk(math.prod(shape), sizes)
            )

        make = ConvGenerator if kind == "conv" else DenseGenerator
        self.generator = make(inputs, shape, sizes, output)
        self.classifier = trunk()
        self.critic = None if share_trunk else trunk()
        # no bias: the critic's loss is a difference, in which it would cancel
        self.critic_last = skip_init(nn.Linear, self.classifier.features, 1, bias=False)
        self.embedding_dim = self.classifier.features
        start(self, generator)
        self.slow = nn.ModuleDict()
        if slow:
            for name in ("generator", "classifier"):
                self.slow[name] = copy.deepcopy(getattr(self, name)).requires_grad_(False)

    def critique(self, x: torch.Tensor) -> torch.Tensor:  # (b, *shape) -> (b, 1)
        return self.critic_last((self.critic or self.classifier)(x))

    def encode(self, x: torch.Tensor) -> torch.Tensor:  # (b, *shape) -> (b, f)
        return self.averaged("classifier")(x)

    def averaged(self, name: str) -> nn.Module:
        """The slow copy of a network if there is one."""
        return self.slow[name] if name in self.slow else getattr(self, name)

    def pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Slow weights with the ones that they follow."""
        return [
            pair
            for name in self.slow
            for pair in zip(self.slow[name].parameters(), getattr(self, name).parameters())
        ]


@torch.no_grad()
def start(network: nn.Module, generator: torch.Generator) -> None:
    """Weights of the reference code: uniform with the variance of Glorot (linear) or He (conv).

    The fans of a convolution are divided by its stride on the side that the stride thins out.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            variance = 2 / (layer.in_features + layer.out_features)
        elif isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            taps, thin = math.prod(layer.kernel_size), math.prod(layer.stride)
            fan_in, fan_out = layer.in_channels * taps, layer.out_channels * taps
            if isinstance(layer, nn.ConvTranspose2d):
                fan_in /= thin
            else:
                fan_out /= thin
            variance = 4 / (fan_in + fan_out)
        else:
            continue
        bound = math.sqrt(3 * variance)
        layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.zero_()


def _stride(large: tuple[int, ...], small: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if a == b else 2 for a, b in zip(large, small))
