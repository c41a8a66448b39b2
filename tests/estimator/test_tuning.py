"""encoder_lr: a module given as encoder is trained along with the clusters."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import coterie
from conftest import quick
from coterie.encoders.base import EncoderError
from coterie.methods import METHODS
from coterie.methods.autoencoder import JointClusterer
from coterie.nets.fine_tuned import FineTuned
from coterie.registry import get
from coterie.train.optim import Optim

TUNED = [key for key in METHODS if issubclass(get(key), JointClusterer)]


def rows(n=40):
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, 6)) + 4 * np.eye(6)[np.arange(n) % 2]).astype(np.float32)


def encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 5))


def tuned(key="dec", **params):
    settings = {"encoder": encoder(), "encoder_lr": 1e-2, "random_state": 0}
    return quick(key, 2, **(settings | params))


@pytest.mark.parametrize("key", TUNED)
def test_the_encoder_learns_and_a_fresh_one_takes_its_weights(key, tmp_path):
    X, given = rows(), encoder()
    before = copy.deepcopy(given.state_dict())
    model = tuned(key, encoder=given).fit(X)
    learned = model.network_.fine_tuned.module.state_dict()
    assert all(torch.equal(v, given.state_dict()[k]) for k, v in before.items())  # left alone
    assert not torch.equal(learned["0.weight"], before["0.weight"])
    assert torch.equal(learned["1.running_mean"], before["1.running_mean"])  # evaluation mode
    assert np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m", encoder=encoder())
    assert np.array_equal(again.predict(X), model.labels_)
    assert np.array_equal(again.transform(X), model.transform(X))


def test_without_a_rate_the_encoder_stays():
    model = tuned(encoder_lr=None).fit(rows())
    assert not hasattr(model.network_, "fine_tuned")


def test_the_first_vectors_are_those_of_the_encoder_as_given():
    """Until the encoder is awake both fits are the same."""
    X = rows()
    frozen, model = tuned(encoder_lr=None).fit(X), tuned().fit(X)
    of = {r["epoch"]: r["reconstruction"] for r in frozen.history_ if r["phase"] == "pretrain"}
    assert of == {
        r["epoch"]: r["reconstruction"] for r in model.history_ if r["phase"] == "pretrain"
    }


def test_images_are_tuned_too():
    X = np.random.default_rng(0).integers(0, 60, (30, 5, 5, 3), dtype=np.uint8)
    X[::2, ..., 0] += 180
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4))
    model = tuned(encoder=net).fit(X)
    assert np.array_equal(model.predict(X), model.labels_)
    assert len(model.predict(list(X[:3]))) == 3


def test_a_stopped_fit_goes_on_with_the_same_bits(tmp_path):
    X, straight = rows(), tuned(batch_size=10).fit(rows())
    calls = []

    def stop(record):
        calls.append(record)
        if record["phase"] == "train":
            raise KeyboardInterrupt

    kept = {"checkpoint_dir": str(tmp_path), "checkpoint_seconds": 0, "batch_size": 10}
    with pytest.raises(KeyboardInterrupt):
        tuned(callback=stop, **kept).fit(X)
    went_on = tuned(**kept).fit(X)
    assert calls[-1]["phase"] == "train"
    state, want = (m.network_.state_dict() for m in (went_on, straight))
    assert all(torch.equal(state[name], want[name]) for name in want)
    assert np.array_equal(went_on.labels_, straight.labels_)


def test_its_rate_is_its_own():
    layers = nn.Linear(2, 2), nn.Linear(2, 2)
    network = nn.Sequential(*layers)
    optim = Optim(lr=0.1, encoder_lr=0.001)
    groups = optim.build(list(network.parameters()), layers[1]).param_groups
    assert [len(g["params"]) for g in groups] == [2, 2]
    assert groups[1]["params"][0] is layers[1].weight
    assert [g["share"] for g in groups] == pytest.approx([1, 0.01])
    assert len(optim.build(list(network.parameters())).param_groups) == 1


def test_scaled_unit_vectors():
    module = FineTuned(nn.Identity(), np.float32(0.5), np.float32(2))
    found = module(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.2, 0.6], [-1.0, -1.0]]))


def test_what_cannot_be_tuned_says_so(tmp_path):
    for given, said in (("text", "'text'"), (None, "None"), (len, "built-in function len")):
        with pytest.raises(EncoderError, match=f"encoder_lr=0.01 trains a torch module.*{said}"):
            tuned(encoder=given).fit(rows())
    model = tuned().fit(rows())
    model.save(tmp_path / "m")
    with pytest.raises(EncoderError, match=r"trained weights of your module Sequential.*encoder=M"):
        coterie.load(tmp_path / "m")
    other = nn.Sequential(nn.Linear(6, 5))
    with pytest.raises(Exception, match=r"do not fit the network.*encoder=\.\.\."):
        coterie.load(tmp_path / "m", encoder=other)
