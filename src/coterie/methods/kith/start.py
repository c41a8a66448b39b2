"""Where heads begin: at clusters of smoothed features, so that seeds begin at the same place.

The features of each row are averaged over the neighbour graph a few times. k-means divides the
result into as many clusters as a head has outputs, from starts that do not know the seed, and each
head is fitted to one such division by least squares.
"""

import math
from collections.abc import Iterable

import torch

from ...math.graph import smooth
from ...math.merge import one_hot
from ...runtime.rng import numpy_rng, torch_rng
from .rivals import means

ROUNDS = 10  # of averaging: past the noise of single rows, well below the size of a cluster
RESTARTS = 3


def smoothed(values: torch.Tensor, graph: torch.Tensor, rounds: int) -> torch.Tensor:  # (n, c)
    """Each row and, twice as heavy, the mean of its neighbours, averaged again and again."""
    for _ in range(rounds):
        values = (values + 2 * smooth(values, graph)) / 3
    return values


def random_heads(e: int, width: int, seed: int) -> dict[str, torch.Tensor]:
    """Weight (e, width) and bias (width,), small."""
    bound = 1 / math.sqrt(e)
    weight = bound * (2 * torch.rand(e, width, generator=torch_rng(seed, "heads")) - 1)
    return {"weight": weight, "bias": torch.zeros(width)}


def starting_heads(
    h: torch.Tensor,  # (n, e)
    z: torch.Tensor,  # (n, m)
    graph: torch.Tensor,
    outputs: list[int],  # of each head
) -> dict[str, torch.Tensor]:
    """Weight (e, all outputs) and bias of heads that tell clusters of the smoothed features."""
    space = smoothed(z, graph, ROUNDS)
    found = [means(space, o, numpy_rng(0, "start", i), RESTARTS) for i, o in enumerate(outputs)]
    return fitted_heads(h, (one_hot(v, o) for v, o in zip(found, outputs)))


def fitted_head(h: torch.Tensor, q: torch.Tensor) -> dict[str, torch.Tensor]:
    """Weight (e, k) and bias (k,) by least squares: where the learning of labels begins."""
    return fitted_heads(h, [q])


def fitted_heads(h: torch.Tensor, targets: Iterable[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weight (e, all outputs) and bias of heads, each fitted to an assignment (n, outputs)."""
    mean = h.mean(0)
    x = (h - mean).double()
    gram = x.T @ x / len(x)
    gram.diagonal().add_(1e-3 * float(gram.diagonal().mean()) + 1e-9)
    weights, biases = [], []
    for q in targets:  # one at a time: all of them would be much larger than the rows
        share = q.mean(0)
        weight = torch.linalg.solve(gram, x.T @ (q - share).double() / len(x)).float()
        weights.append(4 * weight)  # fitted values 0 and 1 become logits that tell clusters apart
        biases.append(4 * share - mean @ weights[-1])
    return {"weight": torch.cat(weights, 1), "bias": torch.cat(biases)}
