"""What all heads have in common, so that one head's luck does not decide.

Outputs are averaged over the neighbour graph. Every edge is then weighted by how likely heads are
to put its two ends into the same cluster, mean over heads, and the weighted graph is cut by
spectral clustering from several starts; the one that the graph likes best is the consensus
(`judge.merit`). The graph is the same for every seed, and a mean over many heads nearly so.
"""

import numpy as np
import torch
from torch.nn import functional as F

from ...math.merge import joint, one_hot
from ...math.spectral import adjacency, spectral_embedding
from .judge import merit
from .rivals import means
from .start import smoothed

ROWS = 100_000  # rows up to which eigenvectors cost less than the network
VOICE_ROUNDS = 2  # of averaging outputs over the graph
CUTS = 20  # of the weighted graph, from different starts
LEAST = (
    1e-3  # weight of an edge across which no head sees one cluster: the graph stays in one piece
)


def consensus(
    voices: list[torch.Tensor],  # (n, outputs) each, rows sum to one
    graph: torch.Tensor,
    k: int,
    rng: np.random.Generator,
) -> torch.Tensor:  # (n,)
    """Labels on which the voices agree best."""
    voices = [smoothed(p, graph, VOICE_ROUNDS) for p in voices]
    if len(graph) > ROWS:
        return means(torch.cat(voices, 1), k, rng)
    weights = edge_agreement(voices, graph).clamp_min(LEAST)
    space = torch.from_numpy(spectral_embedding(adjacency(graph, weights), k, rng))
    space = F.normalize(space, eps=1e-12)
    found = [means(space, k, rng, 1) for _ in range(CUTS)]
    return max(found, key=lambda labels: merit(joint(one_hot(labels, k), graph, None), False))


def edge_agreement(voices: list[torch.Tensor], graph: torch.Tensor) -> torch.Tensor:  # (n, near)
    """Probability that both ends of an edge have the same output, mean over voices."""
    total = torch.zeros(graph.shape)
    for p in voices:
        for near, out in zip(graph.T, total.T):
            out += (p * p[near]).sum(1)
    return total / len(voices)
