"""Rows as k-means passes over them: centred or sparse, in chunks, this process's part of them."""

import numpy as np
import scipy.sparse as sp
import torch

from coterie.runtime.device import CPU, wide_dtype
from coterie.runtime.processes import current, row_count

IN_MEMORY_VALUES = 2**26  # a tensor up to this size is centred once, a larger one per chunk
NOT_FINITE = "z has NaN or infinite values; clean or scale the rows first"


class CenteredRows:
    """Rows minus their mean, chunk by chunk: far from the origin float32 has too few digits."""

    def __init__(self, z, chunk, part=False):
        self.z, self.chunk, self.ready = z, chunk, False
        self.n = row_count(z) if part else len(z) if torch.is_tensor(z) else z.n
        self.world = current()
        self.start, self.stop = self.world.span(self.n)
        self.part, self.offset = part, self.start if part else 0  # of the first row of z
        first = self._slice(self.offset, self.offset + 1)
        self.dtype, self.d = first.dtype, first.shape[1]
        self.device, wider = first.device, wide_dtype(first.device)
        moments = torch.zeros(2, self.d, dtype=wider, device=self.device)
        for rows in self._raw():
            rows = rows.to(wider)
            moments[0] += rows.sum(dim=0)
            moments[1] += rows.square().sum(dim=0)
        mean, square = self.world.sum(moments) / self.n
        self.mean = mean.to(self.dtype)
        self.second_moment = float(square.sum())
        self.variance = float((square - mean.square()).clamp_min(0).mean())
        if not np.isfinite(self.second_moment):
            raise ValueError(NOT_FINITE)
        if torch.is_tensor(z) and self.n * self.d <= IN_MEMORY_VALUES:
            self.z, self.ready = z - self.mean, True

    def _slice(self, start, stop):
        if not torch.is_tensor(self.z):
            return self.z.slice(start, stop)
        return self.z[start - self.offset : stop - self.offset]

    def _raw(self):
        for start in range(self.start, self.stop, self.chunk):
            yield self._slice(start, min(start + self.chunk, self.stop))

    def __iter__(self):
        for rows in self._raw():
            yield rows if self.ready else rows - self.mean

    def whole(self):
        """All rows at once, for those that are few."""
        return self.world.concat(self.z, self.n) if self.part else self.z

    def take(self, index):
        """Rows at sorted positions `index` (numpy); each process reads its own, all get all."""
        if self.ready and not self.part:
            return self.z[torch.from_numpy(index).to(self.device)]
        picked = torch.zeros(len(index), self.d, dtype=self.dtype, device=self.device)
        start = self.start
        for rows in self:
            low, high = np.searchsorted(index, [start, start + len(rows)])
            picked[low:high] = rows[torch.from_numpy(index[low:high] - start).to(self.device)]
            start += len(rows)
        return self.world.sum(picked)  # a row is non-zero in one process only


class SparseRows:
    """Rows of a CSR matrix, chunk by chunk, not centred: most of their values are at the origin."""

    part = ready = False  # seeded like rows from disk, so that both kinds draw the same
    device = CPU  # scipy's products

    def __init__(self, z, chunk):
        self.z, self.chunk = z, chunk
        self.n, self.d = z.shape
        self.world = current()
        self.start, self.stop = self.world.span(self.n)
        self.dtype = torch.from_numpy(z.data[:0]).dtype
        self.mean = torch.zeros(self.d, dtype=self.dtype)
        mean = np.asarray(z.mean(axis=0, dtype=np.float64)).ravel()
        self.second_moment = square_sum(z) / self.n
        self.variance = max(self.second_moment - float(mean @ mean), 0.0) / self.d
        if not np.isfinite(self.second_moment):
            raise ValueError(NOT_FINITE)

    def __iter__(self):
        for start in range(self.start, self.stop, self.chunk):
            yield self.z[start : min(start + self.chunk, self.stop)]

    def take(self, index):
        return self.z[index]


def norms_of(rows):  # (b, d) tensor or CSR -> (b,), squared
    if sp.issparse(rows):
        return torch.from_numpy(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return rows.square().sum(dim=1)


def square_sum(rows):  # (b, d) tensor or CSR -> float
    if sp.issparse(rows):
        return float(np.square(rows.data, dtype=np.float64).sum())
    return float(rows.square().sum(dtype=wide_dtype(rows.device)))
