"""Scores of a clustering, always over all rows: with labels, and without.

Only for looking at results: nothing here is used in training.
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score


def accuracy(y, labels):  # (n,), (n,) -> float
    """Share of rows whose cluster is matched to their class, under the best one-to-one matching.

    The table of counts is padded to a square: with more clusters than classes the surplus
    clusters count as wrong. (Purity, where several clusters may share a class, is higher.)
    """
    table = contingency(y, labels)
    square = np.zeros((max(table.shape),) * 2, dtype=np.int64)
    square[: table.shape[0], : table.shape[1]] = table
    rows, columns = linear_sum_assignment(square, maximize=True)
    return float(square[rows, columns].sum() / table.sum())


def nmi(y, labels):  # (n,), (n,) -> float
    """Normalised mutual information with the arithmetic mean of the entropies (DEKM's choice)."""
    y, labels = _check(y, labels)
    return float(normalized_mutual_info_score(y, labels, average_method="arithmetic"))


def nmi_geometric(y, labels):  # (n,), (n,) -> float
    """Normalised mutual information with the geometric mean of the entropies (DKM's choice)."""
    y, labels = _check(y, labels)
    return float(normalized_mutual_info_score(y, labels, average_method="geometric"))


def ari(y, labels):  # (n,), (n,) -> float
    """Adjusted Rand index: 1 for equal partitions, about 0 for independent ones."""
    y, labels = _check(y, labels)
    return float(adjusted_rand_score(y, labels))


def scores(y, labels):
    """All scores that need labels: ``dict(acc, nmi, nmi_geo, ari)``.

    Rows with the label -1 were left out by the method (`reject`) and are left out here too;
    ``coverage`` then says which share of the rows the scores are about.
    """
    y, labels = _check(y, labels)
    kept = labels >= 0
    if not kept.all():
        if not kept.any():
            raise ValueError(f"all {len(labels)} rows have the label -1; lower reject")
        return scores(y[kept], labels[kept]) | {"coverage": float(kept.mean())}
    return {
        "acc": accuracy(y, labels),
        "nmi": nmi(y, labels),
        "nmi_geo": nmi_geometric(y, labels),
        "ari": ari(y, labels),
    }


def batch_scores(y, labels, size=100):  # (n,), (n,) -> dict of float
    """Scores as the code of the CueGAN paper computes them; for comparison with its tables only.

    Within each batch of `size` rows, in the given order: purity (each cluster counts for its most
    frequent class, so several may share one), NMI and ARI, then the mean over the batches. A small
    batch flatters: random labels of ten classes in batches of 64 have purity .32 and NMI .31.
    """
    y, labels = _check(y, labels)
    found = []
    for start in range(0, len(y), size):
        a, b = y[start : start + size], labels[start : start + size]
        found.append((contingency(a, b).max(axis=0).sum() / len(a), nmi(a, b), ari(a, b)))
    names = ("purity_by_batch", "nmi_by_batch", "ari_by_batch")
    return dict(zip(names, np.mean(found, axis=0).tolist()))


def label_free(z, labels, proba=None, sample=2000, seed=0, n_clusters=None):
    """Scores that need no labels.

    Parameters
    ----------
    z : (n, d) embedding, used for the silhouette only.
    labels : (n,) clusters, 0 to k-1; rows with -1 belong to none and are left out.
    proba : (n, k) soft assignments, if there are any.
    sample, seed : the silhouette looks at `sample` rows drawn with `seed` (it compares all pairs).
    n_clusters : k; taken from `proba`, else the largest label + 1, if None.

    Returns
    -------
    dict with
        silhouette : -1 to 1; NaN if the sample has only one cluster or no cluster of two rows
        clusters_used, smallest_share, largest_share : empty clusters count as share 0
        uniformity : entropy of the shares over ln k, 1 for equal sizes; 0 if k is 1
        entropy : mean entropy of a row of `proba` in nats, 0 for hard assignments (with `proba`)
        rejected : share of the rows with -1 (if there are any)
    """
    z, labels = np.asarray(z), np.asarray(labels).astype(np.int64)
    _same_length("z", z, "labels", labels)
    proba = None if proba is None else np.asarray(proba, dtype=np.float64)
    k = n_clusters or (proba.shape[1] if proba is not None else int(labels.max()) + 1)
    if (kept := labels != -1).any() and not kept.all():
        proba = None if proba is None else proba[kept]
        found = label_free(z[kept], labels[kept], proba, sample, seed, k)
        return found | {"rejected": float(1 - kept.mean())}
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"labels run from {labels.min()} to {labels.max()} but there are {k} clusters; "
            f"number them 0 to {k - 1} or raise n_clusters"
        )
    shares = np.bincount(labels, minlength=k) / len(labels)
    result = {
        "silhouette": _silhouette(z, labels, sample, seed),
        "clusters_used": int((shares > 0).sum()),
        "smallest_share": float(shares.min()),
        "largest_share": float(shares.max()),
        "uniformity": float(_entropy(shares) / np.log(k)) if k > 1 else 0.0,
    }
    if proba is not None:
        _same_length("proba", proba, "labels", labels)
        result["entropy"] = float(_entropy(proba).mean())
    return result


def contingency(y, labels):  # (n,), (n,) -> (classes, clusters)
    """Table of counts: rows of each class in each cluster that occurs."""
    y, labels = _check(y, labels)
    classes, y = np.unique(y, return_inverse=True)
    clusters, labels = np.unique(labels, return_inverse=True)
    size = len(classes) * len(clusters)
    counts = np.bincount(y * len(clusters) + labels, minlength=size)
    return counts.reshape(len(classes), len(clusters))


def _silhouette(z, labels, sample, seed):
    if len(z) > sample:
        rows = np.random.default_rng(seed).choice(len(z), sample, replace=False)
        z, labels = z[rows], labels[rows]
    if not 1 < len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(z.reshape(len(z), -1), labels))


def _entropy(p):  # (..., k) -> (...)
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0.0).sum(axis=-1)


def _check(y, labels) -> tuple[Any, Any]:
    y, labels = np.asarray(y), np.asarray(labels)
    for name, values in (("y", y), ("labels", labels)):
        if values.ndim != 1:
            raise ValueError(f"{name} has shape {values.shape} but must be one label for each row")
    _same_length("y", y, "labels", labels)
    return y, labels


def _same_length(first, a, second, b):
    if len(a) != len(b):
        raise ValueError(
            f"{first} has {len(a)} rows but {second} has {len(b)}; give both for the same rows"
        )
    if len(a) == 0:
        raise ValueError(f"{first} and {second} have 0 rows; give at least 1")
