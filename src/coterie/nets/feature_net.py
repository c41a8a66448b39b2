"""A small network on fixed features, with batch normalisation that knows of other processes."""

import itertools
import math
from typing import Any

import torch
from torch import nn
from torch.nn.utils import skip_init


class SharedNorm(nn.Module):
    """Batch normalisation whose moments are those of the whole batch, on all processes.

    `world` is set by the method before training; it is not part of the state.
    """

    def __init__(self, size: int, momentum: float = 0.1, eps: float = 1e-5):
        super().__init__()
        self.momentum, self.eps, self.world = momentum, eps, None
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("running_mean", torch.zeros(size))
        self.register_buffer("running_var", torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (b, size) -> (b, size)
        if not self.training:
            scale = self.weight * (self.running_var + self.eps).rsqrt()
            return x * scale + (self.bias - self.running_mean * scale)
        if self.world is None or self.world.size == 1:
            # the moments come with the result: no second pass over the batch for them
            out, mean, rate = torch.native_batch_norm(
                x, self.weight, self.bias, None, None, True, 0.0, self.eps
            )
            self._remember(mean.detach(), rate.detach() ** -2 - self.eps)
            return out
        count = self.world.sum(x.new_tensor(float(len(x))))
        mean = self.world.sum_with_grad(x.sum(0)) / count
        var = self.world.sum_with_grad((x - mean).square().sum(0)) / count
        self._remember(mean.detach(), var.detach())
        return (x - mean) * (self.weight * (var + self.eps).rsqrt()) + self.bias

    def _remember(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(var, self.momentum)


class FeatureNet(nn.Module):
    """Fixed features, then linear layers, each with normalisation and ReLU; there is no way back.

    encode: (b, *shape) -> (b, p);  body: (b, m) features -> (b, p)
    """

    def __init__(self, features: Any, sizes: tuple[int, ...], generator: torch.Generator):
        super().__init__()
        self.features, self.embedding_dim = features, sizes[-1]
        self.takes_sparse, self.takes_features = features.kind in ("text", "counts"), True
        pairs = list(itertools.pairwise((features.size, *sizes)))
        self.layers: Any = nn.ModuleList(skip_init(nn.Linear, i, o, bias=False) for i, o in pairs)
        self.norms: Any = nn.ModuleList(SharedNorm(o) for _, o in pairs)
        for (i, _), layer in zip(pairs, self.layers):
            bound = 1 / math.sqrt(i)
            layer.get_parameter("weight").data.uniform_(-bound, bound, generator=generator)

    def encode(self, x: Any) -> torch.Tensor:  # rows, sparse rows, or `Precomputed` ones
        return self.body(x.features if hasattr(x, "features") else self.features(x))

    def body(self, z: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms):
            z = norm(layer(z)).relu()
        return z

    @torch.no_grad()
    def update_norms(self, z: torch.Tensor) -> None:
        """Take the moments of these features, layer by layer, for all that comes after training.

        Training sees random views, and few steps leave running moments behind the weights.
        """
        self.eval()
        for layer, norm in zip(self.layers, self.norms):
            z = layer(z)
            var, mean = torch.var_mean(z, 0, correction=0)
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(var)
            z = norm(z).relu()

    def share(self, world: Any) -> None:
        """Normalise over the processes of `world` from now on."""
        for norm in self.norms:
            norm.world = world
