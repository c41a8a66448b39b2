"""Spanning tree, balanced linkage, spectral labels."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from coterie.math.graph import exact
from coterie.math.linkage import balanced_linkage, gini, spanning_tree
from coterie.math.spectral import spectral_labels


def rows(n, d, seed):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(1, 5), st.integers(0, 10**6))
def test_the_tree_is_as_short_as_that_of_scipy(n, d, seed):
    x = rows(n, d, seed)
    edges, lengths = spanning_tree(torch.from_numpy(x))
    want = minimum_spanning_tree(cdist(x, x)).sum()
    assert lengths.sum() == pytest.approx(want, rel=1e-3)
    assert (np.diff(lengths) >= 0).all()
    known = {0}
    for _ in range(n):  # all rows hang together
        known |= {b for a, b in edges.tolist() if a in known}
        known |= {a for a, b in edges.tolist() if b in known}
    assert known == set(range(n))


def loop_linkage(edges, k, unequal):
    """One merge at a time, everything looked up anew."""
    n = len(edges) + 1
    groups = [{i} for i in range(n)]
    left = [tuple(e) for e in edges.tolist()]
    while len(groups) > k:
        sizes = [len(g) for g in groups]
        pairs = sum(abs(a - b) for a, b in itertools.combinations(sizes, 2))
        allowed = left
        if len(groups) > 1 and pairs / ((len(groups) - 1) * n) > unequal:
            small = [g for g in groups if len(g) == min(sizes)]
            allowed = [e for e in left if any(e[0] in g or e[1] in g for g in small)]
        a, b = allowed[0]
        left.remove((a, b))
        one, two = (next(g for g in groups if x in g) for x in (a, b))
        groups = [g for g in groups if g is not one and g is not two] + [one | two]
    return {frozenset(g) for g in groups}


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 30), st.integers(0, 10**6), st.sampled_from([0.1, 0.3, 1.0]))
def test_linkage_against_a_loop(n, seed, unequal):
    edges, _ = spanning_tree(torch.from_numpy(rows(n, 2, seed)))
    for k in (1, 2, 3):
        labels = balanced_linkage(edges, k, unequal)
        mine = {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(k)}
        assert mine == loop_linkage(edges, k, unequal)


def test_gini_of_equal_and_of_one_sided_sizes():
    assert gini([5, 5, 5]) == 0 and gini([7]) == 0
    assert gini([0, 0, 9]) == pytest.approx(1)


def test_linkage_follows_moons_that_k_means_cuts():
    X, y = make_moons(300, noise=0.05, random_state=0)
    edges, _ = spanning_tree(torch.from_numpy(X.astype(np.float32)))
    assert adjusted_rand_score(y, balanced_linkage(edges, 2)) == 1


def test_spectral_labels_follow_the_graph():
    X, y = make_moons(300, noise=0.05, random_state=0)
    near = exact(torch.from_numpy(X.astype(np.float32)), 10)
    labels = spectral_labels(near, 2, np.random.default_rng(0))
    assert adjusted_rand_score(y, labels.numpy()) > 0.95


def test_spectral_labels_of_a_graph_in_pieces_are_its_pieces():
    X, y = make_blobs(400, 4, centers=4, cluster_std=0.3, random_state=0)
    near = exact(torch.from_numpy(X.astype(np.float32)), 10)
    labels = spectral_labels(near, 4, np.random.default_rng(0))
    assert adjusted_rand_score(y, labels.numpy()) == 1
