"""One card per cluster: who is in it, and what sets it apart."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.tree import DecisionTreeClassifier

from .maps import sample_rows

TEXT_ROWS = 20_000
RULE_ROWS = 5000
LINE = 240  # characters of a text shown on a card


def members(facts, j, typical=12, border=6, random=6, seed=0):
    """Rows of cluster `j`: nearest its middle, most torn, and drawn at random without overlap."""
    rows = np.flatnonzero(facts.labels == j)
    if not len(rows):
        return {"typical": [], "borderline": [], "random": []}
    distance = np.linalg.norm(facts.z[rows] - facts.centers[j], axis=1)
    near = rows[np.argsort(distance, kind="stable")][:typical]
    torn = rows[np.argsort(-facts.rivalry[rows], kind="stable")] if facts.has_rivals else rows[:0]
    torn = torn[~np.isin(torn, near)][:border]
    rest = rows[~np.isin(rows, np.concatenate([near, torn]))]
    rng = np.random.default_rng([seed, j])
    drawn = rng.permutation(rest)[:random]
    return {"typical": near.tolist(), "borderline": torn.tolist(), "random": drawn.tolist()}


def clip(text, most=LINE):
    """A text on one line, cut at a word."""
    line = " ".join(str(text).split())
    if len(line) <= most:
        return line
    cut = line[:most].rsplit(" ", 1)[0]
    return (cut if 2 * len(cut) > most else line[:most]) + " …"  # one long word is cut itself


def top_terms(texts, labels, k, most=10, seed=0):
    """Per cluster, the words that are frequent in it and rare elsewhere .

    The weight of a word is its part in the Kullback-Leibler divergence of the cluster's words from
    all words, so a word that everybody uses counts little however frequent it is.
    """
    rows = sample_rows(len(texts), TEXT_ROWS, seed)
    try:
        words = CountVectorizer(
            stop_words="english",
            max_features=20_000,
            min_df=2 if len(rows) > 50 else 1,
            token_pattern=r"(?u)\b[^\W\d_][\w'-]+\b",
        )
        counts: Any = words.fit_transform([str(texts[i]) for i in rows])
    except ValueError:  # nothing but stop words
        return [[] for _ in range(k)]
    counts.data = np.minimum(counts.data, 3)  # one long text should not speak for its cluster
    cluster = sp.csr_matrix(
        (np.ones(len(rows)), (labels[rows], np.arange(len(rows)))), (k, len(rows))
    )
    per_group = np.asarray((cluster @ counts).todense(), dtype=np.float64)
    frequency = per_group / np.maximum(per_group.sum(1, keepdims=True), 1)
    overall = per_group.sum(0) / max(1.0, per_group.sum())
    with np.errstate(divide="ignore", invalid="ignore"):  # a word that a cluster never uses
        weight = np.nan_to_num(frequency * np.log(frequency / overall), nan=0.0)
    names = words.get_feature_names_out()
    out = []
    for j in range(k):
        best = np.argsort(-weight[j], kind="stable")[:most]
        top = weight[j, best[0]] or 1.0
        out.append([(str(names[i]), float(weight[j, i] / top)) for i in best if weight[j, i] > 0])
    return out


def effect_sizes(X, labels, k):  # (n, d), (n,) -> (k, d)
    """Cohen's d of every column, each cluster against the rest. Dense or sparse."""
    n = X.shape[0]
    cluster = sp.csr_matrix((np.ones(n), (labels, np.arange(n))), (k, n))
    square = X.multiply(X) if sp.issparse(X) else X * X
    total, total2 = _dense(cluster @ X), _dense(cluster @ square)
    count = np.bincount(labels, minlength=k)[:, None].astype(float)
    rest = n - count
    mean_in, mean_out = _ratio(total, count), _ratio(total.sum(0) - total, rest)
    var_in = np.maximum(_ratio(total2, count) - mean_in**2, 0)
    var_out = np.maximum(_ratio(total2.sum(0) - total2, rest) - mean_out**2, 0)
    spread = np.sqrt((count * var_in + rest * var_out) / n)
    apart, least = mean_in - mean_out, 1e-9 * (abs(mean_in) + abs(mean_out) + 1e-9)
    apart = np.where(abs(apart) > least, apart, 0.0)
    d = apart / np.maximum(spread, least)  # two values, one on each side, are as far as can be
    return np.clip(np.where((count > 0) & (rest > 0), d, 0.0), -20, 20)


def feature_card(X, labels, columns, d, j, most=5, seed=0):
    """The columns that set cluster `j` apart, with its mean against the others', and a rule."""
    order = np.argsort(-abs(d[j]), kind="stable")[:most]
    order = [int(i) for i in order if abs(d[j, i]) >= 0.2]
    inside = labels == j
    out = []
    for i in order:
        column = _column(X, i)
        out.append(
            {
                "name": str(columns[i]),
                "effect": float(d[j, i]),
                "inside": float(column[inside].mean()),
                "outside": float(column[~inside].mean()) if (~inside).any() else float("nan"),
            }
        )
    return out, rule(X, labels, columns, d, j, seed)


def rule(X, labels, columns, d, j, seed=0) -> dict[str, Any] | None:
    """Two questions at most that pick out cluster `j`, and how well they do.

    Returns None when no rule catches at least a third of the cluster.
    """
    rows = sample_rows(X.shape[0], RULE_ROWS, seed)
    inside = labels[rows] == j
    if not inside.any() or inside.all():
        return None
    best = np.argsort(-abs(d[j]), kind="stable")[:30]
    block = np.column_stack([_column(X, i)[rows] for i in best])
    tree = DecisionTreeClassifier(max_depth=2, class_weight="balanced", random_state=seed)
    tree.fit(block, inside)
    leaf = tree.apply(block)
    hits = {v: (inside & (leaf == v)).sum() for v in np.unique(leaf)}

    def quality(v):  # F1: both catching the cluster and catching little else
        return 2 * hits[v] / (inside.sum() + (leaf == v).sum())

    chosen = max(hits, key=quality)
    if hits[chosen] < inside.sum() / 3:
        return None
    tests = tightest(_path(tree.tree_, chosen))
    return {
        "tests": [(str(columns[best[i]]), sign, value) for i, sign, value in tests],
        "covers": float(hits[chosen] / inside.sum()),
        "precision": float(hits[chosen] / (leaf == chosen).sum()),
    }


def tightest(tests):
    """One question for each column and sign: of "> 2.5 and > 6.5" the second says all."""
    kept: dict[tuple, float] = {}
    for column, sign, value in tests:
        old = kept.get((column, sign), value)
        kept[column, sign] = max(old, value) if sign == ">" else min(old, value)
    return [(column, sign, value) for (column, sign), value in kept.items()]


def _path(tree, leaf, node=0) -> Any:
    """The questions from the root to `leaf`: (column, "≤" or ">", threshold)."""
    if node == leaf:
        return []
    left, right = tree.children_left[node], tree.children_right[node]
    if left == -1:
        return None
    for child, sign in ((left, "≤"), (right, ">")):
        below = _path(tree, leaf, child)
        if below is not None:
            return [(int(tree.feature[node]), sign, float(tree.threshold[node])), *below]
    return None


def _column(X, i):
    return X[:, [i]].toarray().ravel() if sp.issparse(X) else X[:, i]


def _dense(m):
    return np.asarray(m.todense() if sp.issparse(m) else m, dtype=np.float64)


def _ratio(a, b):
    return a / np.maximum(b, 1)
