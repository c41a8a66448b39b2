"""Networks: right shapes for every size, our own starting weights, pre-training that helps."""

import numpy as np
import pytest
import torch

from conftest import quick
from coterie.nets import INITIALIZERS, Conv, build
from coterie.runtime.rng import torch_rng

SIZES = [
    (1, 8, 8),
    (1, 16, 16),
    (1, 28, 28),
    (3, 32, 32),
    (1, 64, 64),
    (1, 112, 92),
    (3, 27, 33),
    (2, 5, 7),
]


def make(net, shape, **changes):
    settings = {"embedding_dim": 4, "hidden": (6, 5), "channels": (3, 4, 5), "activation": "relu"}
    settings |= {"initializer": "xavier", "generator": torch_rng(0, "t")}
    return build(net, shape, **(settings | changes))


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("net", ["mlp", "conv", "auto"])
def test_there_and_back_keeps_the_shape(net, shape):
    network = make(net, shape)
    x = torch.randn(3, *shape, generator=torch_rng(1))
    z = network.encode(x)
    assert z.shape == (3, 4) and network.decode(z).shape == x.shape


def test_sizes_inside_the_conv_net_are_the_papers():
    inner = {28: 3, 16: 2, 32: 4}
    for size, expected in inner.items():
        net = Conv((1, size, size), 10, (32, 64, 128), "xavier", torch_rng(0))
        assert net.inner == (128, expected, expected)


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_starting_weights_depend_on_the_generator_only(initializer):
    before = torch.get_rng_state()
    a, b = (make("mlp", (7,), initializer=initializer) for _ in range(2))
    other = make("mlp", (7,), initializer=initializer, generator=torch_rng(9))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))
    assert not torch.equal(a.encoder[0].weight, other.encoder[0].weight)
    assert all(torch.isfinite(p).all() for p in a.parameters())


@pytest.mark.parametrize(
    ("initializer", "deviation", "bias"),
    [
        ("xavier", (2 / (200 + 300)) ** 0.5, 0),
        ("glorot_bias", (2 / (200 + 300)) ** 0.5, (1 / 300) ** 0.5),
        ("uniform", 0.05 / 3**0.5, 0),
        ("normal", 0.01, 0),
        ("fan_in", (1 / 3 / 200) ** 0.5, 0),
    ],
)
def test_starting_weights_spread_as_announced(initializer, deviation, bias):
    layer = make("mlp", (200,), hidden=(300,), initializer=initializer).encoder[0]
    assert layer.weight.std().item() == pytest.approx(deviation, rel=0.02)
    assert layer.bias.std().item() == pytest.approx(bias, rel=0.2)
    widest = layer.weight.abs().max().item() / deviation
    assert widest > 3 if initializer == "normal" else widest == pytest.approx(3**0.5, rel=1e-3)


@pytest.mark.parametrize("pretrain", ["plain", "denoise", "layerwise"])
def test_pretraining_lowers_the_reconstruction_error(pretrain, digits):
    X = digits[0][:600].astype(np.float32) / 16

    def error(**params):
        model = quick("ae_kmeans", 10, hidden=(64, 32), embedding_dim=10, net="mlp", **params).fit(
            X
        )
        return float(np.square(model.reconstruct(X) - X).sum(1).mean())

    trained = error(pretrain=pretrain, pretrain_epochs=24, pretrain_lr=3e-3, batch_size=64)
    assert trained < 0.7 * error(init="random")


def test_layerwise_needs_levels(digit_images):
    with pytest.raises(ValueError, match="needs net='mlp'"):
        quick("ae_kmeans", net="conv", pretrain="layerwise").fit(digit_images[0][:40])


def test_a_module_without_encode_is_refused(blobs):
    with pytest.raises(TypeError, match="encode"):
        quick("dec", net=torch.nn.Linear(6, 2)).fit(blobs[0])
