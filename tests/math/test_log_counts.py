"""Features of counts: dense and sparse rows alike, against a loop."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from coterie.math import log_counts
from coterie.math.log_counts import LogCounts


def counts(n=40, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, 2, size=d), (n, d)).astype(np.float32)


def fitted(x, unit=1.0, m=5):
    return LogCounts(x.shape[1], m).fit(x, torch.Generator().manual_seed(0), unit=unit)


def loop_logs(raw, depth):
    return [[math.log1p(v * depth / max(sum(row), 1)) for v in row] for row in raw.tolist()]


@pytest.mark.parametrize("chosen", [2000, 12])
def test_sparse_and_dense_rows_have_the_same_components(chosen, monkeypatch):
    monkeypatch.setattr(log_counts, "COLUMNS", chosen)
    raw = counts()
    scaled = sp.csr_matrix(raw / 4)
    module = fitted(scaled, unit=4.0)
    depth = float(np.median(raw.sum(1)))
    assert float(module.depth) == depth
    logs = np.array(loop_logs(raw, depth))
    want = np.sort(np.argsort(-logs.var(0), kind="stable")[:chosen])
    assert module.columns.tolist() == want.tolist()
    centred = logs[:, want] - logs[:, want].mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    parts = (u * s)[:, :5]
    parts /= np.sqrt(np.square(parts).mean())
    made = module(scaled).numpy()
    np.testing.assert_allclose(made @ made.T, parts @ parts.T, atol=2e-2)
    dense = module(torch.from_numpy(raw / 4))
    torch.testing.assert_close(module(scaled), dense, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        module.of_cut(module.cut(torch.from_numpy(raw / 4))), dense, atol=1e-4, rtol=1e-4
    )


def test_a_row_that_lost_genes_is_brought_back_to_its_total():
    raw = counts()
    module = fitted(sp.csr_matrix(raw))
    whole = module.cut(sp.csr_matrix(raw))
    halved = whole * 0.5
    totals = np.asarray(whole.sum(1)).ravel()
    torch.testing.assert_close(module.of_cut(halved, totals), module.of_cut(whole))


def test_values_that_are_no_counts_are_left_as_they_are():
    x = counts() / 3 + 0.1
    module = fitted(sp.csr_matrix(x))
    assert float(module.depth) == 0
    np.testing.assert_allclose(module.cut(sp.csr_matrix(x)).toarray(), x, rtol=1e-6)
