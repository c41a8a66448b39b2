"""Fits in several threads: the bits of a fit alone, and nobody's random numbers are touched."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from conftest import KEYS, quick
from coterie.runtime.rng import own_stream


def states() -> tuple:
    """The random states that belong to the whole process."""
    return torch.get_rng_state().tolist(), random.getstate(), str(np.random.get_state())  # noqa: NPY002


def bits(model, X) -> dict:
    made = {"labels": model.labels_, "z": model.transform(X)}
    return made | {k: v.numpy() for k, v in model.network_.state_dict().items()}


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


class Noisy(nn.Module):
    """Draws by an operation that takes no generator."""

    def forward(self, x):
        return x + 0.1 * torch.randn_like(x) if self.training else x


def noisy_net():
    encoder = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), Noisy(), nn.Linear(8, 2))
    return encoder, nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.AlphaDropout(0.1), nn.Linear(8, 6))


@pytest.mark.parametrize("key", KEYS)
def test_a_fit_leaves_the_random_state_of_the_process_alone(key, blobs):
    before = states()
    quick(key).fit(blobs[0])
    assert states() == before


def test_threads_give_the_bits_of_a_fit_alone(blobs):
    keys = [k for k in ("kmeans", "dec", "kith", "cuegan") if k in KEYS]
    alone = {key: bits(quick(key).fit(blobs[0]), blobs[0]) for key in keys}
    before = states()
    with ThreadPoolExecutor(4) as pool:
        jobs = [(key, pool.submit(lambda k=key: quick(k).fit(blobs[0]))) for key in keys * 3]
        together = [(key, bits(job.result(), blobs[0])) for key, job in jobs]
    assert states() == before
    assert all(same(made, alone[key]) for key, made in together)


def test_threads_with_dropout_of_the_user(blobs):
    net = noisy_net()

    def fit(seed):
        model = quick("dec", net=net, epochs=4, pretrain_epochs=4, random_state=seed).fit(blobs[0])
        return bits(model, blobs[0])

    alone = [fit(seed) for seed in range(4)]
    assert not same(alone[0], alone[1])
    before = states()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, [0, 1, 2, 3, 0, 1, 2, 3]))
    assert states() == before
    assert all(same(made, alone[i % 4]) for i, made in enumerate(together))


def test_an_own_stream_is_the_one_that_torch_would_draw():
    def draw():
        x = torch.ones(40, 8, requires_grad=True)
        parts = [
            nn.functional.dropout(x, 0.3),
            torch.rand(3),
            torch.randn_like(x),
            torch.randperm(9),
        ]
        parts += [nn.functional.rrelu(-x, training=True), torch.bernoulli(torch.full((9,), 0.5))]
        parts += [
            torch.normal(0.0, 1.0, (5,)),
            nn.functional.gumbel_softmax(x),
            nn.Linear(4, 2).weight,
        ]
        return parts

    torch.manual_seed(11)
    known = draw()
    before = states()
    with own_stream(11):
        assert all(torch.equal(a, b) for a, b in zip(draw(), known))
    assert states() == before


@pytest.mark.parametrize("key", KEYS)
def test_one_and_two_threads_give_the_same_labels(key, digits):
    """Sums are split among threads, so bits may differ; labels of the same seed may not."""
    from coterie.storage.runs import threads_held

    X, found = digits[0][:400].astype(np.float32), []
    for threads in (1, 2):
        with threads_held(threads):
            found.append(quick(key, 10).fit(X).labels_)
    assert np.array_equal(*found)
