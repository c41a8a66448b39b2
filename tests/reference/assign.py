"""Distances and assignments, one number at a time."""

import math


def squared_distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def squared_distances(z, centers):
    return [[squared_distance(row, c) for c in centers] for row in z]


def cosine_distances(z, centers):
    table = []
    for row in z:
        line = []
        for c in centers:
            dot = sum(x * y for x, y in zip(row, c, strict=True))
            lengths = math.sqrt(sum(x * x for x in row)) * math.sqrt(sum(y * y for y in c))
            line.append(1 - dot / lengths)
        table.append(line)
    return table


def student_t(z, centers, dof):
    table = []
    for row in z:
        kernel = [(1 + squared_distance(row, c) / dof) ** (-(dof + 1) / 2) for c in centers]
        table.append([value / sum(kernel) for value in kernel])
    return table


def target_distribution(q):
    k = len(q[0])
    frequency = [sum(row[j] for row in q) for j in range(k)]
    table = []
    for row in q:
        weight = [row[j] ** 2 / frequency[j] for j in range(k)]
        table.append([value / sum(weight) for value in weight])
    return table


def kl(p, q):
    total = 0.0
    for p_row, q_row in zip(p, q, strict=True):
        for a, b in zip(p_row, q_row, strict=True):
            if a > 0:
                total += a * math.log(a / b)
    return total / len(p)


def softmin(dist, inverse_temperature):
    table = []
    for row in dist:
        kernel = [math.exp(-inverse_temperature * (f - min(row))) for f in row]
        table.append([value / sum(kernel) for value in kernel])
    return table


def fuzzy_membership(dist, fuzzifier):
    """As printed: 1 / sum over k' of (f_k / f_k')^(2/(m-1)), for plain distances."""
    power = 2 / (fuzzifier - 1)
    return [[1 / sum((f / other) ** power for other in row) for f in row] for row in dist]


def round_gaussians(z, centers):
    """Posterior of equal round Gaussians, as wide as the rows lie around their nearest centre."""
    distances = squared_distances(z, centers)
    variance = sum(min(row) for row in distances) / (len(z) * len(z[0]))
    table = []
    for row in distances:
        kernel = [math.exp(-d / (2 * variance)) for d in row]
        table.append([value / sum(kernel) for value in kernel])
    return table
