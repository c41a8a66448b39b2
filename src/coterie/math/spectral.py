"""Spectral clustering of a graph of nearest neighbours."""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh

from .kmeans import kmeans


def adjacency(near):  # (n, k) int64 -> CSR (n, n)
    """Symmetric: an edge counts half from each end."""
    n, k = near.shape
    ones = np.full(n * k, 0.5, np.float32)
    graph = sp.csr_matrix((ones, near.numpy().ravel(), np.arange(0, n * k + 1, k)), (n, n))
    return (graph + graph.T).tocsr()


def spectral_embedding(graph, k, rng):  # CSR (n, n) -> (n, k) float32
    """Leading eigenvectors of D^-1/2 A D^-1/2, divided by the root of the degree."""
    n = graph.shape[0]
    root = np.sqrt(np.maximum(np.asarray(graph.sum(1)).ravel(), 1e-12))
    inverse = sp.diags(1 / root)
    normalised = (inverse @ graph @ inverse).astype(np.float64)
    if k + 1 >= n or n < 50:
        vectors = np.linalg.eigh(normalised.toarray())[1][:, -k:]
    else:
        # eigenvalues near 1 crowd together when the graph has weak links: a wider Krylov space
        start, width = rng.standard_normal(n), min(n, max(4 * k, 40))
        vectors = eigsh(normalised, k, which="LA", v0=start, ncv=width, tol=1e-6)[1]
    return np.ascontiguousarray((vectors / root[:, None]), dtype=np.float32)


def spectral_labels(near, k, rng, n_init=10):  # (n, neighbours) -> (n,) int64
    embedding = spectral_embedding(adjacency(near), k, rng)
    return kmeans(torch.from_numpy(embedding), k, rng=rng, n_init=n_init).labels
