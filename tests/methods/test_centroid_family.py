"""DEC, IDEC, DCEC, DCN and DKM: each loss as the method computes it, against loops and limits."""

import tomllib
from importlib import resources

import numpy as np
import pytest
import torch
from torch import nn

from conftest import prepared, quick
from coterie import registry
from coterie.estimator.params import check_params
from coterie.math.assign import target_distribution
from coterie.methods.dkm import temperature_levels
from coterie.metrics import scores
from coterie.nets import Conv
from coterie.runtime.processes import World
from coterie.runtime.progress import Progress
from coterie.train.batch import Batch, TrainingError
from coterie.train.engine import Engine
from coterie.train.plan import Phase
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling
from coterie.train.view import View
from reference import assign as twin
from reference import centers as center_twin

N, D, K = 30, 5, 3
INDEX = torch.tensor([4, 0, 17, 29, 8, 11])


class Bench:
    """A method in the middle of training, in float64: engine, head, and a batch of six rows."""

    def __init__(self, key, augment=None, **changes):
        X = np.random.default_rng(5).normal(size=(N, D))
        self.method = quick(key, K, **changes)
        rows = Rows(X, fit_scaling(X, "none"))
        rows._tensor = rows._tensor.double()
        prepared(self.method, rows.shape, N)
        generator = torch.Generator().manual_seed(0)
        network = self.method.build_network(self.method.settings_, generator).double()
        self.engine = Engine(
            rows, network, self.method.assign, seed=0, world=World(), progress=Progress(0, None)
        )
        self.engine.phase = Phase("train", 1, augment=augment)
        latents = self.engine.encode_all()
        self.head = self.method.init_head(latents, np.random.default_rng(0)).double()
        if "labels" in self.head:
            self.head.labels = self.head.labels.long()
        if type(self.method).key != "dkm":
            with torch.no_grad():
                self.method.update(View(self.engine), self.head)

    @property
    def batch(self):
        return Batch(self.engine, INDEX, self.engine.phase.augment)

    def total(self):
        return sum(self.method.loss(self.batch, self.head).values())

    def encode(self, x):
        return self.engine.network.encode(x).detach()

    def close(self, ours, theirs):
        assert ours.item() == pytest.approx(theirs, rel=1e-9)

    def reconstruction(self):
        batch = self.batch
        pairs = zip(batch.clean.tolist(), batch.x_hat.tolist(), strict=True)
        return sum(twin.squared_distance(a, b) for a, b in pairs) / len(INDEX)


def noise(x, generator):
    return x + torch.randn(x.shape, generator=generator, dtype=x.dtype)


# -- the losses, one number at a time -----------------------------------------------------------
@pytest.mark.parametrize(("key", "weight"), [("dec", 1.0), ("idec", 7.0)])
def test_dec_and_idec_loss(key, weight):
    bench = Bench(key, **({"weight": weight} if key == "idec" else {}))
    centers = bench.head.centers.tolist()
    everything = twin.student_t(bench.engine.encode_all().tolist(), centers, 1.0)
    target = twin.target_distribution(everything)  # over all rows, not over the batch
    q = [everything[i] for i in INDEX.tolist()]
    p = [target[i] for i in INDEX.tolist()]
    terms = bench.method.loss(bench.batch, bench.head)
    bench.close(terms["kl"], weight * twin.kl(p, q))
    assert set(terms) == ({"kl", "reconstruction"} if key == "idec" else {"kl"})
    if key == "idec":
        bench.close(terms["reconstruction"], bench.reconstruction())


@pytest.mark.parametrize("augment", [None, noise])
def test_dcn_loss_pulls_a_row_and_its_moved_copy_to_the_centre_of_the_row(augment):
    bench = Bench("dcn", augment=augment, weight=0.3)
    batch, centers = bench.batch, bench.head.centers.tolist()
    labels = center_twin.nearest(bench.encode(batch.clean).tolist(), centers)
    distance = 0.0
    for rows in (batch.x, batch.clean):  # the same thing twice where nothing is moved
        for z, c in zip(bench.encode(rows).tolist(), labels, strict=True):
            distance += twin.squared_distance(z, centers[c]) / 2
    terms = bench.method.loss(batch, bench.head)
    bench.close(terms["distance"], 0.3 * distance / len(INDEX))
    bench.close(terms["reconstruction"], bench.reconstruction())


@pytest.mark.parametrize("key", ["dcn", "dkm"])
def test_a_default_weight_is_a_256th_for_each_feature_and_at_most_one(key):
    def weight(shape, **changes):
        return prepared(quick(key, K, **changes), shape).objective_.weight

    assert [weight(s) for s in ((64,), (256,), (1024,), (1, 8, 8))] == [0.25, 1, 1, 0.25]
    assert weight((64,), weight=0.3) == 0.3


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("membership", ["softmax", "fuzzy"])
def test_dkm_loss(distance, membership):
    alpha = 2.5
    bench = Bench(
        "dkm", distance=distance, membership=membership, inverse_temperature=alpha, weight=0.4
    )
    z, centers = bench.encode(bench.batch.x).tolist(), bench.head.centers.tolist()
    if distance == "euclidean":
        f = twin.squared_distances(z, centers)
        plain = [[value**0.5 for value in row] for row in f]
    else:
        f = plain = twin.cosine_distances(z, centers)
    if membership == "softmax":
        g = twin.softmin(f, alpha)
    else:
        g = twin.fuzzy_membership(plain, 1 + 1 / alpha)
    cost = sum(a * b for g_row, f_row in zip(g, f) for a, b in zip(g_row, f_row)) / len(INDEX)
    terms = bench.method.loss(bench.batch, bench.head)
    bench.close(terms["clustering"], 0.4 * cost)
    bench.close(terms["reconstruction"], bench.reconstruction())


def test_dkm_pulls_a_moved_row_to_where_the_unmoved_one_belongs():
    bench = Bench("dkm", augment=noise, inverse_temperature=2.5, weight=0.4)
    batch, centers = bench.batch, bench.head.centers.tolist()
    still = twin.squared_distances(bench.encode(batch.clean).tolist(), centers)
    moved = twin.squared_distances(bench.encode(batch.x).tolist(), centers)
    g = twin.softmin(still, 2.5)
    cost = 0.0
    for i in range(len(INDEX)):
        for k in range(K):
            cost += g[i][k] * (still[i][k] + moved[i][k]) / 2
    terms = bench.method.loss(batch, bench.head)
    bench.close(terms["clustering"], 0.4 * cost / len(INDEX))
    bench.close(terms["reconstruction"], bench.reconstruction())


@pytest.mark.parametrize("annealed", [False, True])
def test_dkm_pulls_centres_to_a_moved_row_as_the_unmoved_one_s_membership_stands(annealed):
    """With the membership's own slope, alpha times a stranger's distance, MNIST fell apart.

    Annealed, the slope is mild and stays.
    """
    start = {"init": "random", "inverse_temperature": None} if annealed else {}
    bench = Bench("dkm", augment=noise, **{"inverse_temperature": 2.5, "weight": 0.4} | start)
    bench.head.alpha.fill_(2.5)
    batch, head = bench.batch, bench.head
    own = bench.method.objective_.loss(batch.z_clean, head, INDEX)["clustering"] / 2
    (of_own,) = torch.autograd.grad(own, head.centers)
    (ours,) = torch.autograd.grad(bench.method.loss(batch, head)["clustering"], head.centers)
    centers, moved = head.centers.tolist(), bench.encode(batch.x).tolist()
    still = bench.encode(batch.clean).tolist()
    g = twin.softmin(twin.squared_distances(still, centers), 2.5)
    pull = [
        [
            sum(0.4 * g[i][k] * (c[d] - moved[i][d]) for i in range(len(INDEX)))
            for d in range(len(c))
        ]
        for k, c in enumerate(centers)
    ]
    expected = torch.tensor(pull, dtype=torch.float64) / len(INDEX)  # the 2 of the square is halved
    if annealed:
        assert not torch.allclose(ours - of_own, expected, rtol=1e-2)
    else:
        torch.testing.assert_close(ours - of_own, expected)


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("dec", {}),
        ("idec", {}),
        ("dcn", {}),
        ("dkm", {"inverse_temperature": 2.0}),
        ("dkm", {"inverse_temperature": 2.0, "distance": "cosine", "membership": "fuzzy"}),
    ],
)
def test_gradients_in_network_and_centres(key, changes):
    """Slope along a random direction in all parameters, by differences and by autograd."""
    bench = Bench(key, **changes)
    params = [*bench.engine.network.parameters(), *bench.head.parameters()]
    grads = torch.autograd.grad(bench.total(), params, allow_unused=True)
    draw = torch.Generator().manual_seed(1)
    directions = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in params]
    slope = sum((g * v).sum() for g, v in zip(grads, directions) if g is not None)

    def moved(size):
        with torch.no_grad():
            for p, v in zip(params, directions):
                p += size * v
            value = bench.total()
            for p, v in zip(params, directions):
                p -= size * v
        return value

    step = 1e-6
    differences = (moved(step) - moved(-step)) / (2 * step)
    assert slope.item() == pytest.approx(differences.item(), rel=1e-5)


# -- properties -----------------------------------------------------------------------------------
def test_dkm_becomes_k_means_as_alpha_grows():
    bench = Bench("dkm", weight=1.0)
    distances = bench.method.objective_.distances(bench.encode(bench.batch.x), bench.head)
    hard = distances.amin(1).mean().item()
    gaps = []
    for alpha in (1.0, 10.0, 100.0, 1e6):
        bench.head.alpha.fill_(alpha)
        gaps.append(bench.method.loss(bench.batch, bench.head)["clustering"].item() - hard)
    assert gaps == sorted(gaps, reverse=True) and gaps[0] > 1e-4
    assert gaps[-1] == pytest.approx(0, abs=1e-9)


def test_dkm_stays_finite_at_alpha_1000():
    bench = Bench("dkm")
    method, head = bench.method, bench.head.float()
    far = 100 * torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    q = method.assign(far, head)
    assert torch.isfinite(q).all()
    torch.testing.assert_close(q.sum(1), torch.ones(50))


def test_dkm_gradient_flows_through_the_membership():
    bench = Bench("dkm", inverse_temperature=1.0, weight=1.0)
    z = bench.encode(bench.batch.x)
    f = bench.method.objective_.distances(z, bench.head)
    held = (bench.method.objective_.memberships(f, bench.head.alpha).detach() * f).sum(1).mean()
    ours = bench.method.loss(bench.batch, bench.head)["clustering"]
    (a,) = torch.autograd.grad(ours, bench.head.centers)
    (b,) = torch.autograd.grad(held, bench.head.centers)
    assert not torch.allclose(a, b, rtol=1e-2)


def test_dkm_levels_are_the_paper_s():
    levels = temperature_levels(40)
    shown = [round(levels[i], 3) for i in (0, 1, 2, 3, 4)]
    assert len(levels) == 40 and shown == [0.1, 0.423, 0.752, 1.078, 1.409]
    assert [round(levels[i], 2) for i in (9, 19, 39)] == [3.24, 8.37, 28.13]


def test_annealed_dkm_walks_through_all_levels(blobs):
    seen = []
    model = quick("dkm", init="random", inverse_temperature=None, levels=6, epochs_per_level=1)
    model.callback = seen.append
    model.fit(blobs[0])
    assert [r["epoch"] for r in seen] == list(range(6))  # no early stop
    assert float(model.head_.alpha) == pytest.approx(temperature_levels(6)[-1])


def test_dcn_moves_centres_as_rows_would_one_by_one():
    bench = Bench("dcn", start_count=3.0)
    z = bench.encode(bench.batch.clean)
    labels = center_twin.nearest(z.tolist(), bench.head.centers.tolist())
    expected, counts = center_twin.running_mean(
        bench.head.centers.tolist(), bench.head.counts.tolist(), z.tolist(), labels
    )
    batch = bench.batch
    bench.method.objective_.move_centers(batch.z_clean, bench.head, batch.rows)
    torch.testing.assert_close(bench.head.centers, torch.tensor(expected).double())
    assert bench.head.counts.tolist() == pytest.approx(counts)
    # the encoding that moved the centres is the one that the network is trained with
    distance = bench.method.loss(batch, bench.head)["distance"]
    slopes = torch.autograd.grad(distance, list(bench.engine.network.encoder.parameters()))
    assert all(slope.abs().max() > 0 for slope in slopes)


def test_dcn_probabilities_are_those_of_round_gaussians_as_wide_as_its_clusters():
    bench = Bench("dcn")
    z, centers = bench.engine.encode_all(), bench.head.centers.tolist()
    expected = twin.round_gaussians(z.tolist(), centers)
    found = bench.method.probabilities(bench.method.assign(z, bench.head))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("epochs", [0, 3])
def test_dcn_knows_the_width_of_its_finished_clusters(epochs, blobs):
    model = quick("dcn", epochs=epochs).fit(blobs[0])
    expected = twin.round_gaussians(
        model.transform(blobs[0]).tolist(), model.head_.centers.tolist()
    )
    np.testing.assert_allclose(model.predict_proba(blobs[0]), expected, atol=1e-4)


def test_target_equals_q_only_where_dec_stands_still():
    one_hot = torch.eye(3).repeat(4, 1)
    same = torch.tensor([[0.2, 0.5, 0.3]]).repeat(7, 1)
    torch.testing.assert_close(target_distribution(one_hot), one_hot)
    torch.testing.assert_close(target_distribution(same), same)
    mixed = torch.tensor([[0.6, 0.4], [0.3, 0.7]])
    assert (target_distribution(mixed) - mixed).abs().max() > 0.05


# -- a collapsed start ----------------------------------------------------------------------------
def flat_network():
    encoder, decoder = nn.Linear(6, 4), nn.Linear(4, 6)
    for layer in (encoder, decoder):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    return encoder, decoder


@pytest.mark.parametrize("key", ["dec", "idec"])
def test_a_collapsed_start_is_an_error(key, blobs):
    model = quick(key, init="random", net=flat_network())
    with pytest.raises(TrainingError, match="every row has the same soft assignment"):
        model.fit(blobs[0])


def test_dcn_and_dkm_report_a_collapse(blobs):
    for key in ("dcn", "dkm"):
        model = quick(key, init="random", net=flat_network(), epochs=1, weight=1e4)
        with pytest.warns(UserWarning, match="uses 1 of 3 clusters"):
            model.fit(blobs[0])
        assert model.notes_


# -- the whole ------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["dec", "idec", "dcn", "dkm"])
def test_blobs_are_found(key, blobs):
    model = quick(key, pretrain_epochs=30, epochs=10, n_init=10, batch_size=32)
    assert scores(blobs[1], model.fit_predict(blobs[0]))["acc"] > 0.95


@pytest.mark.parametrize("key", ["dec", "idec", "dcn", "dkm", "dekm"])
def test_a_large_epsilon_holds_the_network_where_it_is(key, blobs):
    def code(**changes):
        return quick(key, update_every=1.0, tol=0.0, **changes).fit(blobs[0]).transform(blobs[0])

    start, held, moved = code(epochs=0), code(epochs=2, eps=1e9), code(epochs=2)
    assert np.allclose(held, start, atol=1e-5)
    assert not np.allclose(moved, start, atol=1e-3)


def test_dcec_is_idec_on_the_conv_net(digit_images):
    dcec, idec = registry.get("dcec"), registry.get("idec")
    assert dcec.loss is idec.loss and dcec.update is idec.update
    model = quick("dcec", epochs=1, pretrain_epochs=1).fit(digit_images[0][:100])
    assert isinstance(model.network_, Conv)
    assert model.centers_in_input_space().shape == (3, 8, 8)


@pytest.mark.parametrize("key", ["ae_kmeans", "dec", "idec", "dcec", "dcn", "dkm"])
def test_presets_are_valid(key):
    cls = registry.get(key)
    text = resources.files("coterie.presets").joinpath(f"{key}.toml").read_text()
    for dataset in tomllib.loads(text)["datasets"]:
        for variant in (None, *cls.variants):
            check_params(cls.paper(dataset, **({"variant": variant} if variant else {})))


def test_presets_convert_the_papers_weights():
    idec, dcec, dkm = (registry.get(k) for k in ("idec", "dcec", "dkm"))
    assert idec.paper("mnist").weight == pytest.approx(0.1 * 784)
    assert dcec.paper("usps").weight == pytest.approx(0.1 * 256)
    assert registry.get("dcn").paper("pendigits").weight == pytest.approx(1 / 0.5)
    dcn = registry.get("dcn")
    assert dcn.paper("usps", variant="p").epochs == 50
    started = dcn.paper("usps", variant="r")
    assert (started.epochs, started.centers, started.init) == (200, "uniform", "random")
    annealed, started = dkm.paper("usps", variant="a"), dkm.paper("usps", variant="p")
    assert (annealed.weight, annealed.inverse_temperature, annealed.init) == (0.1, None, "random")
    assert (started.weight, started.inverse_temperature, started.epochs) == (1.0, 1000.0, 100)


@pytest.mark.parametrize("key", ["dkm", "dcn"])
def test_a_wide_code_is_narrowed_before_clustering(key):
    X = 40 * np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)
    settings = {"scale": "none", "epochs": 0, "pretrain_epochs": 3, "random_state": 0}
    wide = quick(key, 3, **settings, code_variance=0.0).fit(X)
    narrow = quick(key, 3, **settings, code_variance=5.0).fit(X)
    before, after = wide.transform(X), narrow.transform(X)
    assert before.var(0, ddof=1).sum() > 50
    assert after.var(0, ddof=1).sum() == pytest.approx(5.0, rel=1e-3)
    factor = (5.0 / before.var(0, ddof=1).sum()) ** 0.5
    np.testing.assert_allclose(after, factor * before, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(narrow.reconstruct(X), wide.reconstruct(X), rtol=1e-2, atol=1e-1)
    assert (narrow.labels_ == wide.labels_).mean() > 0.99
    unchanged = quick(key, 3, **settings, code_variance=1e9).fit(X)
    np.testing.assert_array_equal(unchanged.transform(X), before)


@pytest.mark.parametrize("key", ["dec", "idec", "dcn"])
@pytest.mark.parametrize("kind, bound", [("glorot", (6 / (4 + 3)) ** 0.5), ("uniform", 1.0)])
def test_random_centres_do_not_look_at_the_code(key, kind, bound):
    method = prepared(quick(key, 3, centers=kind), (4,))
    heads = [
        method.init_head(torch.full((50, 4), value), np.random.default_rng(0))
        for value in (0.0, 100.0)
    ]
    assert torch.equal(heads[0].centers, heads[1].centers)
    assert heads[0].centers.shape == (3, 4)
    assert 0.6 * bound < heads[0].centers.abs().max() <= bound


def test_the_temperature_may_be_bounded_on_both_sides():
    values = temperature_levels(40, first=0.2, last=5.0)
    assert values[0] == 0.2 and values[-1] == 5.0
    growth = [2 ** (1 / np.log(n) ** 2) for n in range(2, len(values) + 1)]
    np.testing.assert_allclose(values[:-1], 0.2 * np.cumprod([1.0, *growth[:-1]]), rtol=1e-12)
    assert values[-2] < 5.0 <= values[-2] * growth[-1]
    bounds = {"first_alpha": 0.2, "last_alpha": 5.0, "epochs_per_level": 2.0, "update_every": 1.0}
    (phase,) = prepared(quick("dkm", 3, inverse_temperature=None, **bounds), (4,)).training()
    assert (phase.epochs, phase.update_every) == (2.0 * len(values), 2.0)
