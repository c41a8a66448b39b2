"""Hills of a density, from the definition: the best way to a higher row, by its lowest point."""

import math


def prominences(height, near):  # (n,), (n, g) -> sorted list; inf: no way to a higher row
    n = len(height)
    best = [[-math.inf] * n for _ in range(n)]  # lowest point of the best way so far
    for a in range(n):
        best[a][a] = height[a]
        for b in near[a]:
            low = min(height[a], height[b])
            best[a][b] = max(best[a][b], low)
            best[b][a] = max(best[b][a], low)
    for c in range(n):
        for a in range(n):
            for b in range(n):
                best[a][b] = max(best[a][b], min(best[a][c], best[c][b]))
    out = []
    for a in range(n):
        saddle = max((best[a][b] for b in range(n) if height[b] > height[a]), default=-math.inf)
        if saddle < height[a]:  # else a neighbour is higher: no hill begins here
            out.append(math.inf if saddle == -math.inf else height[a] - saddle)
    return sorted(out, reverse=True)


def dimension(far):  # (n, k) -> float
    local = []
    for row in far:
        total = sum(math.log(row[-1] / r) for r in row[:-1])
        local.append((len(row) - 1) / total)
    local.sort()
    middle = len(local) // 2
    return local[middle] if len(local) % 2 else (local[middle - 1] + local[middle]) / 2
