"""CM, CM-EM and C-Net: their formulas against slow twins, and what the paper shows of them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from torch.autograd import gradcheck

import coterie
from conftest import prepared
from coterie import CM, CMEM, CNet
from coterie.data.sets.toys import cnet_toy
from coterie.math.assign import squared_distances
from coterie.math.cm import (
    ambiguity,
    cm_terms,
    near_frame,
    per_row,
    random_start,
    stack,
    start_from,
)
from coterie.methods.cm import centers_in, gamma_of
from coterie.nets import build
from coterie.nets.rescale import move_code
from coterie.train.head import Head


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def head_for(k=4, d=3, r=2, strength=0.3, dtype=torch.float64):
    g = torch.Generator().manual_seed(0)
    params = stack([random_start(k, d, g) for _ in range(r)])
    params = {name: t.to(dtype) for name, t in params.items()}
    state = {"strength": torch.tensor(strength, dtype=dtype), "best": torch.tensor(0)}
    return Head(params, state)


def batch_of(x, **more):
    rows = torch.arange(len(x))
    return SimpleNamespace(x=x, z=x, clean=x, rows=rows, mean=lambda t: t.mean(0), **more)


# -- formulas -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_the_terms_of_all_restarts_add_up_to_fuzzy_kmeans(dtype, tol):
    x, head = normal(50, 3, dtype=dtype), head_for(dtype=dtype)
    gamma, mu = gamma_of(x, head), centers_in(head)
    fuzzy = [(gamma[:, r] * squared_distances(x, mu[r])).sum(1).mean() for r in range(2)]
    total = sum(cm_terms(x, gamma, mu).values())
    torch.testing.assert_close(total, torch.stack(fuzzy).mean(), rtol=tol, atol=tol)


@torch.no_grad()
def cm_twin(x, head, merge_weight):
    """Eq. 11 row by row, mean over rows and restarts."""
    sums = dict.fromkeys(("reconstruction", "sparsity", "merge", "prior"), 0.0)
    restarts, k = head.encoder.shape[:2]
    for r in range(restarts):
        mu = [head.decoder[r, j] + head.decoder_bias[r] for j in range(k)]
        shares = [0.0] * k
        for row in x:
            logits = [float(head.encoder[r, j] @ row + head.encoder_bias[r, j]) for j in range(k)]
            gamma = np.exp(logits) / np.exp(logits).sum()
            rebuilt = sum(gamma[j] * mu[j] for j in range(k))
            sums["reconstruction"] += float((row - rebuilt) @ (row - rebuilt)) / len(x)
            for j in range(k):
                shares[j] += gamma[j] / len(x)
                sums["sparsity"] += gamma[j] * (1 - gamma[j]) * float(mu[j] @ mu[j]) / len(x)
                for i in range(k):
                    if i != j:
                        pair = gamma[i] * gamma[j] * float(mu[i] @ mu[j])
                        sums["merge"] -= merge_weight * pair / len(x)
        strength = np.sort(np.broadcast_to(head.strength.numpy(), k))
        sums["prior"] -= float((strength * np.log(np.sort(shares) + 1e-10)).sum())
    return {name: value / restarts for name, value in sums.items()}


@pytest.mark.parametrize("strength", [0.3, [0.1, 0.9, 0.4, 0.2]])
def test_cm_loss_twin(strength):
    x, head = normal(7, 3), head_for(strength=strength)
    ours = CM(4, merge_weight=1.5).loss(batch_of(x), head)
    theirs = cm_twin(x, head, 1.5)
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert float(ours[name]) == pytest.approx(value, rel=1e-9), name


def cnet_loss(x, head, **params):
    settings = {"orthonormal_weight": 0.02, "recon_weight": 0.5, "module_rate": 1.0}
    model = prepared(CNet(4, **settings | params), (6,))
    return model.loss(batch_of(x, x_hat=x * 0.9), head)


def test_cnet_loss_twin():
    x, head = normal(7, 6), head_for(d=6, r=1)
    ours, mu = cnet_loss(x, head), centers_in(head)[0].detach()
    gamma = gamma_of(x, head)[:, 0].detach()
    code = sum(float((row - g @ mu).square().sum()) for row, g in zip(x, gamma)) / 7
    apart = sum(abs(float(mu[i] @ mu[j]) - (i == j)) for i in range(4) for j in range(4))
    theirs = {
        "reconstruction": 0.5 * float((0.1 * x).square().sum()) / 7,
        "code": code,
        "sparsity": sum(float(g @ (1 - g)) for g in gamma) / 7,
        "prior": -0.3 * float(np.log(gamma.numpy().mean(0)).sum()),
        "orthonormality": 0.02 * apart,
    }
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert float(ours[name]) == pytest.approx(value, rel=1e-6), name


def test_the_rate_of_the_module_changes_its_steps_and_not_the_loss():
    x, head = normal(7, 6), head_for(d=6, r=1)
    small = {name: getattr(head, name).detach() / 8 for name in head.kinds["param"]}
    small = Head(small, {"strength": head.strength})
    one, eight = cnet_loss(x, head), cnet_loss(x, small, module_rate=8.0)
    for name, value in one.items():
        torch.testing.assert_close(value, eight[name])
    grads = [
        torch.autograd.grad(sum(terms.values()), h.encoder)[0]
        for terms, h in ((one, head), (eight, small))
    ]
    torch.testing.assert_close(8 * grads[0], grads[1])


def test_a_stretched_frame_is_brought_back_to_an_orthonormal_one():
    frame = torch.linalg.qr(normal(6, 6)).Q[:4]
    middle, scale, to = near_frame(7 * frame + normal(6, seed=1))
    back = (7 * frame + normal(6, seed=1) - middle) * scale + to
    torch.testing.assert_close(back @ back.T, torch.eye(4).double())
    for centers in (normal(1, 3), torch.ones(3, 2).double()):  # nothing to measure a scale by
        assert all(torch.isfinite(t).all() for t in near_frame(centers))


@pytest.mark.parametrize("net, shape", [("mlp", (6,)), ("conv", (1, 8, 8))])
def test_a_moved_code_is_rebuilt_as_before(net, shape):
    network = build(
        net, shape, embedding_dim=3, hidden=(5,), channels=(2, 3, 4), activation="relu",
        initializer="glorot_bias", generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    x = normal(9, *shape, dtype=torch.float32)
    with torch.no_grad():
        z, rebuilt = network.encode(x), network.decode(network.encode(x))
        middle, to = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.0, -1.0])
        assert move_code(network, middle, torch.tensor(0.25), to)
        torch.testing.assert_close(network.encode(x), 0.25 * (z - middle) + to)
        torch.testing.assert_close(network.decode(network.encode(x)), rebuilt)
    assert not move_code(torch.nn.Identity(), middle, torch.tensor(1.0), to)


def test_orthonormal_centres_cost_nothing_in_cnet():
    centers = torch.linalg.qr(normal(6, 6)).Q[:4]
    head = Head(stack([start_from(centers)]), {"strength": torch.tensor(0.1)})
    terms = cnet_loss(normal(5, 6), head)
    assert float(terms["orthonormality"]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", [CM(4).loss, None])
def test_gradients(loss):
    x, head = normal(6, 5), head_for(d=5, r=1)
    names = head.kinds["param"]

    def total(*tensors):
        now = SimpleNamespace(strength=head.strength, **dict(zip(names, tensors)))
        return sum((loss(batch_of(x), now) if loss else cnet_loss(x, now)).values())

    assert gradcheck(total, [getattr(head, n).detach().clone().requires_grad_() for n in names])


def test_the_start_from_centres_encodes_each_of_them_as_itself():
    start = start_from(normal(4, 6))
    torch.testing.assert_close(start["decoder"] @ start["encoder"].T, torch.eye(4).double())


def test_the_start_ignores_the_dependence_of_centres_whose_mean_is_zero():
    centers = normal(5, 8).float()
    centers -= centers.mean(0)  # rounding leaves a singular value of about 1e-7
    start = start_from(centers)
    assert start["encoder"].norm() < 10 * (1 / torch.linalg.svdvals(centers)[:-1]).norm()
    assert torch.allclose(
        start["encoder"] @ centers.T, torch.eye(5) - torch.full((5, 5), 0.2), atol=1e-5
    )


def test_cm_on_a_standardised_table_keeps_its_clusters():
    for load in (load_iris, load_wine):
        X, y = load(return_X_y=True)
        labels = CM(3, random_state=0, epochs=50).fit(X).labels_
        assert len(np.unique(labels)) == 3 and adjusted_rand_score(y, labels) > 0.4


def test_cm_can_start_from_a_full_kmeans(digit_images):
    """Section 4.2: k-means or any start of it; untrained, its centres are those of k-means."""
    X = digit_images[0].reshape(len(digit_images[0]), -1)
    costs = {}
    for init in ("kmeans++", "kmeans"):
        model = CM(10, init=init, restarts=1, epochs=0, average_epochs=0, random_state=0).fit(X)
        z = torch.from_numpy(model.transform(X))
        near = squared_distances(z, model.head_.centers)
        costs[init] = near.min(1).values.sum()
        moved = torch.stack([z[near.argmin(1) == j].mean(0) for j in range(10)])
        settled = (moved - model.head_.centers).norm() / model.head_.centers.norm()
        assert (settled < 0.01) == (init == "kmeans")
    assert costs["kmeans"] < costs["kmeans++"]


def test_the_batch_size_does_not_change_the_weight_of_the_prior():
    assert per_row(13, 80) == pytest.approx(CM.paper("pendigits").prior_strength)
    assert (
        CM.paper("pendigits", batch_size=500).prior_strength == CM.paper("pendigits").prior_strength
    )
    assert CNet.paper("usps").orthonormal_weight == pytest.approx(1 / 45)


def test_the_default_prior_follows_the_unit_of_the_data_as_the_other_terms_do(blobs):
    heads, terms = [], []
    for unit in (1.0, 16.0):
        X = torch.from_numpy(blobs[0] * np.float32(unit))
        model = CM(3, scale="none", random_state=0, epochs=0, average_epochs=0).fit(X.numpy())
        heads.append(model.head_)
        terms.append(model.loss(batch_of(X), model.head_))
    spread = sum(float(np.var(column)) for column in blobs[0].T.astype(np.float64))
    assert float(heads[0].strength) == pytest.approx(0.02 * spread, rel=1e-4)
    for name, value in terms[0].items():
        assert terms[1][name].item() == pytest.approx(16**2 * value.item(), rel=1e-3), name


def test_a_prior_of_the_wrong_length_is_refused():
    X = np.random.default_rng(0).random((30, 2))
    with pytest.raises(ValueError, match="2 values but n_clusters=3"):
        CM(3, prior_strength=(0.1, 0.2), epochs=1).fit(X)


# -- the toy data of Fig. 1 and Fig. 8 --------------------------------------------------------

TOY, TOY_LABELS = cnet_toy()
TRUE = np.stack([TOY[c == TOY_LABELS].mean(0) for c in range(5)])
ON_TOY = {"init": "random", "prior_strength": per_row(5, 20), "batch_size": 20, "lr": 1e-2}
ON_TOY |= {"scale": "none", "random_state": 0}


def farthest(centers):  # (5, 2) -> the largest distance of a centre from its true mean
    apart = squared_distances(torch.from_numpy(TRUE), centers).sqrt().numpy()
    return apart[linear_sum_assignment(apart)].max()


def test_averaged_centres_are_nearer_to_the_truth_than_the_last_ones():
    averaged, last = (
        [farthest(c.detach()) for c in centers_in(model.head_)]
        for model in (
            CM(5, restarts=10, epochs=40, **ON_TOY).fit(TOY),
            CM(5, restarts=10, epochs=41, average_epochs=0, **ON_TOY).fit(TOY),
        )
    )
    found = [a < 0.5 for a in averaged]  # all five clusters were found
    assert sum(found) >= 5
    good = [a < 0.05 and a < b for a, b, f in zip(averaged, last, found) if f]
    assert sum(good) >= 0.9 * len(good)


def near_each(merge_weight):  # -> (restarts, 5): centres close to each true mean
    model = CM(10, restarts=3, epochs=12, merge_weight=merge_weight, **ON_TOY).fit(TOY)
    true = torch.from_numpy(TRUE)
    return np.stack(
        [(squared_distances(true, c) < 0.25**2).sum(1) for c in centers_in(model.head_)]
    )


def test_ten_centres_on_five_clusters_merge_in_pairs_because_of_e3():
    assert (near_each(1.0) == 2).all(1).sum() >= 2
    without = near_each(0.0)
    assert not (without == 2).all(1).any()
    assert (without.max(1) >= 4).sum() >= 2  # the spare ones gather around 0


# -- restarts ---------------------------------------------------------------------------------


def test_batched_restarts_are_the_single_runs(blobs, monkeypatch):
    # clusters without rows are numbered last, and a restart that was not chosen is not asked
    monkeypatch.setattr(CM, "_renumber", lambda self, order: None)
    X = blobs[0]
    settings = {"epochs": 4, "batch_size": 32, "random_state": 3, "init": "random"}
    many = CM(3, restarts=3, **settings).fit(X)
    labels = many.restart_labels(X)
    for r in range(3):

        class One(CM):
            def _start(self, context, r=r):
                prepared(CM(3, restarts=3, **settings), X.shape[1:])._start(context)
                head = context.head
                params = {n: getattr(head, n)[r : r + 1] for n in head.kinds["param"]}
                state = {"strength": self.settings_.prior_strength, "best": head.best}
                state["strength"] = torch.tensor(state["strength"], dtype=torch.float32)
                context.head = Head(params, state)

        one = One(3, restarts=1, **settings).fit(X)
        torch.testing.assert_close(
            one.head_.decoder[0], many.head_.decoder[r], rtol=1e-3, atol=1e-5
        )
        assert (one.labels_ == labels[r]).mean() > 0.99
        assert one.restart_scores_[0] == pytest.approx(many.restart_scores_[r], rel=1e-3)


def test_the_lowest_loss_counts_the_prior(blobs):
    X, options = blobs[0], {"restarts": 6, "epochs": 3, "batch_size": 32, "init": "random"}
    model = CM(3, selection="loss", prior_strength=5.0, random_state=1, **options).fit(X)
    z = torch.from_numpy(model.transform(X)).double()
    losses, without = [], []
    for r in range(6):
        gamma, mu = gamma_of(z.float(), model.head_)[:, r].detach(), centers_in(model.head_)[r]
        pulls = sum(
            float(g[c]) * float(((row - mu[c].detach()) ** 2).sum())
            for row, g in zip(z, gamma)
            for c in range(3)
        )
        prior = -5.0 * sum(math.log(float(share) + 1e-10) for share in gamma.mean(0))
        without.append(pulls / len(z))
        losses.append(pulls / len(z) + prior)
    assert int(model.head_.best) == int(np.argmin(losses))
    assert np.argmin(losses) != np.argmin(without)  # else the test says nothing


def test_the_least_ambiguous_restart_is_kept_and_all_scores_are_saved(blobs, tmp_path):
    X = blobs[0]
    model = CM(3, restarts=4, epochs=3, batch_size=32, random_state=0, init="random").fit(X)
    z = torch.from_numpy(model.transform(X))
    gamma, mu = gamma_of(z, model.head_).detach(), centers_in(model.head_).detach()
    by_terms = []
    for r in range(4):
        terms = cm_terms(z, gamma[:, r], mu[r])
        by_terms.append(float(terms["sparsity"] + terms["merge"]))
    np.testing.assert_allclose(model.restart_scores_, by_terms, rtol=1e-3)
    np.testing.assert_allclose(ambiguity(gamma, mu) / len(X), by_terms, rtol=1e-3)
    assert int(model.head_.best) == int(np.argmin(by_terms))
    assert np.array_equal(model.labels_, model.restart_labels(X)[int(np.argmin(by_terms))])
    model.save(tmp_path / "model")
    again = coterie.load(tmp_path / "model")
    assert np.array_equal(again.restart_scores_, model.restart_scores_)
    assert np.array_equal(again.restart_labels(X), model.restart_labels(X))


@pytest.mark.parametrize("seed, best", [(2, 0), (3, 1)])
def test_cnet_repeats_itself_and_keeps_the_least_ambiguous_run(seed, best, blobs):
    X = blobs[0]
    quick = CNet.tiny | {"restarts": 2, "time_budget": "1h"}  # half an hour each
    model = CNet(3, random_state=seed, **quick).fit(X)
    assert len(model.restart_scores_) == 2 and model.checkpoint_dir is None
    assert np.argmin(model.restart_scores_) == best
    one = CNet(3, random_state=seed, **CNet.tiny).fit(X)
    assert one.restart_scores_[0] == pytest.approx(model.restart_scores_[0])
    assert np.array_equal(one.transform(X), model.transform(X)) == (best == 0)


# -- generation, EM ---------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [CM, CNet])
def test_generation_has_the_shape_and_units_of_the_data(cls, digit_images):
    X = digit_images[0][:100] * 10
    model = cls(3, random_state=0, **cls.tiny).fit(X)
    centers = model.centers_in_input_space()
    assert centers.shape == (3, 8, 8)
    assert model.sample(1, 5).shape == (5, 8, 8)
    assert np.array_equal(model.sample(1, 5), model.sample(1, 5))
    path = model.interpolate(0, 2, 4)
    np.testing.assert_allclose(path[0], centers[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(path[-1], centers[2], rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="cluster=3 but there are 3"):
        model.sample(3)


def test_generated_rows_have_the_mean_and_the_deviation_of_their_cluster(blobs):
    X = blobs[0] * [1, 2, 3, 4, 5, 6] + 7
    model = CM(3, random_state=0, **CM.tiny).fit(X)
    for cluster, center in enumerate(model.centers_in_input_space()):
        drawn = model.sample(cluster, 20_000)
        deviation = np.sqrt(np.mean((X[model.labels_ == cluster] - center) ** 2, 0))
        np.testing.assert_allclose(drawn.std(0), deviation, rtol=0.03)
        np.testing.assert_allclose((drawn.mean(0) - center) / deviation, 0, atol=0.03)


def test_cm_em_climbs_and_finds_the_clusters_of_the_toy(tmp_path):
    model = CMEM(5, random_state=0, variance=0.05).fit(TOY)
    model.save(tmp_path / "model")
    assert coterie.load(tmp_path / "model").n_iter_ == model.n_iter_ > 1
    assert farthest(torch.from_numpy(model.centers_in_input_space())) < 0.05
    far = CMEM(5, random_state=0, max_iter=3, scale="none").fit(TOY * 1000)  # exponents of -1e6
    assert np.isfinite(far.predict_proba(TOY * 1000)).all()


@pytest.mark.data
def test_cm_em_collapses_on_pendigits_as_published(real_sets):
    X = coterie.load_data("pendigits", data_dir=real_sets("pendigits")).X[:3000]
    model = CMEM.paper("pendigits", variant="r", random_state=0, max_iter=60).fit(X)
    assert model.predict_proba(X).max() < 0.15  # every row belongs a little to everyone
    centers = model.centers_in_input_space()
    assert np.abs(centers - centers.mean(0)).max() < 0.1
