"""Which network a fit takes and how it is pre-trained, by the size of the data."""

import dataclasses

import numpy as np
import pytest
import torch

import coterie
from conftest import quick
from coterie.estimator import fields
from coterie.methods import autoencoder
from coterie.methods.autoencoder import AutoencoderClusterer
from coterie.nets.mlp import MLP
from coterie.train.settings import resolve


@pytest.fixture
def many(monkeypatch):
    """Data of the tests count as large, with a network that is quick."""
    monkeypatch.setattr(fields, "MANY_ROWS", 50)
    monkeypatch.setattr(fields, "WIDE_ROWS", 6)
    monkeypatch.setattr(fields, "LARGE_NETWORK", (8, 12))
    monkeypatch.setattr(AutoencoderClusterer, "large_pretrain_rule", (1, 1))


def widths(model):
    return [p.shape[0] for name, p in model.network_.named_parameters() if name.endswith("weight")]


def test_many_rows_get_the_network_of_the_papers(many, blobs):
    few = quick("dec", hidden=None).fit(blobs[0][:49])
    large = quick("dec", hidden=None).fit(blobs[0])
    assert widths(few)[:2] == [512, 512] and few.settings_.pretrain_schedule == "onecycle"
    narrow = quick("dec", hidden=None).fit(blobs[0][:, :5])
    assert widths(large)[:2] == [8, 12] and large.settings_.pretrain_lr == 1e-3
    assert widths(narrow)[:2] == [512, 512]
    given = quick("dec", hidden=(5,), pretrain_lr=0.5, pretrain_schedule="polynomial").fit(blobs[0])
    found = given.settings_
    assert found.hidden == (5,)
    assert (found.pretrain_lr, found.pretrain_schedule) == (0.5, "polynomial")


def test_a_conv_net_is_not_concerned(many, digit_images):
    model = quick("dekm", net="conv", hidden=None).fit(digit_images[0][:60])
    assert model.settings_.pretrain_schedule == "onecycle"
    longer = resolve(quick("dekm", net="conv", pretrain_epochs=None), 60, (1, 8, 8))
    assert longer.pretrain_epochs == 500


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


def test_kith_is_no_large_network(many):
    given = quick("dec", net="mlp", hidden=None, pretrain="kith", pretrain_epochs=None)
    found = resolve(given, 100, (1, 8, 8))
    assert (found.hidden, found.pretrain_lr, found.pretrain_epochs) == ((512, 512), 3e-3, 200)


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


@pytest.mark.parametrize("key", ["ae_kmeans", "dec", "dkm", "cnet"])
@pytest.mark.parametrize("augment", ["none", "affine", "rigid"])
def test_images_are_moved_only_on_request(digit_images, monkeypatch, key, augment):
    calls = []

    def spy(x, generator, outside, **only):
        calls.append(only)
        return x

    monkeypatch.setattr(autoencoder, "affine", spy)
    quick(key, augment=augment).fit(digit_images[0][:100])
    assert bool(calls) == (augment != "none")
    assert all(only == {"scale": 0.0, "shear": 0.0} for only in calls) == (augment != "affine")
    calls.clear()
    quick(key, augment=augment, pretrain_augment=False).fit(digit_images[0][:100])
    assert bool(calls) == (augment != "none" and key != "ae_kmeans")


@pytest.mark.parametrize("key", ["dec", "cnet"])
def test_tables_cannot_be_moved(blobs, key):
    with pytest.raises(ValueError, match="augment='affine' turns images"):
        quick(key, augment="affine").fit(blobs[0])


def test_a_loaded_model_does_not_care_for_new_defaults(blobs, tmp_path, monkeypatch):
    model = quick("dec", hidden=None, embedding_dim=None).fit(blobs[0])
    model.save(tmp_path / "model")
    for field in dataclasses.fields(type(model)):
        if field.name in ("hidden", "embedding_dim"):
            other = {**field.metadata, "rule": lambda s: 1 / 0}
            monkeypatch.setattr(field, "metadata", other)
    monkeypatch.setattr(fields, "CODE", 99)
    again = coterie.load(tmp_path / "model")
    assert np.array_equal(again.transform(blobs[0]), model.transform(blobs[0]))


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
