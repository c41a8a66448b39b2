"""Plain k-means beside the result: on the scaled data and on the embedding."""

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.preprocessing import StandardScaler

from .maps import sample_rows

FIT_ROWS = 10_000
SCORE_ROWS = 3000


def compare(facts, X, seed=0):
    """Rows of a table: this result, k-means on the data themselves, k-means on the embedding.

    Each has labels, its agreement with this result (adjusted Rand index) and the silhouette in
    both spaces, so that no method is judged only in the space that was made for it.
    """
    raw = raw_matrix(X, facts.kind)
    rows = sample_rows(facts.n, SCORE_ROWS, seed)
    out = [{"key": "this", "name": "this result", "labels": facts.labels}]
    if 2 <= facts.used < facts.n:
        out += [
            {
                "key": "raw",
                "name": "k-means on the data themselves",
                "labels": _fit(raw, facts, seed),
            },
            {
                "key": "embedding",
                "name": "k-means on the embedding",
                "labels": _fit(facts.z, facts, seed),
            },
        ]
    for row in out:
        row["agreement"] = adjusted_rand_score(facts.labels, row["labels"])
        row["in_embedding"] = _silhouette(facts.z[rows], row["labels"][rows])
        row["in_raw"] = _silhouette(raw[rows], row["labels"][rows])
    return out


def raw_matrix(X, kind):  # -> (n, d), dense float32 or CSR
    """The data as plain k-means would be given them: bytes to 0..1, table columns standardised."""
    if sp.issparse(X):
        return sp.csr_matrix(X).astype(np.float32)
    flat = np.asarray(X).reshape(len(X), -1)
    if flat.dtype == np.uint8:
        return flat.astype(np.float32) / 255
    flat = np.nan_to_num(flat.astype(np.float32))
    return StandardScaler().fit_transform(flat) if kind == "table" else flat


def _fit(data, facts, seed):
    rows = sample_rows(facts.n, FIT_ROWS, seed)
    k = min(facts.used, len(rows))
    n_init = 4 if k <= 20 else 1
    return KMeans(k, n_init=n_init, random_state=seed).fit(data[rows]).predict(data)


def _silhouette(data, labels):
    present = len(np.unique(labels))
    return float(silhouette_score(data, labels)) if 2 <= present < len(labels) else float("nan")
