"""Nearest rows by bfloat16 products: the same as by single ones, whatever the rows are like."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from coterie.math import nearest
from coterie.math.graph import exact
from coterie.math.nearest import Pool, in_half, rough_error, smallest


def rows(n, d, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32))


def pairs(count, d, gap):
    """Rows in groups of 40 that differ by `gap` only, groups far from each other."""
    centers = 30 * rows(count, d)
    return centers.repeat_interleave(40, 0) + gap * rows(40 * count, d, seed=1)


@pytest.fixture
def quick(monkeypatch):
    """Quick products, on processors that have none as well."""
    monkeypatch.setattr(nearest, "quick_bfloat16", lambda: True)


DATA = {
    "clouds": lambda: rows(1501, 64) + 3 * rows(1, 64, seed=3),
    "tight": lambda: pairs(26, 64, 0.3),  # closer than the rounding of a bfloat16
    "one far row": lambda: torch.cat([rows(1200, 70), 500 + rows(1, 70)]),
    "duplicates": lambda: rows(300, 64).repeat(4, 1),
}


@pytest.mark.parametrize("name", DATA)
def test_quick_products_find_the_neighbours_of_scikit_learn(name, quick):
    z = DATA[name]()
    found = exact(z, 5)
    far, _ = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(z.double()).kneighbors()
    ours = (z[:, None].double() - z[found].double()).norm(dim=2)
    assert (found != torch.arange(len(z))[:, None]).all()
    np.testing.assert_allclose(ours, far, rtol=1e-4, atol=2e-3 * float(z.std()))


def test_rows_that_are_told_apart_are_sure_and_tight_ones_are_not(quick):
    every = torch.arange(1000)
    pool = Pool(DATA["clouds"](), 5)
    assert pool.quick
    assert pool._compare_quickly(every)[1].float().mean() > 0.9
    pool = Pool(DATA["tight"](), 5)
    assert not pool._compare_quickly(every)[1].any()
    pool.nearest(every)
    assert not pool.quick  # it has learned that they do not pay


def test_small_narrow_or_double_rows_have_no_quick_products(quick):
    assert Pool(rows(1000, 64), 5).quick
    assert not Pool(rows(999, 64), 5).quick
    assert not Pool(rows(1000, 63), 5).quick
    assert not Pool(rows(1000, 64), 21).quick  # candidates in more groups than there are
    assert not Pool(rows(1000, 64).double(), 5).quick


@pytest.mark.parametrize("power", [-60, -50, 50])
def test_the_unit_of_the_rows_does_not_matter(power):
    z = rows(200, 64)
    _, _, expected = in_half(z, z.square().sum(1))
    z = z * 2.0**power
    assert in_half(z, z.square().sum(1))[2] == pytest.approx(expected, rel=1e-2)


def test_neighbours_of_double_rows_are_those_of_double_distances():
    far = 1000 + 1e-3 * torch.arange(40, dtype=torch.float64)[:, None]
    found = exact(torch.cat([-far, far]), 2).sort(1).values
    inner = torch.arange(1, 39)[:, None]
    assert torch.equal(found[1:39], inner + torch.tensor([-1, 1]))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 200), st.floats(0, 30))
def test_bfloat16_scores_are_not_farther_off_than_the_bound(seed, d, shift):
    z = rows(60, d, seed) + shift * rows(1, d, seed + 1)
    norms = z.square().sum(1)
    queries, keys, rounding = in_half(z, norms)
    rough = (queries @ keys.T).double()
    wide = z.double()
    true = wide.square().sum(1) - 2 * wide @ wide.T
    for j in range(60):  # as if row j were the last one found: nearer ones are off by less
        nearer = true <= true[:, j : j + 1]
        bound = rough_error(norms, true[:, j].float(), rounding).double()[:, None]
        assert ((rough - true).abs() <= bound)[nearer].all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400), st.integers(1, 20), st.integers(0, 10**6))
def test_smallest_by_groups_is_that_of_a_full_sort(n, k, seed):
    scores = rows(7, n, seed)
    k = min(k, n)
    found = scores.gather(1, smallest(scores, k))
    assert torch.equal(found.sort(1).values, scores.sort(1).values[:, :k])
