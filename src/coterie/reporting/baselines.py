"""Plain k-means beside the result: on the rows as the method saw them, and on its embedding."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from coterie.common_ground import kmeans_baseline, silhouette

from .maps import sample_rows

FIT_ROWS = 10_000


def compare(facts, model, X, seed=0, plain=None):
    """Rows of a table: this result, k-means on the data themselves, k-means on the embedding.

    Each has labels, its agreement with this result (adjusted Rand index) and the silhouette in
    both spaces, so that no method is judged only in the space that was made for it.
    """
    out = [{"key": "this", "name": "this result", "labels": facts.labels, "agreement": 1.0}]
    if not 2 <= facts.used < facts.n:
        return [out[0] | {"in_embedding": np.nan, "in_raw": np.nan}]
    plain = plain or kmeans_baseline(model, X, facts.labels)
    own = _fit(facts.z, facts, seed)
    out[0]["in_raw"] = plain.silhouette_of_result
    if plain.model is not model:  # k-means need not be told of itself
        out.append(
            {
                "key": "raw",
                "name": "k-means on the data themselves",
                "labels": plain.labels,
                "agreement": plain.agreement,
                "in_raw": plain.silhouette,
            }
        )
    out.append(
        {
            "key": "embedding",
            "name": "k-means on the embedding",
            "labels": own,
            "agreement": adjusted_rand_score(facts.labels, own),
            "in_raw": plain.silhouette_of(own),
        }
    )
    return [row | {"in_embedding": silhouette(facts.z, row["labels"])} for row in out]


def _fit(data, facts, seed):
    rows = sample_rows(facts.n, FIT_ROWS, seed)
    k = min(facts.used, len(rows))
    n_init = 4 if k <= 20 else 1
    return KMeans(k, n_init=n_init, random_state=seed).fit(data[rows]).predict(data)
