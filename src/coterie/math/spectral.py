"""Spectral clustering of a graph of nearest neighbours."""

import inspect

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from .kmeans import kmeans

# newer SciPy restarts with vectors of its own making, from fresh entropy unless it is given a rng
SEEDED = "rng" in inspect.signature(eigsh).parameters


def adjacency(near, weights=None):  # (n, k) int64, (n, k) or None: ones -> CSR (n, n)
    """Symmetric: an edge counts half from each end."""
    n, k = near.shape
    values = np.ones(n * k, np.float32) if weights is None else weights.numpy().ravel()
    ends = near.numpy().ravel(), np.arange(0, n * k + 1, k)
    graph = sp.csr_matrix((values / 2, *ends), (n, n))
    return (graph + graph.T).tocsr()


def spectral_embedding(graph, k, rng):  # CSR (n, n) -> (n, k) float32
    """Leading eigenvectors of D^-1/2 A D^-1/2, divided by the root of the degree.

    A graph in pieces has those of its pieces. They are computed one by one: each has an eigenvalue
    of 1, and an iteration that starts from one vector finds one of several equal eigenvalues.
    """
    n = graph.shape[0]
    root = np.sqrt(np.maximum(np.asarray(graph.sum(1)).ravel(), 1e-12))
    inverse = sp.diags(1 / root)
    normalised = (inverse @ graph @ inverse).astype(np.float64).tocsr()
    count, piece = connected_components(graph, directed=False)
    if count == 1:
        vectors = _leading(normalised, k, rng)[1]
    else:
        sizes = np.bincount(piece)
        found = []  # eigenvalue, size of the piece, its rows, eigenvector
        for c in np.argsort(-sizes, kind="stable")[: max(k, 1)]:
            rows = np.flatnonzero(piece == c)
            values, part = _leading(normalised[rows][:, rows], min(k, len(rows)), rng)
            found += [(round(v, 6), len(rows), rows, part[:, i]) for i, v in enumerate(values)]
        found.sort(key=lambda one: one[:2], reverse=True)
        vectors = np.zeros((n, k))
        for i, (_, _, rows, vector) in enumerate(found[:k]):
            vectors[rows, i] = vector
    return np.ascontiguousarray((vectors / root[:, None]), dtype=np.float32)


def _leading(matrix, k, rng):  # symmetric (n, n) -> (k,), (n, k)
    n = matrix.shape[0]
    if k + 1 >= n or n < 50:
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-k:], vectors[:, -k:]
    # eigenvalues near 1 crowd together when the graph has weak links: a wider Krylov space
    start, width = rng.standard_normal(n), min(n, max(4 * k, 40))
    seeded = {"rng": rng} if SEEDED else {}
    return eigsh(matrix, k, which="LA", v0=start, ncv=width, tol=1e-6, **seeded)


def spectral_labels(near, k, rng, n_init=10):  # (n, neighbours) -> (n,) int64
    embedding = spectral_embedding(adjacency(near), k, rng)
    return kmeans(torch.from_numpy(embedding), k, rng=rng, n_init=n_init).labels
