"""Single-cell counts: the most variable genes on a logarithmic scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .errors import DataError
from .recipe import Recipe

N_GENES = 2000


def log_counts(counts) -> Any:
    """Return log2(x + 1) of a CSR matrix as float32; zeros stay zeros."""
    logged = sparse.csr_matrix(counts, dtype=np.float32, copy=True)
    logged.data = np.log2(logged.data + 1)
    return logged


def variable_genes(logged, n_genes: int = N_GENES) -> np.ndarray:
    """Return the positions of the genes with the largest variance, in ascending order."""
    mean = np.asarray(logged.mean(axis=0), np.float64).ravel()
    square = np.asarray(logged.multiply(logged).mean(axis=0), np.float64).ravel()
    best = np.argsort(mean**2 - square, kind="stable")[:n_genes]
    return np.sort(best).astype(np.int64)


def fit_counts(counts) -> tuple[np.ndarray, dict, dict]:
    """Return rows, settings and arrays of ``log2(x + 1) / peak`` on the variable genes.

    counts: CSR (n, g) -> float32 (n, min(g, 2000)) in 0..1
    """
    logged = log_counts(counts)
    genes = variable_genes(logged)
    X = logged[:, genes].toarray()
    peak = float(X.max()) or 1.0
    settings = {"n_genes": int(counts.shape[1]), "peak": peak, "transform": "log2(x + 1) / peak"}
    return X / np.float32(peak), settings, {"genes": genes}


def apply_counts(counts, recipe: Recipe, name: str) -> np.ndarray:
    """Treat new raw counts as the fitted ones were."""
    n_genes = recipe.counts["n_genes"]
    if counts.ndim != 2 or counts.shape[1] != n_genes:
        raise DataError(
            f"{name} has rows of shape {tuple(counts.shape[1:])}, the model was fitted on raw "
            f"counts of {n_genes} genes; give all of them in the same order"
        )
    rows = log_counts(counts)[:, recipe.arrays["genes"]].toarray()
    return rows / np.float32(recipe.counts["peak"])
