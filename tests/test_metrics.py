"""Clustering scores against their definitions, and their invariances."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.metrics import accuracy, ari, batch_scores, label_free, nmi, nmi_geometric, scores
from reference import metrics as twin

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=3, max_size=30)


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_scores_equal_their_definitions(rows):
    y, labels = (list(column) for column in zip(*rows, strict=True))
    assert accuracy(y, labels) == pytest.approx(twin.accuracy(y, labels))
    if min(len(set(y)), len(set(labels))) > 1:
        assert nmi(y, labels) == pytest.approx(twin.nmi(y, labels, False), abs=1e-9)
        assert nmi_geometric(y, labels) == pytest.approx(twin.nmi(y, labels, True), abs=1e-9)
        assert ari(y, labels) == pytest.approx(twin.ari(y, labels), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(pairs, st.permutations(range(5)), st.randoms(use_true_random=False))
def test_names_of_clusters_and_order_of_rows_do_not_matter(rows, names, random):
    y, labels = (list(column) for column in zip(*rows, strict=True))
    expected = scores(y, labels)
    assert set(expected) == {"acc", "nmi", "nmi_geo", "ari"}
    assert scores(y, [names[label] for label in labels]) == pytest.approx(expected)
    random.shuffle(rows)
    y, labels = (list(column) for column in zip(*rows, strict=True))
    assert scores(y, labels) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.permutations(range(6)))
def test_a_renamed_truth_is_perfect(y, names):
    labels = [names[value] for value in y]
    assert scores(y, labels) == pytest.approx({"acc": 1, "nmi": 1, "nmi_geo": 1, "ari": 1})


def test_surplus_clusters_count_as_wrong():
    assert accuracy([0, 0, 0, 0], [0, 1, 2, 2]) == 0.5  # purity would say 1
    assert accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


def test_any_kind_of_label():
    expected = accuracy([0, 0, 1, 1], [5, 5, 9, 5])
    assert expected == 0.75
    assert accuracy(["a", "a", "b", "b"], torch.tensor([5, 5, 9, 5])) == expected
    assert accuracy(np.array([7.0, 7.0, -1.0, -1.0]), [5, 5, 9, 5]) == expected


def test_random_labels_are_near_zero_on_all_rows():
    rng = np.random.default_rng(0)
    y, labels = rng.integers(10, size=(2, 20_000))
    result = scores(y, labels)
    assert abs(result["ari"]) < 0.002 and result["nmi"] < 0.005 and result["acc"] < 0.12


@pytest.mark.parametrize("score", [accuracy, nmi, nmi_geometric, ari, scores])
def test_errors_name_both_numbers(score):
    with pytest.raises(ValueError, match="y has 3 rows but labels has 2"):
        score([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match=r"labels has shape \(3, 2\)"):
        score([0, 1, 2], np.zeros((3, 2)))
    with pytest.raises(ValueError, match="0 rows"):
        score([], [])


def test_label_free_of_two_far_pairs():
    z = np.array([[0.0], [0.1], [10.0], [10.1]])
    proba = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    result = label_free(z, [0, 0, 1, 1], proba)
    assert result["silhouette"] > 0.98
    assert result["clusters_used"] == 2
    assert (result["smallest_share"], result["largest_share"]) == (0, 0.5)
    assert result["uniformity"] == pytest.approx(math.log(2) / math.log(3))
    assert result["entropy"] == pytest.approx(math.log(2) / 2)
    without = label_free(z, [0, 0, 1, 1])
    assert without["uniformity"] == pytest.approx(1) and "entropy" not in without
    assert label_free(z, [0, 0, 1, 1], n_clusters=4)["uniformity"] == pytest.approx(0.5)


def test_uniformity_of_the_usps_variants():
    sizes = [1500, 1200, 900, 800, 800, 700, 800, 700, 700, 800]
    labels = np.repeat(np.arange(10), sizes)
    result = label_free(np.zeros((len(labels), 1)), labels, sample=50)
    assert result["uniformity"] == pytest.approx(0.985, abs=5e-4)


def test_label_free_samples_large_data_and_repeats():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=30_000)
    z = torch.from_numpy(rng.standard_normal((30_000, 4)) + 5 * labels[:, None])
    first = label_free(z, torch.from_numpy(labels), sample=500)
    assert first == label_free(z, labels, sample=500)
    assert first["silhouette"] != label_free(z, labels, sample=500, seed=1)["silhouette"]
    assert first["silhouette"] > 0.5


def test_label_free_of_one_cluster_and_errors():
    z = np.zeros((5, 2))
    one = label_free(z, [0] * 5)
    assert math.isnan(one["silhouette"]) and one["uniformity"] == 0 and one["clusters_used"] == 1
    assert math.isnan(label_free(z, range(5))["silhouette"])
    with pytest.raises(ValueError, match="z has 5 rows but labels has 4"):
        label_free(z, [0] * 4)
    with pytest.raises(ValueError, match="proba has 4 rows but labels has 5"):
        label_free(z, [0] * 5, np.ones((4, 1)))
    with pytest.raises(ValueError, match="from 0 to 3 but there are 2 clusters"):
        label_free(z, [0, 1, 2, 3, 0], np.ones((5, 2)))


def test_scores_by_batch_flatter_and_say_so():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(10, size=(2, 6400))
    chance = batch_scores(y, guess, 64)
    assert chance["purity_by_batch"] == pytest.approx(0.319, abs=0.01)
    assert chance["nmi_by_batch"] == pytest.approx(0.307, abs=0.01)
    assert abs(chance["ari_by_batch"]) < 0.01
    assert accuracy(y, guess) < 0.13 and nmi(y, guess) < 0.01
    assert set(batch_scores(y, (y + 1) % 10).values()) == {1.0}
    # one batch: three rows of four are in a cluster whose most frequent class is theirs
    assert batch_scores([0, 0, 1, 1], [0, 0, 0, 1])["purity_by_batch"] == 0.75
    with pytest.raises(ValueError, match="y has 3 rows but labels has 2"):
        batch_scores([0, 1, 2], [0, 1])
