"""CueGAN: its losses against twins, its networks' shapes, its prior, and what it says of itself."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from coterie import CueGAN, load
from coterie.math.gan import critic_terms, diverged, generator_terms, ramp, staircase
from coterie.math.losses import gradient_penalty
from coterie.nets.gan import GAN, sides

TINY = {"random_state": 0, **CueGAN.tiny}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_ten_outputs_with_the_codes_weights_are_one_output_with_the_papers():
    """Property 8: lambda 10 and eta 1 on ten flattened outputs = a tenth of lambda 100, eta 10."""
    real, fake, mixed = (normal(7, 3, seed=s) for s in range(3))
    logits, ids = normal(7, 4, seed=3), torch.arange(7) % 4
    inner, outer = (normal(*s, seed=4).requires_grad_() for s in ((3, 5), (5, 10)))

    def ten(x):
        return torch.tanh(x @ inner) @ outer

    def one(x):
        return ten(x).sum(1, keepdim=True)

    def losses(critic, penalty, eta):
        terms = critic_terms(critic(real), critic(fake), gradient_penalty(critic, mixed), penalty)
        return sum(terms.values()), sum(generator_terms(critic(fake), logits, ids, eta).values())

    code, paper = losses(ten, 10.0, 1.0), losses(one, 100.0, 10.0)
    for a, b in zip(code, paper):
        torch.testing.assert_close(10 * a, b)
        grads = [torch.autograd.grad(t, (inner, outer), retain_graph=True) for t in (a, b)]
        for x, y in zip(*grads):
            torch.testing.assert_close(10 * x, y)


def test_terms_twins():
    d, logits, ids = normal(6, 1), normal(6, 3, seed=1), torch.tensor([0, 1, 2, 0, 1, 1])
    terms = generator_terms(d, logits, ids, 10.0)
    p = logits.exp() / logits.exp().sum(1, keepdim=True)
    by_hand = sum(-np.log(p[i, ids[i]].item()) for i in range(6)) / 6
    assert terms["entropy"].item() == pytest.approx(10 * by_hand)
    assert terms["reality"].item() == pytest.approx(-d.mean().item())
    terms = critic_terms(d, 2 * d, torch.tensor(0.5), 100.0)
    assert terms["critic"].item() == pytest.approx(d.mean().item())
    assert terms["penalty"].item() == 50


def test_eta_climbs_thirty_stairs():
    assert staircase(10.0, 1.2, 30_000, 29_999) == 10
    assert staircase(10.0, 1.2, 30_000, 60_000) == pytest.approx(14.4)
    assert staircase(10.0, 1.2, 30_000, 899_999) == pytest.approx(10 * 1.2**29)


def test_eta_waits_until_the_generator_can_draw():
    assert [ramp(t, 0.4) for t in (0.0, 0.4, 0.6, 0.8, 1.0)] == pytest.approx([0, 0, 0.5, 1, 1])
    assert ramp(0.0, 0.0) == 1


def test_divergence_is_a_fall_and_a_climb():
    down = [5.0 / (1 + i) for i in range(40)]
    assert not diverged(down)
    assert not diverged([0.1, 0.5, *down])
    assert not diverged(list(range(40)))  # the critic is still waking up
    assert diverged(down + [0.3 * i for i in range(20)])
    assert not diverged([1.0, 0.1, 5.0])  # too short to tell


@pytest.mark.parametrize(
    "shape, expected",
    [
        ((1, 8, 8), [8, 8, 4]),
        ((1, 16, 16), [16, 16, 8, 4]),
        ((1, 28, 28), [28, 14, 7, 4]),
        ((3, 32, 32), [32, 16, 8, 4]),
        ((3, 64, 64), [64, 32, 16, 8, 4]),
    ],
)
def test_networks_for_all_image_sizes(shape, expected):
    assert [s[0] for s in sides(shape)] == expected
    net = conv(shape)
    x = net.generator(torch.randn(2, 5))
    assert x.shape == (2, *shape) and x.min() >= 0 and x.max() <= 1
    assert net.critique(x).shape == (2, 1)
    assert net.encode(x).shape == (2, net.embedding_dim)
    assert net.embedding_dim == 4 * 4 * (16 if shape[1] == 64 else 4 if shape[1] == 8 else 8)


def test_odd_sides_and_small_images():
    for shape in ((1, 7, 13), (2, 3, 5), (1, 1, 20)):
        assert conv(shape).generator(torch.randn(2, 5)).shape == (2, *shape)


def conv(shape):
    return GAN(
        shape, 5, kind="conv", sizes=(2, 4, 8), output="sigmoid", share_trunk=False, slow=True,
        generator=torch.Generator(),
    )  # fmt: skip


def test_starting_weights_have_the_variance_of_the_code():
    net = GAN(
        (1, 28, 28), 20, kind="conv", sizes=(32, 64, 128), output="sigmoid", share_trunk=False,
        slow=False, generator=torch.Generator(),
    )  # fmt: skip
    down, up = net.critic.layers[1].weight, net.generator.layers[0].weight
    assert down.var().item() == pytest.approx(4 / (32 * 25 + 64 * 25 / 4), rel=0.05)
    assert up.var().item() == pytest.approx(4 / (128 * 25 / 4 + 64 * 25), rel=0.05)
    assert net.generator.first.weight.var().item() == pytest.approx(2 / (20 + 2048), rel=0.05)


def test_eight_blobs_are_found(tmp_path):
    from coterie.data.sets.toys import blobs8
    from coterie.metrics import accuracy

    X, y = blobs8(2000)
    model = CueGAN(4, n_noise=1, steps=200, width=0.125, random_state=0, lr=1e-3)
    X = X[y < 4]
    model.fit(X)
    assert accuracy(y[y < 4], model.labels_) > 0.95
    last = model.history_[-1]
    assert 0 <= last["entropy_bound"] < 0.5 and last["fake_accuracy"] > 0.8
    assert {"earth_mover", "critic", "penalty", "classifier", "reality", "entropy"} <= set(last)
    assert last["earth_mover"] == pytest.approx(-last["critic"])
    # what is drawn for a cluster is near the rows of that cluster
    for k in range(4):
        drawn = model.sample(k, 20)
        assert drawn.shape == (20, 2)
        assert np.linalg.norm(drawn.mean(0) - X[model.labels_ == k].mean(0)) < 0.5
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert np.array_equal(again.sample(1, 5), model.sample(1, 5))
    assert np.array_equal(again.critic_values(X[:9]), model.critic_values(X[:9]))
    assert model.critic_values(X[:9]).shape == (9,)


def test_images_come_back_in_their_own_units(digit_images):
    model = CueGAN(3, **TINY).fit(digit_images[0][:80])
    drawn = model.sample(2, 4)
    assert drawn.shape == (4, 8, 8) and drawn.max() > 2  # 0..255, not 0..1
    assert not np.array_equal(drawn, model.sample(2, 4, random_state=1))
    with pytest.raises(ValueError, match="cluster=3 but there are 3"):
        model.sample(3)


def test_a_shared_trunk_is_trained_by_both(digit_images, tmp_path):
    X = digit_images[0][:80]
    model = CueGAN(3, **TINY, share_trunk=True).fit(X)
    assert model.network_.critic is None
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), model.labels_)


def test_turns_double_after_a_share_of_the_steps(monkeypatch, blobs):
    turns = []
    for name in ("_critic_turn", "_classifier_turn"):
        monkeypatch.setattr(
            CueGAN,
            name,
            lambda self, step, head, turn, of, name=name: turns.append((step.step, name, of)),
        )
    CueGAN(3, **{**TINY, "steps": 6}, n_critic=3, n_class=2, double_after=1 / 3).fit(blobs[0])
    of = {(step, name): n for step, name, n in turns}
    assert [of[s, "_critic_turn"] for s in range(6)] == [3, 3, 6, 6, 6, 6]
    assert [of[s, "_classifier_turn"] for s in range(6)] == [2, 2, 4, 4, 4, 4]
    assert len(turns) == 2 * 5 + 4 * 10


def test_work_is_counted_in_generator_steps(monkeypatch, blobs):
    count = []
    monkeypatch.setattr(CueGAN, "train_step", lambda self, step, head: count.append(step.step))
    for settings, expected in (({"steps": 7}, 7), ({"epochs": 2.0}, 8), ({"epochs": 0.1}, 1)):
        count.clear()
        CueGAN(3, **{**TINY, **settings}).fit(blobs[0])  # 120 rows, 4 batches of 32
        assert len(count) == expected


def test_without_slow_copies_the_weights_themselves_predict(blobs):
    plain = CueGAN(3, **TINY, slow=0.0).fit(blobs[0])
    assert "slow_weight" not in plain.head_ and not len(plain.network_.slow)
    slow = CueGAN(3, **TINY, slow=0.5).fit(blobs[0])
    x = torch.from_numpy(blobs[0])
    assert not torch.equal(slow.network_.encode(x), slow.network_.classifier(x))
    for a, b in zip(plain.network_.critic.parameters(), slow.network_.critic.parameters()):
        assert torch.equal(a, b)  # the copies follow; they do not take part


def unequal(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    X = np.where(y[:, None], 1.0, -1.0) + 0.1 * rng.standard_normal((n, 2))
    return X.astype(np.float32), y


def test_a_learned_prior_finds_ten_to_ninety():
    X, y = unequal()
    # a slow generator and a strong entropy term: the small blob must not be given half of the large
    settings = {"n_noise": 1, "steps": 300, "width": 0.0625, "scale": "none", "eta": 10.0}
    settings |= {"lr": 1e-3, "generator_lr": 3e-4}
    model = CueGAN(2, prior="learned", random_state=1, **settings).fit(X)
    small = y.mean()
    assert min(model.prior_) == pytest.approx(small, abs=0.05)
    assert model.prior_.sum() == pytest.approx(1)
    assert max((model.labels_ == y).mean(), (model.labels_ != y).mean()) > 0.98


def test_a_given_prior_is_what_the_generator_is_fed(monkeypatch, blobs):
    asked = []
    inputs = CueGAN._inputs
    monkeypatch.setattr(
        CueGAN, "_inputs", lambda self, c, z: asked.append(c.clone()) or inputs(self, c, z)
    )
    shares = np.array([1.0, 9.0])  # an array is as good as a tuple
    model = CueGAN(2, **{**TINY, "batch_size": 100}, prior=shares).fit(blobs[0])
    assert torch.cat(asked).float().mean().item() == pytest.approx(0.9, abs=0.04)
    np.testing.assert_allclose(model.prior_, [0.1, 0.9], atol=1e-6)


def test_invariances_reach_critic_and_classifier_alone(monkeypatch, digit_images):
    from coterie.methods.cuegan import turns

    seen, affine = [], turns.affine
    monkeypatch.setattr(
        turns, "affine", lambda x, g, **how: seen.append(len(x)) or affine(x, g, **how)
    )
    settings = {**TINY, "steps": 2, "n_critic": 2, "n_class": 1}
    CueGAN(3, **settings, augment="affine", brightness=0.1, contrast=0.1, noise=0.05).fit(
        digit_images[0][:80]
    )
    assert seen == [64, 64, 32, 32] * 2  # real and generated rows, generated rows, generated rows


def test_bad_settings_name_the_way_out(blobs, digit_images):
    X = blobs[0]
    with pytest.raises(ValueError, match="choose 'uniform', 'learned'"):
        CueGAN(3, **TINY, prior="equal").fit(X)
    with pytest.raises(ValueError, match="has 2 shares but n_clusters is 3"):
        CueGAN(3, **TINY, prior=(0.5, 0.5)).fit(X)
    with pytest.raises(ValueError, match=r"has the share 0\.0; each of the 2 clusters"):
        CueGAN(2, **TINY, prior=(0.0, 1.0)).fit(X)
    with pytest.raises(ValueError, match=r"are for images, but each row here has shape \(6,\)"):
        CueGAN(3, **TINY, augment="affine").fit(X)
    with pytest.raises(ValueError, match="net='conv' needs images"):
        CueGAN(3, **TINY, net="conv").fit(X)
    with pytest.raises(ValueError, match=r"values in 0..1, but X has -1"):
        CueGAN(3, **TINY).fit(digit_images[0][:50] / 127.5 - 1)
    CueGAN(3, **TINY, output="tanh").fit(digit_images[0][:50] / 127.5 - 1)


def test_divergence_is_told(monkeypatch, blobs):
    monkeypatch.setattr("coterie.methods.cuegan.method.diverged", lambda curve: len(curve) == 2)
    with pytest.warns(UserWarning, match="fewer noise variables than n_noise=2"):
        model = CueGAN(3, **TINY).fit(blobs[0])
    assert any("Earth Mover" in note for note in model.notes_)


def test_published_settings():
    model = CueGAN.paper("usps700")
    assert (model.penalty, model.eta, model.n_critic, model.n_class) == (100, 10, 5, 4)
    assert model.width == 1 and model.steps == 900_000 and model.lr == 1e-4
    assert CueGAN.paper("orl_faces").steps == 30_000
    assert CueGAN.paper("orl_faces", variant="gender").prior == (0.1, 0.9)


def test_cross_entropy_bounds_the_entropy():
    """Whatever the classifier says, its cross-entropy is at least H(cluster | row)."""
    truth = torch.softmax(normal(50, 3), 1)
    entropy = -(truth * truth.log()).sum(1).mean()
    guess = normal(50, 3, seed=1)
    assert cross_entropy(guess, truth) >= entropy
    torch.testing.assert_close(cross_entropy(truth.log(), truth), entropy)


def test_stairs_of_eta_are_thirtieths_of_the_whole_training(monkeypatch, blobs):
    every = []
    monkeypatch.setattr(
        "coterie.methods.cuegan.turns.staircase", lambda eta, g, n, t: every.append(n) or eta
    )
    CueGAN(3, **{**TINY, "steps": 60}).fit(blobs[0])  # an epoch has 4 steps, which must not matter
    assert set(every) == {2}
