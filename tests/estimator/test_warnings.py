"""A result that is worse than it looks says so: too few clusters, or clusters drawn by lot."""

import warnings

import numpy as np
import pytest
import torch

import coterie
from conftest import KEYS, quick
from coterie import metrics, registry
from coterie.cli import main
from coterie.train.rows import Rows, clusters_kept
from coterie.train.scaling import fit_scaling


def test_fewer_clusters_than_asked_are_told_in_python(blobs):
    X = np.repeat(np.eye(3, dtype=np.float32), 20, axis=0)  # three kinds of rows, five asked for
    with pytest.warns(UserWarning, match="KMeans uses 3 of 5 clusters; ask for 3 or fewer"):
        model = quick("kmeans", 5).fit(X)
    assert model.notes_ == ["KMeans uses 3 of 5 clusters"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick("kmeans", 3).fit(blobs[0]).notes_ == []


@pytest.mark.parametrize("key", KEYS)
def test_every_method_tells_of_fewer_clusters_than_asked(key):
    """Equal rows have equal labels, so that three kinds of rows cannot be in five clusters."""
    X = np.repeat(8 * np.eye(3, 6, dtype=np.float32), 20, axis=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = quick(key, 5).fit(X)
    used = len(np.unique(model.labels_))
    said = f"{type(model).__name__} uses {used} of 5 clusters"
    assert used <= 3 and said in model.notes_
    assert [str(w.message) for w in told if str(w.message).startswith(f"{said}; ")]
    assert model.labels_.max() == used - 1  # without holes


@pytest.mark.filterwarnings("always:.* uses 3 of 5 clusters:UserWarning")
def test_fewer_clusters_than_asked_are_told_on_the_command_line(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.repeat(np.eye(3, dtype=np.float32), 20, axis=0))
    words = ["fit", str(tmp_path / "x.npy"), "--method", "kmeans", "--clusters", "5"]
    assert main([*words, "--out", str(tmp_path / "r"), "--report"]) == 0
    told = capsys.readouterr()
    assert (told.out + told.err).count("uses 3 of 5 clusters") == 1
    assert "3 of 5 clusters used" in told.out
    assert main([*words, "--out", str(tmp_path / "q"), "--quiet"]) == 0
    assert "uses 3 of 5 clusters" in capsys.readouterr().err


class Lottery(coterie.AEKMeans):
    """Labels that have nothing to do with the rows."""

    def assign(self, latents, head):
        code = (latents * 1e4).sum(1).abs().long() % self.n_clusters
        return torch.nn.functional.one_hot(code, self.n_clusters).float()


def test_a_fit_that_ends_at_chance_says_so(digits):
    X = digits[0][:600].astype(np.float32)
    with pytest.warns(UserWarning, match="ended near chance: beyond chance, .% of"):
        Lottery(10, random_state=0, **coterie.AEKMeans.tiny).fit(X)


def short_texts(own, n=480):
    """Eight words: `own` of one of four topics, the others mean nothing."""
    rng = np.random.default_rng(0)
    topics = [[f"{name}{i}" for i in range(40)] for name in ("sport", "space", "money", "music")]
    others = [f"word{i}" for i in range(200)]
    return [
        " ".join([*rng.choice(topics[i % 4], own), *rng.choice(others, 8 - own)]) for i in range(n)
    ], np.arange(n) % 4


@pytest.mark.parametrize("key", ["dec", "acedec"])
@pytest.mark.parametrize("way", ["steps far too long", "no training at all"])
def test_texts_whose_embedding_has_collapsed_are_told(key, way):
    """Fits on tf-idf rows that are no better than drawing lots, by the known topics."""
    texts, topics = short_texts(3)
    small = {"hidden": (64,), "embedding_dim": 4, "random_state": 0}
    bad = {
        "steps far too long": {"lr": 1.0 if key == "acedec" else 3.0, "epochs": 5},
        "no training at all": {"epochs": 3},
    }[way] | {"pretrain_epochs": 3 if way == "steps far too long" else 0}
    method = registry.get(key)
    with pytest.warns(UserWarning, match="ended near chance: beyond chance"):
        model = method(4, **small, **bad).fit(texts)
    assert metrics.nmi(topics, model.labels_) < 0.05
    assert any("near chance" in note for note in model.notes_)


@pytest.mark.parametrize("key", ["dec", "acedec"])
def test_texts_that_were_told_apart_are_not_called_chance(key):
    texts, topics = short_texts(6)
    small = {"hidden": (64,), "embedding_dim": 4, "pretrain_epochs": 80, "epochs": 5}
    model = registry.get(key)(4, random_state=0, **small).fit(texts)
    assert metrics.nmi(topics, model.labels_) > 0.1
    assert not any("chance" in note for note in model.notes_)


class Giant(coterie.AEKMeans):
    """Nearly all rows in one cluster."""

    def assign(self, latents, head):
        score = latents[:, 0]
        first = (score <= score.sort().values[len(score) * 9 // 10]).float()
        return torch.stack([first, 1 - first, torch.zeros_like(first)], 1)


def test_one_cluster_that_swallows_the_others_is_told(digits):
    with pytest.warns(UserWarning, match="put 90% of the rows into one cluster"):
        model = Giant(3, random_state=0, **coterie.AEKMeans.tiny).fit(digits[0][:600])
    assert "Giant put 90% of the rows into one cluster" in model.notes_


def test_neighbours_kept_by_hand():
    X = np.concatenate([np.arange(60.0), 1000 + np.arange(60.0)])[:, None].astype(np.float32)
    rows = Rows(X, fit_scaling(X, "none"))
    halves = np.repeat([0, 1], 60)
    assert clusters_kept(rows, halves, 0) == pytest.approx(1)
    assert abs(clusters_kept(rows, np.random.default_rng(0).permutation(halves), 0)) < 0.1
    assert np.isnan(clusters_kept(rows, np.zeros(120, int), 0))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.filterwarnings("ignore:.*uses . of 4 clusters")
def test_clusters_can_be_renumbered(key, blobs):
    """Whatever a model says of its clusters moves with their numbers."""
    model, order = quick(key, 4).fit(blobs[0]), torch.tensor([2, 0, 3, 1])

    def said():
        found = {"proba": model.predict_proba(blobs[0]).T, "one_hot": np.eye(4)[model.predict(X)].T}
        if "centers" in model.head_:
            found["centers"] = model.cluster_centers_.copy()
        if "spread" in model.head_ and hasattr(model, "sample"):
            found["spread"] = model.head_.spread.numpy().copy()
        if key == "cuegan":  # whose draws do not depend on the number
            found["drawn"] = np.stack([model.sample(j, 2) for j in range(4)])
        return found

    X = blobs[0]
    before = said()
    model._renumber(order)
    model._after_fit()
    for name, now in said().items():
        np.testing.assert_allclose(now, before[name][order], atol=1e-5, err_msg=name)


class Holes(coterie.KMeans):
    """Cluster 1 of 4 is nobody's."""

    def assign(self, latents, head):
        scores = super().assign(latents, head).clone()
        scores[:, head.centers[:, 0].argmin()] = -torch.inf
        return scores


def test_labels_have_no_holes(blobs, tmp_path):
    with pytest.warns(UserWarning, match="Holes uses 3 of 4 clusters"):
        model = Holes(4, random_state=0, n_init=2).fit(blobs[0])
    assert np.unique(model.labels_).tolist() == [0, 1, 2]
    assert np.array_equal(model.predict(blobs[0]), model.labels_)
    assert model.cluster_centers_[:, 0].argmin() == 3  # the one without rows comes last
