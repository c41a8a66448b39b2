"""Principal components, learned from a sample and kept as buffers."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from coterie.runtime.device import CPU, to_numpy

EXACT = 1500  # columns up to which axes come from the full covariance
BLOCKS, SPARE = 10, 20  # of the Krylov space, and directions of each beyond those that are wanted


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
        axes, values = axes.to(self.axes.device), values.to(self.axes.device)  # of sparse rows
        axes = axes * (values > 1e-9 * values[:1].clamp_min(1e-30))
        self.axes.zero_()
        self.axes[:, : axes.shape[1]] = axes
        alive = (axes != 0).any(0)
        spread = values[alive].mean().sqrt() if bool(alive.any()) else values.new_ones(())
        self.factor.copy_(1 / spread)

    def forward(self, x):  # (b, d) -> (b, m)
        return ((x - self.mean) @ self.axes) * self.factor

    def of_sparse(self, x):  # CSR (b, d) -> (b, m), without the mean: text is not centred
        """The sum of the axes of each row's words: work by the words that are there."""
        given = (
            x.indices.astype(np.int64),
            x.indptr[:-1].astype(np.int64),
            x.data.astype(np.float32),
        )
        words, starts, weights = (torch.from_numpy(a).to(self.axes.device) for a in given)
        bags = F.embedding_bag(words, self.axes, starts, mode="sum", per_sample_weights=weights)
        return bags * self.factor


def leading_axes(x, m, generator):  # (n, d) tensor or CSR -> (d, m), (m,)
    """Right singular vectors and mean squares of the projections, largest first.

    Narrow data: all of x'x. Wide data: `_by_krylov`, from a random start that the result does not
    show: trailing directions of texts and counts are nearly equal in size, and axes on the way to
    them would give every start neighbours of its own.
    """
    n, d = x.shape
    device = x.device if isinstance(x, torch.Tensor) else CPU
    if d <= EXACT:
        gram = torch.zeros(d, d, dtype=torch.float64)
        for start in range(0, n, 8192):
            part = x[start : start + 8192]
            gram += _product(part.T, part).cpu().double()
        values, vectors = torch.linalg.eigh(gram / n)
        values, vectors = values.flip(0)[:m], vectors.flip(1)[:, :m]
    else:
        values, vectors = _by_krylov(x, m, generator, device)
    # an eigenvector's sign is anybody's: make the largest entry positive
    top = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    vectors = vectors * torch.where(top < 0, -1.0, 1.0)
    return vectors.float().to(device), values.clamp_min(0).float().to(device)


def _by_krylov(x, m, generator, device):  # -> (m,) values, (d, m) vectors, float64
    """Ritz pairs of G = x'x / n in the span of B, GB, .., G^9 B for a random B (d, m + 20)
    (Musco, Musco 2015): as many products as subspace iteration needs, and errors that fall
    with the square root of the gaps."""
    n, d = x.shape
    width = min(d, n, m + SPARE)
    block = torch.linalg.qr(torch.randn(d, width, generator=generator))[0]
    basis, images = block[:, :0], []
    while True:
        basis = torch.cat([basis, block], 1)
        image = _product(x.T, _product(x, block.to(device))).cpu()
        images.append(image)
        left = min(n, d) - basis.shape[1]
        if len(images) == BLOCKS or left == 0:
            break
        block = image[:, :left]
        for _ in range(2):  # the first pass leaves rounding errors of the size of the image
            block = torch.linalg.qr(block - basis @ (basis.T @ block))[0]
    small = (basis.T @ torch.cat(images, 1)).double() / n
    values, turn = torch.linalg.eigh((small + small.T) / 2)
    return values.flip(0)[:m], basis.double() @ turn.flip(1)[:, :m]


def _product(a, b):  # matrices, the first or both sparse -> tensor
    if isinstance(a, torch.Tensor):
        return a @ b
    found = a @ (to_numpy(b) if isinstance(b, torch.Tensor) else b)
    return torch.from_numpy(np.asarray(found.toarray() if hasattr(found, "indptr") else found))
