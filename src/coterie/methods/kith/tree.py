"""The merge tree: from many over-clusters through the clusters of the fit down to one.

An over-cluster holds the rows that share a cluster of the fit and an output of its best over-head.
Pairs are joined by J_ab / (d_a d_b), how much more often than by chance an edge of the neighbour
graph joins the two; first only within clusters of the fit, so that the tree passes through them.
"""

import numpy as np

SEEN_ROWS = 100_000  # whose edges decide


def over_clusters(labels, outputs):  # (n,), (n,) -> (n,) cells, (cells,) label of each
    pairs, cells = np.unique(np.stack([labels, outputs]), axis=1, return_inverse=True)
    return cells.ravel(), pairs[0]


def edges_between(cells, graph):  # (n,), (n, k) -> (o, o), symmetric, sums to 1
    step = -(-len(cells) // SEEN_ROWS)
    o = int(cells.max()) + 1
    codes = cells[::step, None] * o + cells[graph[::step]]
    j = np.bincount(codes.ravel(), minlength=o * o).reshape(o, o).astype(np.float64)
    return (j + j.T) / (2 * j.sum())


def grow(j, of):  # (o, o), (o,) labels -> (o - 1, 4)
    """The tree as scipy's linkage matrix: two parts, height, over-clusters.

    The height is the log of chance over edges, less that of the first merge, and never below that
    of an earlier one.
    """
    j, of, sizes = j.copy(), of.copy(), np.ones(len(j))
    o = len(j)
    names, tree = np.arange(o), []
    while len(j) > 1:
        d = np.maximum(j.sum(1), 1e-15)
        score = np.log(j + 1e-15) - np.log(np.outer(d, d))
        apart = np.tri(len(j), dtype=bool)  # each pair once
        inside = (of[:, None] == of) & ~apart
        score[~inside if inside.any() else apart] = -np.inf
        a, b = np.unravel_index(np.argmax(score), score.shape)
        tree.append((names[a], names[b], -score[a, b], sizes[a] + sizes[b]))
        j[a] += j[b]
        j[:, a] += j[:, b]
        sizes[a] += sizes[b]
        names[a] = o + len(tree) - 1
        j = np.delete(np.delete(j, b, 0), b, 1)
        of, sizes, names = (np.delete(t, b) for t in (of, sizes, names))
    tree = np.array(tree, np.float64).reshape(-1, 4)
    tree[:, 2] = np.maximum.accumulate(tree[:, 2]) - tree[:1, 2]
    return tree


def cut(tree, k):  # (o - 1, 4) -> (o,) group of each over-cluster, 0..k-1
    """The groups that are left when all merges but the last k - 1 are done.

    Groups are numbered by their first over-cluster, which are sorted by the cluster of the fit:
    at as many groups as the fit has clusters, the numbers are its labels.
    """
    o = len(tree) + 1
    group = np.arange(2 * o - 1)
    for step in range(o, 2 * o - k):  # names of merged parts
        group[tree[step - o, :2].astype(np.int64)] = step
    root = np.arange(2 * o - 1)
    for name in range(2 * o - 2, -1, -1):
        root[name] = name if group[name] == name else root[group[name]]
    return np.unique(_firsts(root[:o]), return_inverse=True)[1]


def _firsts(root):  # (o,) -> (o,) the first over-cluster of the same group
    _, first, back = np.unique(root, return_index=True, return_inverse=True)
    return first[back]


def labels_at(tree, cells, labels, k):  # (o - 1, 4), (n,), (n,) -> (n,)
    """Labels of the rows at k clusters; those of the fit where it has k. -1 stays -1."""
    most = len(tree) + 1
    if not 1 <= k <= most:
        raise ValueError(f"k={k}, but the tree has {most} over-clusters; give 1 to {most}")
    return np.where(labels < 0, labels, cut(tree, k)[cells])
