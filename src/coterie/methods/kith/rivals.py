"""Clusterings of the same features, graph and network that fail where single heads do not.

k-means sees distances, spectral clustering the graph as a whole, linkage thin and winding shapes;
k-means on the embedding sees what the network has learned apart from its heads. Each is a labelling
of the rows; the network learns the winner. `consensus` is what the heads have in common.
"""

import numpy as np
import torch

from ...math.assign import squared_distances
from ...math.graph import exact
from ...math.kmeans import kmeans
from ...math.linkage import balanced_linkage, spanning_tree
from ...math.spectral import spectral_labels

MEANS_ROWS = 10_000  # rows that k-means learns from, at most
RESTARTS = 5
SPECTRAL_NEIGHBOURS = 10
SPECTRAL_ROWS = 12_000  # rows up to which eigenvectors cost less than the network
LINKED_ROWS, LINKED_VALUES = 4_000, 20_000  # of a spanning tree, at most, whichever is more


def table_rivals(z: torch.Tensor, k: int, rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """Labels (n,) by name, of ways that follow shapes in columns that mean something: tables."""
    found = {"linkage": linkage(z, k, rng)}
    if len(z) <= SPECTRAL_ROWS:
        # few neighbours leave the graph in pieces, which eigenvectors count as clusters
        graph = exact(z, min(SPECTRAL_NEIGHBOURS, len(z) - 1))
        found["spectral"] = spectral_labels(graph, k, rng, n_init=RESTARTS)
    return found


def means(
    z: torch.Tensor, k: int, rng: np.random.Generator, n_init: int = RESTARTS
) -> torch.Tensor:  # (n, m) -> (n,)
    """k-means on a sample of the rows; every row follows the nearest centre."""
    seen = _some(len(z), MEANS_ROWS, rng)
    found = kmeans(z[seen], k, rng=rng, n_init=n_init)
    if len(seen) == len(z):
        return found.labels
    return torch.cat([squared_distances(part, found.centers).argmin(1) for part in z.split(8192)])


def linkage(z, k, rng):  # -> (n,)
    """Balanced single linkage of a sample of the rows; other rows follow their nearest one."""
    seen = _some(len(z), max(LINKED_ROWS, LINKED_VALUES // z.shape[1]), rng)
    labels = torch.from_numpy(balanced_linkage(spanning_tree(z[seen])[0], k))
    if len(seen) == len(z):
        return labels
    parts = [squared_distances(part, z[seen]).argmin(1) for part in z.split(2048)]
    return labels[torch.cat(parts)]


def _some(n, most, rng):
    if n <= most:
        return torch.arange(n)
    return torch.from_numpy(np.sort(rng.choice(n, most, replace=False)))
