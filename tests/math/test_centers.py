"""K-means, centres, scatter and label alignment."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_digits

from coterie.math import kmeans as lloyd
from coterie.math import seeding
from coterie.math.centers import (
    align,
    cluster_sums,
    kmeans,
    reseed_empty,
    running_mean,
    within_scatter,
)
from reference import centers as twin


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(rng(seed).standard_normal(shape)).to(dtype)


def blobs(n=300, d=4, k=3, seed=0):
    generator = rng(seed)
    labels = generator.integers(k, size=n)
    rows = 20 * generator.standard_normal((k, d))[labels] + generator.standard_normal((n, d))
    return torch.from_numpy(rows.astype("float32")), labels


class Streamed:
    """Rows as they come from disk: a count and slices, nothing else."""

    def __init__(self, z):
        self.rows, self.n, self.reads = z, len(z), 0

    def slice(self, start, stop):
        assert stop - start <= 4096
        self.reads += 1
        return self.rows[start:stop]


Z, LABELS = normal(12, 3), torch.tensor([0, 1, 2, 0, 1, 2, 0, 0, 1, 0, 2, 0])


def close(ours, theirs, tol=1e-10):
    torch.testing.assert_close(ours, torch.tensor(theirs, dtype=ours.dtype), rtol=tol, atol=tol)


def test_sums_and_scatter_twins():
    sums, counts = cluster_sums(Z, LABELS, 4)
    expected = twin.cluster_sums(Z.tolist(), LABELS.tolist(), 4)
    close(sums, expected[0])
    close(counts, expected[1])
    centers = normal(4, 3, seed=5)
    within = twin.within_scatter(Z.tolist(), LABELS.tolist(), centers.tolist())
    close(within_scatter(Z, LABELS, centers), within)


def test_running_mean_equals_dcn_row_by_row():
    centers, counts = normal(4, 3, seed=6), torch.tensor([100.0, 3.0, 1.0, 7.0]).double()
    ours, ours_counts = running_mean(centers, counts, Z, LABELS)
    theirs, their_counts = twin.running_mean(
        centers.tolist(), counts.tolist(), Z.tolist(), LABELS.tolist()
    )
    close(ours, theirs)
    close(ours_counts, their_counts)
    assert torch.equal(ours[3], centers[3])  # no row, no move


def test_lloyd_twin_from_given_centres():
    z, _ = blobs(60, 3, 3)
    start = z[:3] + 0.5
    ours = kmeans(z, 3, rng=rng(), init=start, max_iter=4, tol=0.0)
    theirs = twin.lloyd(z.tolist(), start.tolist(), 4)
    close(ours.centers, theirs, 1e-4)
    assert ours.labels.tolist() == twin.nearest(z.tolist(), theirs)
    expected = twin.inertia(z.tolist(), ours.labels.tolist(), theirs)
    assert ours.inertia == pytest.approx(expected, rel=1e-4)


def test_as_good_as_scikit_learn_on_digits():
    digits = load_digits().data.astype("float32")
    z = torch.from_numpy(digits)
    ours = [kmeans(z, 10, rng=rng(s)).inertia for s in range(4)]
    theirs = [KMeans(10, n_init=10, random_state=s).fit(digits).inertia_ for s in range(4)]
    assert np.mean(ours) <= 1.002 * np.mean(theirs)


def test_same_end_as_scikit_learn_from_the_same_start():
    digits = load_digits().data.astype("float32")
    for seed in range(4):
        start = digits[rng(seed).choice(len(digits), 10, replace=False)]
        ours = kmeans(torch.from_numpy(digits), 10, rng=rng(), init=torch.from_numpy(start), tol=0)
        theirs = KMeans(10, init=start, n_init=1, tol=0).fit(digits)
        assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-5)
        assert (ours.labels.numpy() == theirs.labels_).mean() > 0.999


def test_same_bits_for_the_same_seed_and_other_bits_for_another():
    z = normal(3000, 6, dtype=torch.float32)
    first, second, other = (kmeans(z, 5, rng=rng(s), n_init=3) for s in (1, 1, 2))
    assert torch.equal(first.centers, second.centers)
    assert torch.equal(first.labels, second.labels)
    assert first.inertia == second.inertia
    assert not torch.equal(first.centers, other.centers)


def test_neither_input_nor_global_randomness_changes():
    z, _ = blobs()
    copy, torch_state = z.clone(), torch.get_rng_state()
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002 (to see that it stays)
    kmeans(z, 3, rng=rng())
    assert torch.equal(z, copy)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_streamed_rows_give_the_same_clusters(monkeypatch):
    monkeypatch.setattr("coterie.math.kmeans.CHUNK_VALUES", 1024)
    z, truth = blobs(5000)
    source = Streamed(z)
    streamed = kmeans(source, 3, rng=rng(), n_init=5, sample=200)
    whole = kmeans(z, 3, rng=rng(), n_init=5)
    assert source.reads > 10
    assert streamed.inertia == pytest.approx(whole.inertia, rel=1e-5)
    assert np.array_equal(align(streamed.labels, truth, 3), truth)


def test_labels_are_the_nearest_centres():
    z = normal(2000, 8, dtype=torch.float32)
    result = kmeans(z, 7, rng=rng(), n_init=2)
    nearest = torch.cdist(z.double(), result.centers.double()).square()
    own = nearest.gather(1, result.labels[:, None])[:, 0]
    assert (own - nearest.amin(dim=1)).max() < 1e-4
    assert result.inertia == pytest.approx(float(own.sum()), rel=1e-5)
    assert result.labels.dtype == torch.int64 and result.centers.dtype == torch.float32


def test_data_far_from_the_origin():
    z, truth = blobs()
    result = kmeans(z + 1e4, 3, rng=rng())
    assert np.array_equal(align(result.labels, truth, 3), truth)


@pytest.mark.parametrize("value", [0.0, 1000.1])
def test_equal_rows(value):
    result = kmeans(torch.full((20, 3), value), 4, rng=rng())
    torch.testing.assert_close(result.centers[0], torch.full((3,), value))
    assert result.inertia == pytest.approx(0, abs=1e-4)
    assert result.centers.isfinite().all()


def test_duplicates_one_cluster_and_as_many_clusters_as_rows():
    distinct = normal(3, 2, dtype=torch.float32)
    many = kmeans(distinct.repeat(10, 1), 5, rng=rng())
    assert many.inertia == pytest.approx(0, abs=1e-4)
    assert len(many.labels.unique()) == 3
    rows = normal(9, 2, dtype=torch.float32)
    one = kmeans(rows, 1, rng=rng())
    torch.testing.assert_close(one.centers[0], rows.mean(dim=0))
    every = kmeans(rows, 9, rng=rng())
    assert sorted(every.labels.tolist()) == list(range(9))
    assert len(kmeans(rows[:1], 1, rng=rng()).labels) == 1


def test_empty_clusters_are_seeded_again():
    z, truth = blobs()
    start = torch.full((3, 4), 1e4)
    start[0] = z.mean(dim=0)
    start[1] = start[2]  # two equal centres, far from all rows
    result = kmeans(z, 3, rng=rng(), init=start)
    assert np.array_equal(align(result.labels, truth, 3), truth)


def test_random_start_and_both_dtypes():
    z, _ = blobs()
    best = kmeans(z, 3, rng=rng()).inertia
    assert kmeans(z, 3, rng=rng(), init="random").inertia == pytest.approx(best, rel=1e-5)
    double = kmeans(z.double(), 3, rng=rng())
    assert double.centers.dtype == torch.float64
    assert double.inertia == pytest.approx(best, rel=1e-5)


def test_errors_name_both_numbers():
    z = normal(5, 2, dtype=torch.float32)
    with pytest.raises(ValueError, match="5 rows but k=8; lower k"):
        kmeans(z, 8, rng=rng())
    with pytest.raises(ValueError, match="k=0"):
        kmeans(z, 0, rng=rng())
    with pytest.raises(ValueError, match=r"shape \(3, 2\) but k=2"):
        kmeans(z, 2, rng=rng(), init=z[:3])
    with pytest.raises(ValueError, match="'best' is not"):
        kmeans(z, 2, rng=rng(), init="best")
    with pytest.raises(ValueError, match="NaN or infinite"):
        kmeans(z / 0, 2, rng=rng())
    with pytest.raises(ValueError, match="3 rows but reference has 2"):
        align([0, 1, 2], [0, 1], 3)


@pytest.mark.parametrize("seed", range(5))
def test_align_reaches_the_best_renaming(seed):
    labels, reference = rng(seed).integers(4, size=(2, 40))
    renamed = align(labels, reference, 4)
    agreement = twin.best_agreement(labels.tolist(), reference.tolist(), 4)
    assert (renamed == reference).sum() == agreement
    as_tensor = align(torch.from_numpy(labels), torch.from_numpy(reference), 4)
    assert torch.is_tensor(as_tensor) and as_tensor.tolist() == renamed.tolist()


def test_align_undoes_a_permutation():
    labels = rng().integers(6, size=100)
    permuted = rng(1).permutation(6)[labels]
    assert not np.array_equal(permuted, labels)
    assert np.array_equal(align(permuted, labels, 6), labels)


def test_reseed_moves_only_empty_centres_onto_rows():
    z, _ = blobs()
    centers = torch.zeros(4, 4)
    centers[0] = z[0]
    counts = torch.tensor([300, 0, 0, 0])
    moved, reseeded = reseed_empty(centers, counts, z, rng())
    assert reseeded == [1, 2, 3]
    assert torch.equal(moved[0], z[0]) and torch.equal(centers[1], torch.zeros(4))
    for cluster in reseeded:
        assert (z == moved[cluster]).all(dim=1).any()
    assert len(moved.unique(dim=0)) == 4
    assert reseed_empty(centers, counts + 1, z, rng())[1] == []


def test_reseed_when_all_rows_are_equal_or_all_clusters_empty():
    z = torch.ones(6, 2)
    moved, _ = reseed_empty(torch.ones(2, 2), torch.tensor([6, 0]), z, rng())
    assert torch.equal(moved, torch.ones(2, 2))
    assert reseed_empty(torch.zeros(2, 2), torch.zeros(2), z, rng())[1] == [0, 1]


@pytest.mark.parametrize("k, thinned", [(99, False), (100, True)])
def test_restarts_of_many_clusters_end_early(monkeypatch, k, thinned):
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32))
    sizes, counted = [], lloyd._pass
    monkeypatch.setattr(lloyd, "SMALLEST_STEP", -1.0)  # no step gains too little
    monkeypatch.setattr(lloyd, "_pass", lambda rows, c: sizes.append(len(c)) or counted(rows, c))
    found = kmeans(z, k, rng=np.random.default_rng(1), n_init=8)
    assert sizes[:5] == [8] * 5
    assert (sizes[5:16] == [4] * 5 + [2] * 5 + [1]) == thinned
    monkeypatch.setattr(lloyd, "MANY_CLUSTERS", 10**9)
    whole = kmeans(z, k, rng=np.random.default_rng(1), n_init=8)
    assert found.inertia <= 1.01 * whole.inertia
    assert thinned or torch.equal(found.labels, whole.labels)


def test_many_clusters_are_seeded_once_on_a_sample_and_end_when_little_is_gained(monkeypatch):
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(6000, 3)).astype(np.float32))
    monkeypatch.setattr(lloyd, "SEEDING_MANY", 3000)
    monkeypatch.setattr(lloyd, "SEEDING_EACH", 10)
    seen, seeded, gains, counted = [], lloyd.far_rows, [], lloyd._pass

    def watched(rows, centers):
        found = counted(rows, centers)
        gains.append(float(found[2][0]))
        return found

    def watched_seeding(pool, k, seeds):
        seen.append((len(pool), len(seeds)))
        return seeded(pool, k, seeds)

    monkeypatch.setattr(lloyd, "far_rows", watched_seeding)
    monkeypatch.setattr(lloyd, "_pass", watched)
    few = kmeans(z, 500, rng=rng(1), n_init=10)
    assert seen == [(5000, 2)]  # two restarts of 500 clusters, ten rows for each
    one = kmeans(z, 1000, rng=rng(1), n_init=10)
    assert seen[1:] == [(6000, 1)]
    assert one.inertia < few.inertia
    last = gains[-2:]
    assert last[1] > (1 - lloyd.SMALLEST_STEP) * last[0]  # the step that gained too little
    monkeypatch.setattr(lloyd, "MANY_CLUSTERS", 10**9)
    assert one.inertia <= 1.01 * kmeans(z, 1000, rng=rng(1), n_init=3).inertia


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wide", [True, False])
def test_starts_are_those_of_scikit_learn_one_restart_after_the_other(dtype, wide, monkeypatch):
    monkeypatch.setattr(seeding, "PART_VALUES", 1000)  # several parts
    monkeypatch.setattr(seeding, "WIDE_VALUES", 10**9 if wide else 0)
    z = torch.cat([blobs(500, 5, 4)[0], torch.zeros(60, 5)]).numpy().astype(dtype)
    for k in (1, 2, 12):
        found = seeding.far_rows(torch.from_numpy(z), k, [3, 4, 5])
        theirs = [kmeans_plusplus(z, k, random_state=seed)[1] for seed in (3, 4, 5)]
        np.testing.assert_array_equal(found, theirs)


def test_starts_among_equal_rows_stay_inside():
    found = seeding.far_rows(torch.full((6, 2), 7.0), 4, [0, 1])
    assert found.shape == (2, 4) and found.min() >= 0 and found.max() < 6
