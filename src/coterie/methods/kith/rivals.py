"""Clusterings of the same features and graph that fail where the network's heads do not.

k-means and a mixture of Gaussians see distances, spectral clustering the graph as a whole, and
linkage thin and winding shapes. Each is a labelling of the rows; the network learns the winner.
"""

import numpy as np
import torch

from ...math.assign import squared_distances
from ...math.full_mixture import full_mixture
from ...math.graph import exact
from ...math.kmeans import kmeans
from ...math.linkage import balanced_linkage, spanning_tree
from ...math.spectral import spectral_labels

TRIAL_ROWS, MIXTURE_ROWS = 2000, 10_000  # rows that EM tries starts on and learns from, at most
EM_STEPS = 50
SPECTRAL_NEIGHBOURS = 10
SPECTRAL_ROWS = 12_000  # rows up to which eigenvectors cost less than the network
LINKED_ROWS, LINKED_VALUES = 4_000, 20_000  # of a spanning tree, at most, whichever is more


def rivals(
    z: torch.Tensor,  # (n, m) features
    k: int,
    rng: np.random.Generator,
    starts: list[torch.Tensor],
) -> dict[str, torch.Tensor]:
    """Labels (n,) by name; `starts` are labellings from which EM begins besides these."""
    n = len(z)
    found = {"kmeans": kmeans(z, k, rng=rng, n_init=5 if n <= MIXTURE_ROWS else 1).labels}
    found["linkage"] = linkage(z, k, rng)
    if n <= SPECTRAL_ROWS:
        # few neighbours leave the graph in pieces, which eigenvectors count as clusters
        graph = exact(z, min(SPECTRAL_NEIGHBOURS, n - 1))
        found["spectral"] = spectral_labels(graph, k, rng, n_init=5)
    found["mixture"] = mixture(z, k, rng, [*found.values(), *starts])
    return found


def mixture(z, k, rng, starts):  # -> (n,)
    """EM from each of `starts` on a few rows; the likeliest goes on with more of them."""
    few, many = (_some(len(z), most, rng) for most in (TRIAL_ROWS, MIXTURE_ROWS))
    runs = [full_mixture(z[few], start[few], k, max_iter=EM_STEPS) for start in starts]
    best = max(runs, key=lambda run: run.bound)
    if len(many) > len(few):
        best = full_mixture(z[many], best.log_joint(z[many]).argmax(1), k, max_iter=EM_STEPS)
    return torch.cat([best.log_joint(part).argmax(1) for part in z.split(65536)])


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
