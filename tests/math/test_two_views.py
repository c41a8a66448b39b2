"""Which of two descriptions has the clearer clusters, against a version with loops."""

import numpy as np
import pytest
import torch

from coterie.math import two_views
from coterie.math.two_views import compare


def blobs(n, k, width, spread, seed):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, width)) * 4
    return torch.tensor(centers[np.arange(n) % k] + spread * rng.normal(size=(n, width))).float()


def noise(n, width, seed):
    return torch.tensor(np.random.default_rng(seed).normal(size=(n, width))).float()


def worth_by_loops(labels, views, nearest=10):
    """Share of edges inside clusters less the product of the clusters' shares of ends."""
    total = 0.0
    for z in views:
        edges = []
        for i in range(len(z)):
            gaps = [(float(((z[i] - z[j]) ** 2).sum()), j) for j in range(len(z)) if j != i]
            edges += [(i, j) for _, j in sorted(gaps)[:nearest]]
        ends = {}
        for pair in edges:
            for i in pair:
                ends[int(labels[i])] = ends.get(int(labels[i]), 0) + 0.5 / len(edges)
        inside = sum(int(labels[i]) == int(labels[j]) for i, j in edges) / len(edges)
        total += inside - sum(share**2 for share in ends.values())
    return total


def test_the_worth_is_its_formula(monkeypatch):
    views = blobs(40, 3, 4, 1.0, 0), noise(40, 5, 1)
    seen = []

    class Found:
        def __init__(self, labels):
            self.labels = labels

    def named(z, k, **settings):
        labels = torch.arange(40) % 3 if not seen else torch.arange(40) // 14
        seen.append(labels)
        return Found(labels)

    monkeypatch.setattr(two_views, "kmeans", named)
    worth, agreement = compare(*views, 3, np.random.default_rng(0))
    for found, labels in zip(worth, seen):
        assert found == pytest.approx(worth_by_loops(labels, views), abs=1e-5)
    assert agreement == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_clear_clusters_are_worth_more(seed):
    clear, blurred = blobs(120, 4, 6, 0.5, seed), noise(120, 6, seed)
    rng = np.random.default_rng(seed)
    (first, second), agreement = compare(clear, blurred, 4, rng)
    assert first > second + 0.2 and agreement < 0.3
    (first, second), _ = compare(blurred, clear, 4, rng)
    assert second > first + 0.2
    (first, second), agreement = compare(clear, 2 * clear, 4, rng)
    assert first == pytest.approx(second) and agreement == pytest.approx(1)


def test_clusters_that_one_view_sees_alone_are_worth_less():
    """A view of far-off rows has a low cut by itself; the other view does not know of them."""
    both, alone = np.arange(200) % 4, np.random.default_rng(5).integers(0, 4, 200)
    eye, rng = 5 * np.eye(4), np.random.default_rng(6)
    shared = torch.tensor(np.hstack([eye[both], eye[both]]) + rng.normal(size=(200, 8)))
    mixed = torch.tensor(np.hstack([0.6 * eye[both], eye[alone]]) + rng.normal(size=(200, 8)))
    (first, second), _ = compare(shared.float(), mixed.float(), 4, np.random.default_rng(0))
    assert first > second
