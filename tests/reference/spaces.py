"""SubKmeans cost, DEKM target, ACe/DeC weights and CM terms, one number at a time."""

import math


def rotate(row, rotation):
    return [sum(row[i] * rotation[i][j] for i in range(len(row))) for j in range(len(rotation[0]))]


def subkmeans_cost(z, labels, centers, rotation, m):
    mean = [sum(column) / len(z) for column in zip(*z, strict=True)]
    cost = 0.0
    for row, label in zip(z, labels, strict=True):
        to_center = rotate([x - c for x, c in zip(row, centers[label])], rotation)
        to_mean = rotate([x - c for x, c in zip(row, mean)], rotation)
        cost += sum(value**2 for value in to_center[:m])
        cost += sum(value**2 for value in to_mean[m:])
    return cost


def cm_terms(x, gamma, mu):
    d, k = len(mu[0]), len(mu)
    dot = [[sum(mu[a][j] * mu[b][j] for j in range(d)) for b in range(k)] for a in range(k)]
    first = second = third = 0.0
    for row, g in zip(x, gamma, strict=True):
        for j in range(d):
            first += (row[j] - sum(g[a] * mu[a][j] for a in range(k))) ** 2
        for a in range(k):
            second += g[a] * (1 - g[a]) * dot[a][a]
            for b in range(k):
                if a != b:
                    third += g[a] * g[b] * dot[a][b]
    return first / len(x), second / len(x), -third / len(x)


def dirichlet(shares, alpha):
    return sum(
        (1 - a) * math.log(share) for a, share in zip(sorted(alpha), sorted(shares), strict=True)
    )


def orthonormality(centers, power):
    total = 0.0
    for i, a in enumerate(centers):
        for j, b in enumerate(centers):
            error = sum(x * y for x, y in zip(a, b, strict=True)) - (1.0 if i == j else 0.0)
            total += abs(error) ** power
    return total
