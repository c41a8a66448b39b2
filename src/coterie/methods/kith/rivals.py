"""Clusterings of the same features and graph that fail where the network's heads do not.

k-means and a mixture of Gaussians see distances, spectral clustering the graph as a whole, and
linkage thin and winding shapes. Each is a labelling of the rows; the network learns the winner.
"""

import numpy as np
import torch

from ...math.assign import squared_distances
from ...math.full_mixture import full_mixture
from ...math.kmeans import kmeans
from ...math.linkage import balanced_linkage, spanning_tree
from ...math.mixture import diagonal_mixture
from ...math.spectral import spectral_labels

MIXTURE_ROWS = 10_000  # rows that EM learns from, at most
SPECTRAL_ROWS = 12_000  # rows up to which eigenvectors cost less than the network
LINKED_ROWS = 4_000  # rows of a spanning tree, at most; the others follow their nearest one
SHARE = 10  # rows for each number of a full covariance's row, at least


def rivals(
    z: torch.Tensor,  # (n, m) features
    graph: torch.Tensor,  # (n, neighbours)
    k: int,
    rng: np.random.Generator,
    starts: list[torch.Tensor],
) -> dict[str, torch.Tensor]:
    """Labels (n,) by name; `starts` are labellings from which EM begins besides k-means."""
    n = len(z)
    found = {"kmeans": kmeans(z, k, rng=rng, n_init=5 if n < MIXTURE_ROWS else 1).labels}
    found["mixture"] = mixture(z, k, rng, [found["kmeans"], *starts])
    if n <= SPECTRAL_ROWS:
        found["spectral"] = spectral_labels(graph, k, rng, n_init=5)
    found["linkage"] = linkage(z, k, rng)
    return found


def mixture(z, k, rng, starts):  # -> (n,)
    """The likeliest of the mixtures that EM reaches from `starts`."""
    n, m = z.shape
    seen = _some(n, MIXTURE_ROWS, rng)
    if len(seen) < SHARE * k * m:
        ridge = 1e-6 * float(z.var(0).mean())
        found = diagonal_mixture(z[seen], k, rng=rng, start="kmeans", ridge=ridge)
        precision = 1 / found.variances
        x = z.double()
        logs = (x @ (found.means * precision).T) - 0.5 * x.square() @ precision.T
        return (logs + found.offset - 0.5 * (found.means.square() * precision).sum(1)).argmax(1)
    runs = [full_mixture(z[seen], start[seen], k) for start in starts]
    return max(runs, key=lambda run: run.bound).log_joint(z).argmax(1)


def linkage(z, k, rng):  # -> (n,)
    """Balanced single linkage of a sample of the rows; other rows follow their nearest one."""
    seen = _some(len(z), LINKED_ROWS, rng)
    labels = torch.from_numpy(balanced_linkage(spanning_tree(z[seen])[0], k))
    if len(seen) == len(z):
        return labels
    parts = [squared_distances(part, z[seen]).argmin(1) for part in z.split(2048)]
    return labels[torch.cat(parts)]


def _some(n, most, rng):
    if n <= most:
        return torch.arange(n)
    return torch.from_numpy(np.sort(rng.choice(n, most, replace=False)))
