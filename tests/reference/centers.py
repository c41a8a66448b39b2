"""Centres, scatter and Lloyd's iterations, one row at a time."""

from itertools import permutations

from reference.assign import squared_distance


def cluster_sums(z, labels, k):
    sums = [[0.0] * len(z[0]) for _ in range(k)]
    counts = [0] * k
    for row, label in zip(z, labels, strict=True):
        counts[label] += 1
        for j, value in enumerate(row):
            sums[label][j] += value
    return sums, counts


def running_mean(centers, counts, z, labels):
    """DCN: count_k += 1, then c_k moves by 1/count_k towards each row in turn."""
    centers, counts = [list(c) for c in centers], list(counts)
    for row, label in zip(z, labels, strict=True):
        counts[label] += 1
        rate = 1 / counts[label]
        centers[label] = [(1 - rate) * c + rate * h for c, h in zip(centers[label], row)]
    return centers, counts


def within_scatter(z, labels, centers):
    d = len(z[0])
    scatter = [[0.0] * d for _ in range(d)]
    for row, label in zip(z, labels, strict=True):
        gap = [x - c for x, c in zip(row, centers[label], strict=True)]
        for i in range(d):
            for j in range(d):
                scatter[i][j] += gap[i] * gap[j]
    return scatter


def lloyd(z, centers, steps):
    """Lloyd's iterations from given centres; no cluster may run empty."""
    for _ in range(steps):
        labels = nearest(z, centers)
        sums, counts = cluster_sums(z, labels, len(centers))
        centers = [[s / counts[c] for s in sums[c]] for c in range(len(centers))]
    return centers


def nearest(z, centers):
    labels = []
    for row in z:
        distances = [squared_distance(row, c) for c in centers]
        labels.append(distances.index(min(distances)))
    return labels


def inertia(z, labels, centers):
    return sum(squared_distance(row, centers[c]) for row, c in zip(z, labels, strict=True))


def best_agreement(labels, reference, k):
    """Most rows that agree under any renaming of the labels: all k! tried."""
    return max(
        sum(names[a] == b for a, b in zip(labels, reference, strict=True))
        for names in permutations(range(k))
    )
