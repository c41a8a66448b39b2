"""Half precision: products in bfloat16, codes and weights in single."""

import numpy as np
import pytest
import torch

from conftest import KEYS, quick
from coterie import DEC
from coterie.estimator.fields import NetworkFields
from coterie.nets import build
from coterie.nets.mlp import half_products
from coterie.registry import get
from coterie.runtime.rng import torch_rng


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


def test_single_is_the_default_and_that_of_papers(blobs):
    model = quick("dec").fit(blobs[0])
    assert model.precision == "auto" and model.settings_.precision == "single"
    assert DEC.paper("usps").precision == "single"
