"""Histograms of oriented gradients, one pixel, one cell, one block at a time."""

import math

SIDE, CELL, BINS, CELLS = 32, 4, 9, 8


def hog(image):
    """(channels, h, w) as lists -> BINS x CELLS x CELLS values as one list.

    Dalal and Triggs: gradients vote for the two nearest of nine directions, cells of 4 x 4 pixels
    are divided by the norm of each of the four blocks of 2 x 2 cells they lie in (outside the image
    is nothing), clipped at 0.2, and the four versions are averaged.
    """
    if len(image) > 1:
        image = equal_contrast(image)
    image = [resized(channel, SIDE, SIDE) for channel in image]
    cells = [[[0.0] * BINS for _ in range(CELLS)] for _ in range(CELLS)]
    for y in range(SIDE):
        for x in range(SIDE):
            slopes = [gradient(channel, y, x) for channel in image]
            size, dx, dy = max((math.hypot(*slope), *slope) for slope in slopes)
            place = (math.degrees(math.atan2(dy, dx)) % 180) / 20  # a direction every 20 degrees
            below = math.floor(place)
            votes = cells[y // CELL][x // CELL]
            votes[below % BINS] += size * (1 - (place - below)) / CELL**2
            votes[(below + 1) % BINS] += size * (place - below) / CELL**2
    return [
        sum(min(cells[y][x][b] / norm, 0.2) for norm in norms_around(cells, y, x)) / 4
        for b in range(BINS)
        for y in range(CELLS)
        for x in range(CELLS)
    ]


def gradient(channel, y, x):
    """Differences of the two pixels beside this one; the rim is repeated outside."""
    last = SIDE - 1
    across = channel[y][min(x + 1, last)] - channel[y][max(x - 1, 0)]
    down = channel[min(y + 1, last)][x] - channel[max(y - 1, 0)][x]
    return across, down


def norms_around(cells, y, x):
    """Norms of the four blocks of 2 x 2 cells that hold the cell (y, x)."""
    norms = []
    for top in (y - 1, y):
        for left in (x - 1, x):
            total = 1e-4
            for v in (top, top + 1):
                for u in (left, left + 1):
                    if 0 <= v < CELLS and 0 <= u < CELLS:
                        total += sum(value**2 for value in cells[v][u])
            norms.append(math.sqrt(total))
    return norms


def equal_contrast(image):
    """All values minus their mean, over their deviation and a little."""
    values = [v for channel in image for row in channel for v in row]
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values)) + 0.02
    return [[[(v - mean) / deviation for v in row] for row in channel] for channel in image]


def resized(channel, height, width):
    """Bilinear: each new pixel is a mean of the old ones around it, weighted by a triangle."""
    rows = [stretched(row, width) for row in channel]
    columns = [stretched(list(column), height) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def stretched(line, size):
    step = len(line) / size
    reach = max(step, 1.0)
    new = []
    for i in range(size):
        middle = (i + 0.5) * step
        weights = [max(0.0, 1 - abs(j + 0.5 - middle) / reach) for j in range(len(line))]
        new.append(sum(w * v for w, v in zip(weights, line, strict=True)) / sum(weights))
    return new
