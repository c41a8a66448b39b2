"""Two descriptions of the same rows: which one has the clearer clusters?"""

import torch

from .graph import neighbours
from .kmeans import kmeans
from .merge import joint, modularity, one_hot, stability

NEAREST = 10
STARTS = 5  # of k-means


@torch.no_grad()
def compare(first, second, k, rng):  # (n, d), (n, e) -> (float, float), float
    """How well the clusters of each view fit the neighbours in both, and how much they agree.

    Each view is clustered by k-means. A clustering is worth its modularity on the graph of nearest
    neighbours of the one view plus that on the graph of the other: clusters that only the view they
    were found in can see are worth less than those that both see.
    Agreement is the adjusted Rand index of the two clusterings.
    """
    views = (first, second)
    near = [neighbours(z, min(NEAREST, len(z) - 1), rng) for z in views]
    labels = [kmeans(z, k, rng=rng, n_init=STARTS).labels for z in views]
    worth = [sum(modularity(joint(one_hot(found, k), graph)) for graph in near) for found in labels]
    return (worth[0], worth[1]), stability(labels)
