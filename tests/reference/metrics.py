"""Clustering scores from their definitions."""

import math
from itertools import combinations, permutations


def accuracy(y, labels):
    """Best one-to-one renaming, all tried; both sides padded to the same number of names."""
    classes, clusters = sorted(set(y)), sorted(set(labels))
    size = max(len(classes), len(clusters))
    best = 0
    for names in permutations(range(size)):
        hits = sum(names[clusters.index(b)] == classes.index(a) for a, b in zip(y, labels))
        best = max(best, hits)
    return best / len(y)


def entropy(values):
    return -sum(
        values.count(v) / len(values) * math.log(values.count(v) / len(values)) for v in set(values)
    )


def nmi(y, labels, geometric):
    n = len(y)
    mutual = 0.0
    for a in set(y):
        for b in set(labels):
            both = sum(1 for s, t in zip(y, labels) if s == a and t == b)
            if both:
                mutual += both / n * math.log(n * both / (y.count(a) * labels.count(b)))
    first, second = entropy(y), entropy(labels)
    mean = math.sqrt(first * second) if geometric else (first + second) / 2
    return mutual / mean


def ari(y, labels):
    """Pairs counted one by one."""
    together = same_y = same_labels = pairs = 0
    for i, j in combinations(range(len(y)), 2):
        pairs += 1
        a, b = y[i] == y[j], labels[i] == labels[j]
        same_y += a
        same_labels += b
        together += a and b
    expected = same_y * same_labels / pairs
    most = (same_y + same_labels) / 2
    if most == expected:  # both all singletons, or both one cluster: equal partitions
        return 1.0
    return (together - expected) / (most - expected)
