"""Merging along the minimum spanning tree, without giants: for thin and winding clusters.

Single linkage follows any shape, but splits off one stray row after the other. Genie (Gagolewski,
Bartoszuk, Cena 2016) forbids that: as long as the sizes of the clusters are too unequal (Gini index
above a threshold), one of the smallest clusters has to take part in the next merge.
"""

import heapq

import numpy as np
import torch

UNEQUAL = 0.3  # Gini index of the sizes from which on small clusters have to merge first


@torch.no_grad()
def spanning_tree(z):  # (n, d) tensor -> (n - 1, 2) int64, (n - 1,) float32, shortest first
    """Edges of a minimum spanning tree by Prim's rule: n passes over the rows."""
    n = len(z)
    z = z - z.mean(0)
    norms = z.square().sum(1)
    gap = torch.full((n,), torch.inf)
    other = torch.zeros(n, dtype=torch.int64)
    edges, lengths = np.empty((n - 1, 2), np.int64), np.empty(n - 1, np.float32)
    last, inside = 0, torch.zeros(n, dtype=torch.bool)
    for step in range(n - 1):
        inside[last] = True
        far = torch.addmv(norms, z, z[last], alpha=-2).add_(norms[last]).clamp_min_(0)
        nearer = far < gap
        gap = torch.where(nearer, far, gap)
        other.masked_fill_(nearer, last)
        gap[inside] = torch.inf
        last = int(gap.argmin())
        edges[step] = last, int(other[last])
        lengths[step] = float(gap[last]) ** 0.5
    order = np.argsort(lengths, kind="stable")
    return edges[order], lengths[order]


def gini(sizes):  # (k,) -> float in 0..1
    """How unequal sizes are: sum of |a - b| over all pairs, over (k - 1) times their sum."""
    sizes = np.sort(np.asarray(sizes, np.float64))
    k = len(sizes)
    if k < 2:
        return 0.0
    return float(((2 * np.arange(1, k + 1) - k - 1) * sizes).sum() / ((k - 1) * sizes.sum()))


def balanced_linkage(edges, k, unequal=UNEQUAL):  # (n - 1, 2) of a tree, shortest first -> (n,)
    """Join clusters along the edges until k remain; labels 0..k-1."""
    n = len(edges) + 1
    forest = _Forest(n)
    used = np.zeros(n - 1, bool)
    # edges at each cluster, as heaps: the number of an edge is its rank
    at: list[list[int]] = [[] for _ in range(n)]
    for e, (a, b) in enumerate(edges.tolist()):
        at[a].append(e)
        at[b].append(e)
    shortest = 0
    for _ in range(n - k):
        if forest.inequality() > unequal:
            edge = _smallest_clusters_edge(forest, at, used, edges)
        else:
            while used[shortest]:
                shortest += 1
            edge = shortest
        used[edge] = True
        a, b = (forest.find(x) for x in edges[edge].tolist())
        if len(at[a]) < len(at[b]):
            a, b = b, a
        at[a] += at[b]  # kept sorted enough: heapq repairs it below
        heapq.heapify(at[a])
        at[b] = []
        forest.join(a, b)
    return np.unique([forest.find(x) for x in range(n)], return_inverse=True)[1]


def _smallest_clusters_edge(forest, at, used, edges):
    """The shortest open edge at a cluster of the smallest size."""
    best = None
    for root in forest.smallest():
        heap = at[root]
        while heap and used[heap[0]]:
            heapq.heappop(heap)
        if heap and (best is None or heap[0] < best):
            best = heap[0]
    return best


class _Forest:
    """Clusters that grow, their sizes, and the Gini index of the sizes, kept up to date."""

    def __init__(self, n):
        self.parent = list(range(n))
        self.size = [1] * n
        self.roots = {1: set(range(n))}  # by size
        self.count, self.n = n, n

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def join(self, a, b):
        for root in (a, b):
            group = self.roots[self.size[root]]
            group.discard(root)
            if not group:
                del self.roots[self.size[root]]
        self.parent[b] = a
        self.size[a] += self.size[b]
        self.roots.setdefault(self.size[a], set()).add(a)
        self.count -= 1

    def smallest(self):
        return self.roots[min(self.roots)]

    def inequality(self):
        if self.count < 2:
            return 0.0
        below, total = 0, 0.0
        for size in sorted(self.roots):  # few different sizes: about the root of 2 n at most
            c = len(self.roots[size])
            # ranks below + 1 .. below + c share this size
            total += size * (c * (2 * below + c + 1) - c * (self.count + 1))
            below += c
        return total / ((self.count - 1) * self.n)
