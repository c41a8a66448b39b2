"""Half precision: products in bfloat16, codes and weights in single."""

import numpy as np
import pytest
import torch

from conftest import KEYS, quick
from coterie import DEC
from coterie.estimator import fields
from coterie.estimator.fields import NetworkFields
from coterie.nets import build
from coterie.nets.mlp import _HALF, half_products
from coterie.registry import get
from coterie.runtime.rng import torch_rng
from coterie.storage.runs import threads_held
from coterie.train.engine import Engine
from coterie.train.settings import resolve


def network(kind, shape):
    return build(
        kind,
        shape,
        embedding_dim=3,
        hidden=(32, 16),
        channels=(4, 4, 4),
        activation="relu",
        initializer="xavier",
        generator=torch_rng(0),
    )


@pytest.mark.parametrize(("kind", "shape"), [("mlp", (20,)), ("conv", (1, 8, 8))])
def test_codes_and_gradients_are_single_and_near_those_of_single_products(kind, shape):
    net, x = network(kind, shape), torch.rand(12, *shape, generator=torch_rng(1))
    single = net.decode(net.encode(x))
    with half_products(torch.device("cpu")):
        z = net.encode(x)
        half = net.decode(z)
    assert z.dtype == half.dtype == torch.float32
    assert not torch.equal(half, single)  # or nothing was computed in half
    torch.testing.assert_close(half, single, rtol=0.05, atol=0.02)
    half.square().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in net.parameters())
    assert torch.equal(net.decode(net.encode(x)), single)  # outside all is as before


@pytest.mark.parametrize("key", [k for k in KEYS if issubclass(get(k), NetworkFields)])
def test_every_autoencoder_method_trains_in_half(key, blobs):
    half, single = (quick(key, precision=p).fit(blobs[0]) for p in ("half", "single"))
    assert half.settings_.precision == "half"
    assert not np.array_equal(half.transform(blobs[0]), single.transform(blobs[0]))
    assert np.array_equal(half.labels_, half.predict(blobs[0]))
    assert all(v.dtype != torch.bfloat16 for v in half.network_.state_dict().values())


def settled(monkeypatch, quick_products=True, **given):
    monkeypatch.setattr(fields, "quick_bfloat16", lambda: quick_products)
    known = {"device": given.pop("device", "cpu")}
    return resolve(DEC(3, **given), 500, (20,), known=known).precision


def test_auto_is_half_where_it_gains_time(monkeypatch):
    assert settled(monkeypatch) == "half"  # 512-512
    assert settled(monkeypatch, quick_products=False) == "single"
    assert settled(monkeypatch, hidden=(512, 255)) == "single"
    assert settled(monkeypatch, hidden=()) == "single"
    assert settled(monkeypatch, net="conv") == "single"
    assert settled(monkeypatch, pretrain="kith") == "single"
    assert settled(monkeypatch, device="cuda:0") == "single"
    assert settled(monkeypatch, precision="single") == "single"
    assert settled(monkeypatch, quick_products=False, precision="half") == "half"


def test_tiny_networks_and_papers_are_single(blobs):
    model = quick("dec").fit(blobs[0])
    assert model.precision == "auto" and model.settings_.precision == "single"
    assert DEC.paper("usps").precision == "single"


def test_updates_are_half_too_and_what_is_between_phases_is_not(blobs, monkeypatch):
    seen, encode = [], Engine.encode_all

    def watched(engine):
        seen.append((engine.phase.name, _HALF.get()))
        return encode(engine)

    monkeypatch.setattr(Engine, "encode_all", watched)
    quick("dec", precision="half").fit(blobs[0])
    assert set(seen) == {("init", None), ("train", "cpu")}


def test_half_gives_the_same_bits_again_and_with_two_threads(blobs):
    found = []
    for threads in (1, 1, 2):
        with threads_held(threads):
            model = quick("idec", hidden=(256, 256), precision="half").fit(blobs[0])
        found.append((model.labels_, model.transform(blobs[0])))
    assert np.array_equal(found[0][1], found[1][1])
    assert np.array_equal(found[0][0], found[2][0])
