"""Features in which near means alike: one recipe per kind of data, learned from a sample.

image   histograms of oriented gradients and, at half weight, pixels; 50 principal components each
table   skewed non-negative columns in logarithms, columns standardised; components of wide tables
text    100 singular directions of tf-idf rows, rows at unit length
counts  counts per row total in logarithms (`log_counts`), 50 principal components, unit length
vector  embeddings of another network: rows at unit length, 100 principal components, rows at unit
        length again, so that near means a small angle; columns are not standardised

Everything that is learned (means, axes, deviations) is a buffer, so that new rows take the same
way. Sizes depend on kind and shape of a row alone: directions that the data do not have are zero.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .components import Axes
from .log_counts import LogCounts

KINDS = ("image", "table", "text", "counts", "vector")
SIDE, CELL, BINS = 32, 4, 9  # of the oriented gradients
HOG_ROWS = 256  # images at a time
PARTS = 50  # principal components of each part of an image, of counts, of a wide table
WORDS = 100  # singular directions of text, principal components of embeddings
WIDE = 100  # columns from which on a table is reduced to components
SKEWED = 2.0
TINY = 1e-12  # length below which a vector has no direction
SAMPLE_ROWS = 20_000  # rows that the recipe looks at


def size(kind, shape):  # -> int
    """Number of features."""
    d = math.prod(shape)
    if kind == "image":
        return PARTS + min(PARTS, shape[0] * min(shape[1], SIDE) * min(shape[2], SIDE))
    if kind in ("text", "vector"):
        return min(WORDS, d)
    return d if kind == "table" and d <= WIDE else min(PARTS, d)


class Features(nn.Module):
    """Rows of the engine (scaled, channels first) -> features: (b, *shape) -> (b, m).

    Parameters
    ----------
    kind : one of KINDS.
    shape : of a row.
    """

    def __init__(self, kind, shape):
        super().__init__()
        if kind == "image" and len(shape) != 3:
            raise ValueError(
                f"kind='image' needs images (n, h, w) or (n, h, w, c), but each row here has shape "
                f"{tuple(shape)}; reshape X to images or use kind='auto'"
            )
        self.kind, self.shape, self.size = kind, tuple(shape), size(kind, shape)
        d = math.prod(shape)
        if kind == "image":
            cells = (SIDE // CELL) ** 2 * BINS
            self.hog = Axes(cells, PARTS)
            small = shape[0] * min(shape[1], SIDE) * min(shape[2], SIDE)
            self.pixels = Axes(small, min(PARTS, small))
            return
        if kind == "counts":
            self.counts = LogCounts(d, self.size)
            return
        if kind in ("table", "vector"):
            # the way back from the engine's scaling to the user's units
            self.register_buffer("origin", torch.zeros(d))
            self.register_buffer("unit", torch.ones(d))
        if kind == "table":
            self.register_buffer("logged", torch.zeros(d, dtype=torch.bool))
            self.register_buffer("mean", torch.zeros(d))
            self.register_buffer("factor", torch.ones(d))
        if kind != "table" or d > WIDE:
            self.axes = Axes(d, self.size)

    @torch.no_grad()
    def fit(self, sample, generator, origin=0.0, unit=1.0):  # (m, *shape) scaled rows, or CSR
        """Learn means, deviations and axes; raw values are ``x * unit + origin``."""
        if self.kind == "counts":
            self.counts.fit(sample, generator, origin, unit)
            return self
        if hasattr(sample, "indptr"):
            self.axes.fit(sample, generator, center=False)
            return self
        if self.kind == "image":
            self.hog.fit(hog(sample), generator)
            self.pixels.fit(_small(sample).flatten(1), generator)
            self.pixels.factor *= 0.5
            return self
        x = sample.flatten(1)
        if self.kind == "text":
            self.axes.fit(x, generator, center=False)
            return self
        self.origin.copy_(torch.as_tensor(origin).expand(self.origin.shape))
        self.unit.copy_(torch.as_tensor(unit).expand(self.unit.shape))
        raw = x * self.unit + self.origin
        if self.kind == "vector":
            self.axes.fit(F.normalize(raw, eps=TINY), generator)
            return self
        spread = raw.std(0, correction=0)
        skew = ((raw - raw.mean(0)) / spread.clamp_min(torch.finfo(raw.dtype).tiny)).pow(3).mean(0)
        self.logged.copy_((raw.amin(0) >= -1e-4 * spread) & (skew > SKEWED) & (spread > 0))
        t = self._columns(x)
        sd = t.std(0, correction=0)
        # columns that share a unit keep it: edge pixels are not as good as others, and a map that
        # is wider than high is no square
        shared = not bool(self.logged.any()) and bool((self.unit == self.unit[0]).all())
        if shared:
            sd = sd.square().mean().sqrt().expand_as(sd)
        self.mean.copy_(t.mean(0))
        # beyond rounding, whatever the unit is: a column of 1e-9 counts as one of 1 does
        self.factor.copy_(torch.where(sd > 1e-7 * self.mean.abs(), 1 / sd, 0.0))
        if hasattr(self, "axes"):
            self.axes.fit((t - self.mean) * self.factor, generator)
        return self

    def forward(self, x):  # (b, *shape), or CSR (b, d) of text and counts -> (b, m)
        if self.kind == "counts":
            return F.normalize(self.counts(x), eps=1e-6)
        if hasattr(x, "indptr"):
            return F.normalize(self.axes.of_sparse(x), eps=1e-6)
        if self.kind == "image":
            return torch.cat([self.hog(hog(x)), self.pixels(_small(x).flatten(1))], 1)
        x = x.flatten(1)
        if self.kind == "table":
            z = (self._columns(x) - self.mean) * self.factor
            return self.axes(z) if hasattr(self, "axes") else z
        if self.kind == "vector":
            x = F.normalize(x * self.unit + self.origin, eps=TINY)
        return F.normalize(self.axes(x), eps=1e-6)

    def _columns(self, x):
        raw = x * self.unit + self.origin
        return torch.where(self.logged, raw.clamp_min(0).log1p(), raw)


def _small(x):  # (b, c, h, w) -> the same, at most 32 x 32; colour at equal contrast
    if max(x.shape[2:]) > SIDE:
        size = [min(s, SIDE) for s in x.shape[2:]]
        x = F.interpolate(x, size, mode="bilinear", antialias=True)
    return _contrast(x) if x.shape[1] > 1 else x


def _contrast(x):
    """Photographs differ in light: each image minus its mean, over its deviation."""
    x = x - x.mean((1, 2, 3), keepdim=True)
    return x / (x.square().mean((1, 2, 3), keepdim=True).sqrt() + 0.02)


def hog(x):  # (b, c, h, w) -> (b, 576)
    """Histograms of oriented gradients (Dalal, Triggs 2005) of the image at 32 x 32.

    Cells of 4 x 4 pixels, 9 directions without sign; a gradient is shared by the two nearest
    directions. Each cell is divided by the norms of the four 2 x 2 blocks around it, clipped at
    0.2, and the four versions are averaged. In colour the strongest channel speaks.
    """
    # planes that stay in the processor's cache; an exported graph takes any number of rows at once
    if not torch.compiler.is_exporting() and len(x) > HOG_ROWS:
        return torch.cat([hog(part) for part in x.split(HOG_ROWS)])
    if x.shape[1] > 1:
        x = _contrast(x)
    if tuple(x.shape[2:]) != (SIDE, SIDE):
        x = F.interpolate(x, (SIDE, SIDE), mode="bilinear", antialias=True)
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    dx = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    dy = padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    size = (dx.square() + dy.square()).sqrt()
    if x.shape[1] > 1:
        best = size.argmax(1, keepdim=True)
        dx, dy, size = (t.gather(1, best) for t in (dx, dy, size))
    angle = torch.atan2(dy, dx)[:, 0] * (BINS / math.pi)
    angle = torch.where(angle < 0, angle + BINS, angle)  # (b, 32, 32) in 0..9
    low = angle.floor()
    upper = (angle - low) * size[:, 0]
    lower = size[:, 0] - upper
    low = low.long()
    n = SIDE // CELL
    place = torch.arange(SIDE, device=x.device) // CELL
    place = place[:, None] * n + place  # the cell of each pixel
    votes = x.new_zeros(x.shape[0], BINS * n * n)
    for direction, vote in ((low, lower), (low + 1, upper)):
        direction = torch.where(direction >= BINS, direction - BINS, direction)
        votes.scatter_add_(1, (direction * (n * n) + place).flatten(1), vote.flatten(1))
    cells = votes.view(-1, BINS, n, n) / CELL**2
    energy = F.pad(cells.square().sum(1, keepdim=True), (1, 1, 1, 1))
    blocks = 4 * F.avg_pool2d(energy, 2, stride=1)  # (b, 1, 9, 9), one for each corner of a cell
    scale = (blocks + 1e-4).rsqrt()
    out = torch.zeros_like(cells)
    for a in (0, 1):
        for b in (0, 1):
            out += (cells * scale[:, :, a : a + n, b : b + n]).clamp_max(0.2)
    return (out / 4).flatten(1)
