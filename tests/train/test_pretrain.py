"""Which network a fit takes and how it is pre-trained, by the size of the data."""

import numpy as np
import pytest
import torch

import coterie
from conftest import quick
from coterie.estimator import deep
from coterie.nets.mlp import MLP
from coterie.train import settings
from coterie.train.settings import FEW, MANY

TINY_MANY = MANY.__class__((8, 12), epochs=(1, 1), lr=1e-3, schedule="constant", moved=False)


@pytest.fixture
def many(monkeypatch):
    """Data of the tests count as large, with a network that is quick."""
    monkeypatch.setattr(settings, "MANY_ROWS", 50)
    monkeypatch.setattr(settings, "WIDE_ROWS", 6)
    monkeypatch.setattr(settings, "MANY", TINY_MANY)


def widths(model):
    return [p.shape[0] for name, p in model.network_.named_parameters() if name.endswith("weight")]


def test_many_rows_get_the_network_of_the_papers(many, blobs):
    few = quick("dec", hidden=None).fit(blobs[0][:49])
    large = quick("dec", hidden=None).fit(blobs[0])
    assert widths(few)[:2] == [512, 512] and few.recipe() == FEW
    narrow = quick("dec", hidden=None).fit(blobs[0][:, :5])
    assert widths(large)[:2] == [8, 12] and large.recipe() == TINY_MANY
    assert widths(narrow)[:2] == [512, 512]
    given = quick("dec", hidden=(5,), pretrain_lr=0.5, pretrain_schedule="polynomial").fit(blobs[0])
    found = given.recipe()
    assert (found.hidden, found.lr, found.schedule) == ((5,), 0.5, "polynomial")


def test_a_conv_net_is_not_concerned(many, digit_images):
    model = quick("dekm", net="conv", hidden=None).fit(digit_images[0][:60])
    assert model.recipe().schedule == FEW.schedule and model.recipe().epochs == (10, 500)


@pytest.mark.parametrize(
    "k, shape, size",
    [(3, (30,), 10), (12, (30,), 12), (12, (11,), 11), (12, (4,), 10), (70, (80,), 64)],
)
def test_a_code_has_a_number_for_each_cluster(k, shape, size):
    X = np.random.default_rng(0).normal(size=(90, *shape)).astype(np.float32)
    model = quick("dec", k, embedding_dim=None).fit(X)
    assert model.transform(X).shape[1] == size


def test_the_code_of_images_has_ten_numbers(digit_images, tmp_path):
    model = quick("dec", 12, net="mlp", embedding_dim=None).fit(digit_images[0][:60])
    assert model.transform(digit_images[0][:60]).shape[1] == 10
    model.save(tmp_path / "model")
    assert coterie.load(tmp_path / "model").transform(digit_images[0][:60]).shape[1] == 10


@pytest.mark.parametrize(
    "changes, moved",
    [
        ({}, True),
        ({"init": "random"}, True),
        ({"pretrain": "denoise"}, False),
        ({"pretrain": "layerwise"}, False),
        ({"pretrain": "kith"}, True),
    ],
)
def test_cnet_moves_images_that_its_network_knows(digit_images, monkeypatch, changes, moved):
    phases = []
    monkeypatch.setattr(deep.DeepClusterer, "_run", lambda *a, **k: phases.extend(a[3]) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        quick("cnet", net="mlp", **changes).fit(digit_images[0][:60])
    (train,) = (phase for phase in phases if phase.name == "train")
    assert (train.augment is not None) == moved


def test_kith_has_a_recipe_of_its_own(many, digit_images):
    model = quick("dec", net="mlp", hidden=None, pretrain="kith").fit(digit_images[0][:100])
    assert model.recipe() == FEW


def test_the_code_of_cnet_is_narrow_where_the_wide_network_was_pretrained(many, blobs):
    def code(**changes):
        return quick("cnet", embedding_dim=None, hidden=None, **changes).fit(blobs[0])

    narrow, wide, given = code(), code(init="random"), quick("cnet", embedding_dim=7)
    assert narrow.transform(blobs[0]).shape[1] == 10
    assert wide.transform(blobs[0]).shape[1] == 100
    assert given.fit(blobs[0]).transform(blobs[0]).shape[1] == 7


@pytest.mark.parametrize("key", ["ae_kmeans", "cnet"])
def test_a_saved_model_knows_its_network(many, blobs, tmp_path, key):
    size = {"embedding_dim": None} if key == "cnet" else {}
    model = quick(key, hidden=None, **size).fit(blobs[0])
    model.save(tmp_path / "model")
    again = coterie.load(tmp_path / "model")
    # fewer rows than the fit had
    assert np.array_equal(again.predict(blobs[0][:20]), model.predict(blobs[0][:20]))


@pytest.mark.parametrize("augment, moved", [("auto", 0), ("affine", 1), ("none", 0)])
def test_many_images_are_moved_in_pretraining_only_on_request(
    many, digit_images, monkeypatch, augment, moved
):
    calls = []

    def spy(x, generator, outside):
        calls.append(len(x))
        return x

    monkeypatch.setattr(settings, "affine", spy)
    quick("ae_kmeans", net="mlp", hidden=None, augment=augment).fit(digit_images[0][:100])
    assert bool(calls) == bool(moved)
    calls.clear()
    for key in ("dec", "dkm"):
        quick(key, net="mlp", hidden=None, augment=augment).fit(digit_images[0][:100])
        assert bool(calls) == (augment != "none")
        calls.clear()
    # C-Net has no anchor in the unmoved image: it is moved where pre-training moved it
    quick("cnet", net="mlp", hidden=None, augment=augment).fit(digit_images[0][:100])
    assert bool(calls) == (augment == "affine")


def test_a_layer_loses_a_fifth_of_its_own_input_and_rebuilds_all_of_it(monkeypatch):
    seen = {}
    rebuild = MLP.rebuild

    def watched(network, x, i):
        seen.setdefault(i, []).append(x.detach())
        return rebuild(network, x, i)

    monkeypatch.setattr(MLP, "rebuild", watched)
    settings = {"hidden": (64, 32), "activation": "leaky_relu", "pretrain_epochs": 6}
    X = np.random.default_rng(0).normal(size=(200, 20))
    quick("ae_kmeans", 3, net="mlp", pretrain="layerwise", **settings).fit(X)
    lost = [float((torch.cat(seen[i]) == 0).float().mean()) for i in range(3)]
    assert lost[0] == 0  # the raw rows are whole
    assert lost[1:] == pytest.approx([0.2, 0.2], abs=0.02)
