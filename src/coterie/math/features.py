"""Features in which near means alike: one recipe per kind of data, learned from a sample.

image   histograms of oriented gradients and, at half weight, pixels; 50 principal components each
table   skewed non-negative columns in logarithms, columns standardised; components of wide tables
text    100 singular directions of tf-idf rows, rows at unit length
counts  counts per row total in logarithms, 50 principal components, rows at unit length
vector  embeddings of another network: rows at unit length, 100 principal components, rows at unit
        length again, so that near means a small angle; columns are not standardised

Everything that is learned (means, axes, deviations) is a buffer, so that new rows take the same
way. Sizes depend on kind and shape of a row alone: directions that the data do not have are zero.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

KINDS = ("image", "table", "text", "counts", "vector")
SIDE, CELL, BINS = 32, 4, 9  # of the oriented gradients
HOG_ROWS = 128  # images at a time
PARTS = 50  # principal components of each part of an image, of counts, of a wide table
WORDS = 100  # singular directions of text, principal components of embeddings
WIDE = 100  # columns from which on a table is reduced to components
SKEWED = 2.0
TINY = 1e-12  # length below which a vector has no direction
SAMPLE_ROWS = 20_000  # rows that the recipe looks at
EXACT = 1500  # columns up to which axes come from the full covariance


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
        if kind != "text":
            # the way back from the engine's scaling to the user's units
            self.register_buffer("origin", torch.zeros(d))
            self.register_buffer("unit", torch.ones(d))
        if kind == "table":
            self.register_buffer("logged", torch.zeros(d, dtype=torch.bool))
            self.register_buffer("mean", torch.zeros(d))
            self.register_buffer("factor", torch.ones(d))
        if kind == "counts":
            self.register_buffer("depth", torch.zeros(()))  # total of a usual row; 0: no counts
        if kind != "table" or d > WIDE:
            self.axes = Axes(d, self.size)

    @torch.no_grad()
    def fit(self, sample, generator, origin=0.0, unit=1.0):  # (m, *shape) scaled rows, or CSR
        """Learn means, deviations and axes; raw values are ``x * unit + origin``."""
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
        self.origin.copy_(torch.as_tensor(origin).expand_as(self.origin))
        self.unit.copy_(torch.as_tensor(unit).expand_as(self.unit))
        raw = x * self.unit + self.origin
        if self.kind == "vector":
            self.axes.fit(F.normalize(raw, eps=TINY), generator)
            return self
        if self.kind == "counts":
            near = 1e-3 * raw.abs().clamp_min(1)  # scaling there and back rounds
            if bool(((raw - raw.round()).abs() < near).all()) and raw.max() > 1.5:
                self.depth.copy_(raw.clamp_min(0).sum(1).median().clamp_min(1))
            self.axes.fit(self._log_counts(x), generator)
            return self
        spread = raw.std(0, correction=0)
        skew = ((raw - raw.mean(0)) / spread.clamp_min(torch.finfo(raw.dtype).tiny)).pow(3).mean(0)
        self.logged.copy_((raw.amin(0) >= -1e-4 * spread) & (skew > SKEWED) & (spread > 0))
        t = self._columns(x)
        sd = t.std(0, correction=0)
        # a wide table whose columns share a unit keeps it: edge pixels are not as good as others
        if (
            len(sd) > WIDE
            and not bool(self.logged.any())
            and bool((self.unit == self.unit[0]).all())
        ):
            sd = sd.square().mean().sqrt().expand_as(sd)
        self.mean.copy_(t.mean(0))
        # beyond rounding, whatever the unit is: a column of 1e-9 counts as one of 1 does
        self.factor.copy_(torch.where(sd > 1e-7 * self.mean.abs(), 1 / sd, torch.zeros(())))
        if hasattr(self, "axes"):
            self.axes.fit((t - self.mean) * self.factor, generator)
        return self

    def forward(self, x):  # (b, *shape), or CSR (b, d) of text -> (b, m)
        if hasattr(x, "indptr"):
            return F.normalize(self.axes.of_sparse(x), eps=1e-6)
        if self.kind == "image":
            return torch.cat([self.hog(hog(x)), self.pixels(_small(x).flatten(1))], 1)
        x = x.flatten(1)
        if self.kind == "table":
            z = (self._columns(x) - self.mean) * self.factor
            return self.axes(z) if hasattr(self, "axes") else z
        if self.kind == "counts":
            x = self._log_counts(x)
        if self.kind == "vector":
            x = F.normalize(x * self.unit + self.origin, eps=TINY)
        return F.normalize(self.axes(x), eps=1e-6)

    def _columns(self, x):
        raw = x * self.unit + self.origin
        return torch.where(self.logged, raw.clamp_min(0).log1p(), raw)

    def _log_counts(self, x):
        raw = (x * self.unit + self.origin).clamp_min(0)
        logs = (raw * (self.depth / raw.sum(1, keepdim=True).clamp_min(1))).log1p()
        return torch.where(self.depth > 0, logs, raw)  # not `if`: ONNX has no branch on a value

    def drop(self, x, keep):  # (b, *shape), (b, d) of 0 and 1 -> (b, *shape)
        """Rows that lost some of their words or genes."""
        if self.kind == "text":
            return x * keep
        zero = -self.origin / self.unit  # what the engine's scaling makes of a count of 0
        return torch.where(keep.bool(), x, zero)


class Axes(nn.Module):
    """Leading principal axes; the projection has mean square 1 over all directions of the data."""

    def __init__(self, d, m):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("axes", torch.zeros(d, m))
        self.register_buffer("factor", torch.ones(()))

    def fit(self, x, generator, center=True):  # (n, d), or CSR when not to be centred
        if center:
            self.mean.copy_(x.mean(0))
        centred = x - self.mean if center else x
        axes, values = leading_axes(centred, min(self.axes.shape[1], *x.shape), generator)
        axes = axes * (values > 1e-9 * values[:1].clamp_min(1e-30))
        self.axes.zero_()
        self.axes[:, : axes.shape[1]] = axes
        alive = (axes != 0).any(0)
        spread = values[alive].mean().sqrt() if bool(alive.any()) else torch.ones(())
        self.factor.copy_(1 / spread)

    def forward(self, x):  # (b, d) -> (b, m)
        return ((x - self.mean) @ self.axes) * self.factor

    def of_sparse(self, x):  # CSR (b, d) -> (b, m), without the mean: text is not centred
        """The sum of the axes of each row's words: work by the words that are there."""
        words, starts = (torch.from_numpy(a.astype(np.int64)) for a in (x.indices, x.indptr[:-1]))
        weights = torch.from_numpy(x.data.astype(np.float32))
        bags = F.embedding_bag(words, self.axes, starts, mode="sum", per_sample_weights=weights)
        return bags * self.factor


def leading_axes(x, m, generator):  # (n, d) tensor or CSR -> (d, m), (m,)
    """Right singular vectors and mean squares of the projections, largest first.

    Narrow data: all of x'x. Wide data: subspace iteration from a random start (Halko et al. 2011).
    """
    n, d = x.shape
    if d <= EXACT:
        gram = torch.zeros(d, d, dtype=torch.float64)
        for start in range(0, n, 8192):
            part = x[start : start + 8192]
            gram += _product(part.T, part).double()
        values, vectors = torch.linalg.eigh(gram / n)
        values, vectors = values.flip(0)[:m], vectors.flip(1)[:, :m]
    else:
        basis = torch.randn(d, min(d, n, m + 20), generator=generator)
        for _ in range(5):
            basis = torch.linalg.qr(_product(x.T, _product(x, basis)))[0]
        small = _product(x, basis)  # (n, m + 20)
        values, turn = torch.linalg.eigh((small.T @ small).double() / n)
        values, vectors = values.flip(0)[:m], basis.double() @ turn.flip(1)[:, :m]
    # an eigenvector's sign is anybody's: make the largest entry positive
    top = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    vectors = vectors * torch.where(top < 0, -1.0, 1.0)
    return vectors.float(), values.clamp_min(0).float()


def _product(a, b):  # matrices, the first or both sparse -> tensor
    if isinstance(a, torch.Tensor):
        return a @ b
    found = a @ (b.numpy() if isinstance(b, torch.Tensor) else b)
    return torch.from_numpy(np.asarray(found.toarray() if hasattr(found, "indptr") else found))


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
    angle = torch.atan2(dy, dx)[:, 0] * (BINS / math.pi) % BINS  # (b, 32, 32) in 0..9
    low = angle.floor()
    upper = (angle - low) * size[:, 0]
    lower = size[:, 0] - upper
    low = low.long() % BINS
    planes = x.new_zeros(x.shape[0], BINS, SIDE, SIDE)
    planes.scatter_add_(1, low[:, None], lower[:, None])
    planes.scatter_add_(1, ((low + 1) % BINS)[:, None], upper[:, None])
    cells = F.avg_pool2d(planes, CELL)  # (b, 9, 8, 8)
    energy = F.pad(cells.square().sum(1, keepdim=True), (1, 1, 1, 1))
    blocks = 4 * F.avg_pool2d(energy, 2, stride=1)  # (b, 1, 9, 9), one for each corner of a cell
    scale = (blocks + 1e-4).rsqrt()
    n = SIDE // CELL
    out = torch.zeros_like(cells)
    for a in (0, 1):
        for b in (0, 1):
            out += (cells * scale[:, :, a : a + n, b : b + n]).clamp_max(0.2)
    return (out / 4).flatten(1)
