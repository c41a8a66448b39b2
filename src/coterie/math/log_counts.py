"""Features of counts, such as those of genes in cells: sparse rows stay sparse on the whole way.

Each row is divided by its total and multiplied by a usual one (`depth`). Of the logarithms of the
most variable columns the leading principal components are kept.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from coterie.runtime.device import Fetched, to_numpy

from .components import Axes

COLUMNS = 2000  # the most variable ones, at most


class LogCounts(nn.Module):
    """Scaled rows (dense, or CSR without a shift) -> components: (b, d) -> (b, m).

    Raw counts are ``x * unit + origin``. `cut` gives the relative counts of the chosen columns as
    CSR, a small matrix from which `of_cut` makes the components without a look at the others.
    """

    def __init__(self, d, m):
        super().__init__()
        chosen = min(d, COLUMNS)
        self.register_buffer("origin", torch.zeros(d))
        self.register_buffer("unit", torch.ones(d))
        self.register_buffer("depth", torch.zeros(()))  # total of a usual row; 0: no counts
        self.register_buffer("columns", torch.arange(chosen))
        self.axes = Axes(chosen, m)
        self._fetched = Fetched()

    def _on_host(self):
        """Total of a usual row, unit and chosen columns, for scipy."""
        depth, unit, columns = self._fetched(self.depth, self.unit, self.columns)
        return float(depth), unit, columns

    @torch.no_grad()
    def fit(self, x, generator, origin=0.0, unit=1.0):  # (n, d) tensor or CSR, scaled
        self.origin.copy_(torch.as_tensor(origin).expand(self.origin.shape))
        self.unit.copy_(torch.as_tensor(unit).expand(self.unit.shape))
        raw = self._raw(x)
        values = raw.data
        near = 1e-3 * np.maximum(np.abs(values), 1)  # scaling there and back rounds
        whole = bool((np.abs(values - np.rint(values)) < near).all())
        if whole and values.max(initial=0) > 1.5:
            self.depth.copy_(torch.tensor(usual_total(raw)))
        logs: Any = self._logs(self._relative(raw))
        if len(self.columns) < raw.shape[1]:
            self.columns.copy_(torch.from_numpy(most_variable(logs, len(self.columns))))
            logs = logs[:, self._on_host()[2]]
        self.axes.fit(torch.from_numpy(logs.toarray()).to(self.depth.device), generator)
        return self

    def cut(self, x):  # (b, d) tensor or CSR -> CSR (b, chosen columns)
        """Counts of the chosen columns per usual total."""
        return self._relative(self._raw(x), self._on_host()[2])

    def of_cut(self, part, totals=None):  # CSR (b, chosen columns), (b,) -> (b, m)
        """Components of relative counts; rows that lost some are brought back to their `totals`."""
        if totals is not None and self._on_host()[0] > 0:
            part = _times(part, totals / np.maximum(np.asarray(part.sum(1)).ravel(), 1e-6))
        shift = self.axes.mean @ self.axes.axes * self.axes.factor
        return self.axes.of_sparse(self._logs(part)) - shift

    def forward(self, x):  # (b, d) -> (b, m)
        if not isinstance(x, torch.Tensor):
            return self.of_cut(self.cut(x))
        raw = (x * self.unit + self.origin).clamp_min(0)
        chosen = raw[:, self.columns]
        logs = (chosen * (self.depth / raw.sum(1, keepdim=True).clamp_min(1))).log1p()
        # not `if`: ONNX has no branch on a value
        return self.axes(torch.where(self.depth > 0, logs, chosen))

    def _raw(self, x):  # -> CSR of non-negative counts
        if isinstance(x, torch.Tensor):
            return sp.csr_matrix(to_numpy((x * self.unit + self.origin).clamp_min(0)))
        data = np.maximum(x.data * self._on_host()[1][x.indices], 0)
        return sp.csr_matrix((data, x.indices, x.indptr), x.shape)

    def _relative(self, raw, columns=None):
        depth = self._on_host()[0]
        if depth == 0:
            return raw if columns is None else raw[:, columns]
        return relative(raw, depth, columns)

    def _logs(self, part):
        return part if self._on_host()[0] == 0 else logs_of(part)


def usual_total(raw):  # CSR (n, d) -> float
    """Total of a usual row: the median, at least 1."""
    return max(float(np.median(np.asarray(raw.sum(1)).ravel())), 1.0)


def relative(raw, depth, columns=None):  # CSR (n, d) -> CSR (n, d) or (n, len(columns))
    """Counts per `depth` of the row's total, of all or of some columns."""
    totals = np.maximum(np.asarray(raw.sum(1)).ravel(), 1)
    return _times(raw if columns is None else raw[:, columns], depth / totals)


def logs_of(part):  # CSR -> CSR
    """log(1 + x); zeros stay zeros."""
    return sp.csr_matrix((np.log1p(part.data), part.indices, part.indptr), part.shape)


def most_variable(logs, m):  # CSR (n, d) -> (m,) in ascending order
    """The columns with the largest variance."""
    squares = logs.multiply(logs).mean(0) - np.square(logs.mean(0))
    return np.sort(np.argsort(-np.asarray(squares).ravel(), kind="stable")[:m])


def _times(part, factors):  # CSR (b, d), (b,) -> CSR
    data = (part.data * np.repeat(factors, np.diff(part.indptr))).astype(np.float32)
    return sp.csr_matrix((data, part.indices, part.indptr), part.shape)
