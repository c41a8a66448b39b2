"""n_clusters="auto" and the merge tree: hills, intervals, files, commands."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import cut_tree, is_valid_linkage
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

import coterie
from conftest import quick
from coterie import DEC, Kith, cli, select_k
from coterie.math.hills import HIGHEST, Hills, dimension, find_hills, flood, nearest
from coterie.methods.kith import number
from coterie.methods.kith.number import Number, embedding, number_from
from coterie.methods.kith.tree import cut, edges_between, grow, over_clusters
from reference import hills as twin


@pytest.fixture(scope="module")
def five():
    corners = 12 * np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 2]])
    X, y = make_blobs(250, 3, centers=corners, cluster_std=1.0, random_state=0)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def fitted(five):
    return quick("kith", "auto").fit(five[0])


# -- hills --------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_flooding_gives_the_prominences_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    height = rng.permutation(24).astype(float)
    near = (np.arange(24)[:, None] + rng.integers(1, 24, (24, 2))) % 24  # others, never itself
    found, sizes = flood(height, near)
    assert sorted(found, reverse=True) == twin.prominences(height.tolist(), near.tolist())
    assert sizes[np.isinf(found)].sum() == 24 and (sizes > 0).all()


def test_dimension_and_neighbours_are_those_of_loops():
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 3)))
    far, near = nearest(z, 8)
    gaps = np.linalg.norm(z[:, None] - z[None], axis=2) + np.diag([np.inf] * 60)
    np.testing.assert_allclose(far, np.sort(gaps, 1)[:, :8], rtol=1e-6)
    assert (near == np.argsort(gaps, 1)[:, :8]).all()
    assert dimension(far) == pytest.approx(twin.dimension(far.tolist()))


def test_equal_rows_have_hills_too():
    assert find_hills(torch.zeros(30, 2)).count(3.0) >= 1
    assert find_hills(torch.rand(3, 2, generator=torch.Generator().manual_seed(0))).rows == 3


def test_interval_and_runner_up():
    # chance at 400 rows, 20 voters: 1.4 sqrt(2 log 20) = 3.43; interval from 6.85 down to 2.06
    prominence = np.array([HIGHEST, 9, 8, 5, 4, 2.5, 1])
    hills = Hills(prominence, np.full(7, 40), 400, 20, 2.0)
    assert number_from(hills) == Number(5, 3, 6, 3)  # 8 / 5 is the widest gap but 5's own
    assert number_from(hills).words() == "5 clusters, 3 to 6; next best 3"
    lone = Hills(prominence[:1], np.array([400]), 400, 20, 2.0)
    assert number_from(lone) == Number(1, 1, 1, 0) and "no structure" in number_from(lone).words()
    few = Hills(prominence[:3], np.array([390, 7, 3]), 1000, 20, 2.0)
    assert few.count(3.0, 0.005) == 2 and few.count(3.0, 0.01) == 1  # stray rows are no cluster


# -- the estimator ------------------------------------------------------------------------------
def test_kith_finds_the_number(five, fitted):
    X, y = five
    assert fitted.n_clusters == "auto" and fitted.get_params()["n_clusters"] == "auto"
    assert fitted.n_clusters_ == 5 and fitted.structure_ and fitted.notes_[0].startswith("found: 5")
    low, high = fitted.n_clusters_interval_
    assert low <= 5 <= high and "number" in fitted.seconds_
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    given = quick("kith", 5).fit(X)  # found, then fitted as if it had been given
    assert np.array_equal(given.labels_, fitted.labels_)
    assert not hasattr(given, "n_clusters_interval_")
    refitted = clone(fitted).fit(X).set_params(n_clusters=3).fit(X)
    assert refitted.n_clusters_ == 3 and not hasattr(refitted, "structure_")


def test_winding_shapes_are_counted():
    X = make_circles(500, noise=0.04, factor=0.4, random_state=0)[0].astype(np.float32)
    assert number_from(find_hills(torch.from_numpy(X))).k == 2


@pytest.mark.parametrize("draw", range(3))
def test_no_structure_is_said(draw):
    rng = np.random.default_rng(draw)
    for noise in (rng.uniform(size=(400, 3)), rng.normal(size=(400, 5))):
        assert not number_from(find_hills(torch.from_numpy(noise))).structure
    with pytest.warns(UserWarning, match="no structure"):
        model = quick("kith", "auto").fit(rng.normal(size=(150, 3)).astype(np.float32))
    assert model.n_clusters_ == 1 and not model.structure_ and not model.labels_.any()


def test_images_are_counted_in_the_embedding(monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.normal(0, 0.1, (240, 8, 8))
    for kind, place in enumerate(((1, 1), (1, 5), (5, 3))):  # a spot in one of three places
        images[kind::3, place[0] : place[0] + 2, place[1] : place[1] + 2] += 1
    asked = []
    monkeypatch.setattr(number, "embedding", lambda *a: asked.append(a) or embedding(*a))
    model = quick("kith", "auto").fit(images.astype(np.float32))
    assert model.n_clusters_ == 3 and len(asked) == number.LOOKS
    assert len({args[-1] for args in asked}) == number.LOOKS  # each with a seed of its own


def test_the_median_of_several_looks_counts_and_the_interval_holds_the_others():
    answers = [Number(7, 5, 8, 5), Number(4, 4, 4, 0), Number(6, 6, 7, 7), Number(9, 9, 9, 0)]
    assert number.middle([*answers, Number(6, 1, 6, 1)]) == Number(6, 4, 9, 7)
    assert number.middle(answers[:1]) == answers[0]


def test_rows_are_drawn_several_times_where_there_are_more_than_are_looked_at(five, monkeypatch):
    looked = []
    monkeypatch.setattr(number, "find_hills", lambda z: looked.append(z) or find_hills(z))
    assert number.number_of(quick("kith", "auto"), five[0]).k == 5 and len(looked) == 1
    monkeypatch.setattr(number, "ROWS", len(five[0]) - 100)
    assert number.number_of(quick("kith", "auto"), five[0]).k == 5
    assert len(looked) == 1 + number.LOOKS and not torch.equal(looked[1], looked[2])


def test_saved_models_keep_number_and_tree(five, fitted, tmp_path):
    fitted.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    for name in ("n_clusters", "n_clusters_", "n_clusters_interval_", "n_clusters_runner_up_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert np.array_equal(again.predict(five[0]), fitted.labels_)
    assert np.array_equal(again.labels_at(3), fitted.labels_at(3))
    assert np.array_equal(again.tree_, fitted.tree_)


def test_exported_models_know_the_number(five, fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    from coterie.export import OnnxModel, export_onnx

    there = OnnxModel(export_onnx(fitted, tmp_path / "m.onnx"))
    assert np.array_equal(there.predict(five[0]), fitted.labels_)


def test_words_and_other_methods_are_refused(five):
    with pytest.raises(ValueError, match=r"only for kith.*select-k"):
        DEC("auto").fit(five[0])
    with pytest.raises(ValueError, match="whole number, or 'auto'"):
        Kith("many").fit(five[0])


# -- the tree -----------------------------------------------------------------------------------
def test_tree_is_scipys_and_passes_through_the_labels(fitted):
    tree, most = fitted.tree_, len(fitted.tree_) + 1
    assert is_valid_linkage(tree) and most > 5
    assert np.array_equal(fitted.labels_at(5), fitted.labels_)
    before = fitted.labels_at(1)
    for k in range(2, most + 1):
        labels = fitted.labels_at(k)
        assert sorted(np.unique(labels)) == list(range(k))
        assert len(np.unique(np.stack([labels, before]), axis=1)[0]) == k  # parts of what was there
        before = labels
    with pytest.raises(ValueError, match=f"k={most + 1}.*{most} over-clusters"):
        fitted.labels_at(most + 1)


def test_cut_is_that_of_scipy():
    rng = np.random.default_rng(0)
    labels, outputs = rng.integers(0, 4, 300), rng.integers(0, 5, 300)
    cells, of = over_clusters(labels, outputs)
    j = edges_between(cells, rng.integers(0, 300, (300, 4)))
    assert j.sum() == pytest.approx(1) and np.allclose(j, j.T)
    tree = grow(j, of)
    for k in range(1, len(of) + 1):
        assert adjusted_rand_score(cut_tree(tree, k).ravel(), cut(tree, k)) == 1
    assert np.array_equal(cut(tree, 4)[cells], labels)


def test_rejected_rows_stay_out_of_the_tree(five):
    model = quick("kith", "auto", reject=0.1).fit(five[0])
    assert np.array_equal(model.labels_at(model.n_clusters_), model.labels_)
    assert np.array_equal(model.labels_at(2) < 0, model.labels_ < 0) and (model.labels_ < 0).any()


# -- commands -----------------------------------------------------------------------------------
def test_fit_and_select_k_say_the_number(five, tmp_path, capsys):
    np.save(tmp_path / "x.npy", five[0])
    tiny = "--hidden 16 --embedding-dim 8 --epochs 12 --refine-epochs 1"
    words = f"fit {tmp_path / 'x.npy'} --clusters auto --out {tmp_path / 'run'} --report {tiny}"
    assert cli.main(words.split()) == 0
    said = capsys.readouterr().out
    assert "found: 5 clusters" in said and "5 of 5 clusters used" in said
    page = (tmp_path / "run" / "report.html").read_text()
    assert "the method found 5 clusters" in page
    assert "clusters, found" in page and "as asked for" not in page
    assert cli.main(["fit", "--resume", "--out", str(tmp_path / "run")]) == 0
    again = f"fit --config {tmp_path / 'run'} --out {tmp_path / 'again'} --quiet"
    assert cli.main(again.split()) == 0
    assert coterie.load(tmp_path / "again").n_clusters == "auto"
    assert cli.main(f"fit {tmp_path / 'x.npy'} --method dec --clusters auto".split()) == 2
    assert "select-k" in capsys.readouterr().err


def test_select_k_uses_the_same(five):
    found = select_k(five[0], range(4, 6), **Kith.tiny)
    assert found.answer == 5 and found.verdict().startswith("5 clusters")
    noise = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    found = select_k(noise, (2, 3), **Kith.tiny)
    assert found.answer is None and found.verdict().startswith("no structure")
