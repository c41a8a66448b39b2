"""ACe/DeC: its loss against loops, the closed forms, the two spaces, and what it finds."""

import dataclasses

import numpy as np
import pytest
import torch

from conftest import prepared, quick
from coterie import registry
from coterie.data.sets.toys import synth
from coterie.estimator.params import check_params
from coterie.math.axes import betas, fit_space, logits, nearest, whitening
from coterie.math.subspace import beta_optimum, subkmeans
from coterie.methods.acedec.method import OBJECTIVES
from coterie.metrics import nmi
from coterie.runtime.processes import World
from coterie.runtime.progress import Progress
from coterie.train.batch import Batch
from coterie.train.engine import Engine
from coterie.train.plan import Phase
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling
from coterie.train.view import View
from reference.assign import softmin, student_t, target_distribution
from reference.spaces import rotate, subkmeans_cost

N, D, K = 40, 6, 3
INDEX = torch.tensor([4, 0, 17, 29, 8, 11, 39])


class Bench:
    """ACe/DeC in the middle of training, in float64, with a batch of seven rows."""

    def __init__(self, augment=None, start="settled", **changes):
        X = np.random.default_rng(5).normal(size=(N, D))
        self.method = quick("acedec", K, start=start, **changes)
        rows = Rows(X, fit_scaling(X, "none"))
        rows._tensor = rows._tensor.double()
        prepared(self.method, rows.shape, N)
        generator = torch.Generator().manual_seed(0)
        network = self.method.build_network(self.method.settings_, generator).double()
        self.engine = Engine(
            rows, network, self.method.assign, seed=0, world=World(), progress=Progress(0, None)
        )
        self.engine.phase = Phase("train", 1, augment=augment)
        self.z = self.engine.encode_all()
        self.head = self.method.init_head(self.z, np.random.default_rng(0)).double()
        if "labels" in self.head:
            self.head.labels = self.head.labels.long()
        with torch.no_grad():
            self.method.update(View(self.engine), self.head)
            off = torch.randn(self.head.V.shape, generator=torch.Generator().manual_seed(1))
            self.head.V += 0.05 * off  # no rotation any more: V' is not its inverse
        self.batch = Batch(self.engine, INDEX, augment)

    def terms(self):
        return self.method.loss(self.batch, self.head)

    # -- the same in loops ----------------------------------------------------------------------
    def axes(self):
        return (self.head.frame @ self.head.V).tolist()

    def coordinates(self, z):
        return [rotate(row, self.axes()) for row in z.tolist()]

    def weighted(self, a, b, beta):
        return sum(w**2 * (x - y) ** 2 for w, x, y in zip(beta, a, b, strict=True))

    def own(self, u, centers, beta):
        return min(centers, key=lambda c: self.weighted(u, c, beta))

    def rebuilt(self, u):
        back = (self.head.V.T @ self.head.unframe).tolist()
        code = torch.tensor([rotate(row, back) for row in u], dtype=torch.float64)
        return self.engine.network.decode(code).tolist()


def noise(x, generator):
    return x + torch.randn(x.shape, generator=generator, dtype=x.dtype)


def mean(values):
    return sum(values) / len(values)


# -- the loss, one number at a time -------------------------------------------------------------
@pytest.mark.parametrize("start", ["settled", "random"])
def test_loss_is_equation_5(start):
    bench = Bench(start=start)
    beta = betas(bench.head).tolist()
    rest = [1 - b for b in beta]
    u, centers = bench.coordinates(bench.batch.z), bench.coordinates(bench.head.centers)
    shared = bench.coordinates(bench.head.shared[None])[0]
    pairs = zip(bench.batch.clean.tolist(), bench.rebuilt(u), strict=True)
    terms = bench.terms()
    assert terms["cluster"].item() == pytest.approx(
        mean([bench.weighted(row, bench.own(row, centers, beta), beta) for row in u])
    )
    assert terms["shared"].item() == pytest.approx(
        mean([bench.weighted(row, shared, rest) for row in u])
    )
    assert terms["reconstruction"].item() == pytest.approx(
        mean([bench.weighted(x, y, [1] * D) for x, y in pairs])
    )


def test_augmented_loss():
    bench = Bench(augment=noise)
    head, batch = bench.head, bench.batch
    beta = betas(head).tolist()
    gate = [min(max((b - 0.55) / 0.45, 0), 1) for b in beta]
    centers, shared = bench.coordinates(head.centers), bench.coordinates(head.shared[None])[0]
    clean, changed = bench.coordinates(batch.z_clean), bench.coordinates(batch.z)
    own = [bench.own(row, centers, beta) for row in clean]  # of the original, for both
    pulls = [bench.weighted(a, c, beta) for a, c in zip(clean + changed, own + own, strict=True)]

    def mask(u, keep):
        return [[m + g * (a - m) for a, m, g in zip(row, shared, keep)] for row in u]

    terms = bench.terms()
    assert terms["cluster"].item() == pytest.approx(mean(pulls))
    for name, x, u, keep in [
        ("reconstruction", batch.clean, clean, gate),
        ("augmented", batch.x, changed, [1 - g for g in gate]),
    ]:
        pairs = zip(x.tolist(), bench.rebuilt(mask(u, keep)), strict=True)
        expected = mean([bench.weighted(a, b, [1] * D) for a, b in pairs])
        assert terms[name].item() == pytest.approx(expected / 2)  # each for half


def test_objectives_see_the_weighted_coordinates():
    def weighted(bench, z):
        beta = betas(bench.head).tolist()
        return [[b * x for b, x in zip(beta, row)] for row in bench.coordinates(z)]

    bench = Bench(objective="dkm")
    bench.head.alpha.fill_(0.7)
    centers = weighted(bench, bench.head.centers)
    f = [[bench.weighted(u, c, [1] * 4) for c in centers] for u in weighted(bench, bench.batch.z)]
    costs = [sum(a * b for a, b in zip(*pair)) for pair in zip(softmin(f, 0.7), f)]
    assert bench.terms()["cluster"].item() == pytest.approx(mean(costs))

    bench = Bench(objective="dec")
    with torch.no_grad():
        labels = bench.method.update(View(bench.engine), bench.head)
    q = student_t(weighted(bench, bench.z), weighted(bench, bench.head.centers), 1.0)
    expected = torch.tensor(target_distribution(q), dtype=torch.float64)
    torch.testing.assert_close(bench.head.target, expected)
    assert labels.tolist() == nearest(bench.z, bench.head).tolist()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients(objective):
    """Slope along a random direction in network, V, b and trained centres, by differences."""
    bench = Bench(objective=objective, shared_pull=True)
    if objective == "dkm":
        bench.head.alpha.fill_(2.0)
    params = [*bench.engine.network.parameters(), bench.head.V, bench.head.b]
    draw = torch.Generator().manual_seed(1)
    directions = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in params]

    def total():
        terms = bench.method.loss(Batch(bench.engine, INDEX, None), bench.head)
        terms.pop("space", None)  # has its gradient held back on purpose
        if objective == "dec":
            terms.pop("reconstruction")  # so has this one
        return sum(terms.values())

    grads = torch.autograd.grad(total(), params, materialize_grads=True)
    slope = sum((g * v).sum() for g, v in zip(grads, directions)).item()
    values = []
    for step in (1e-6, -2e-6):
        with torch.no_grad():
            for p, v in zip(params, directions):
                p += step * v
        values.append(total().item())
    assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4)


def test_the_second_term_moves_the_network_only_if_asked():
    for pull in (False, True):
        bench = Bench(shared_pull=pull)
        bench.terms()["shared"].backward()
        assert bench.head.V.grad.abs().sum() > 0
        moved = [p.grad is not None for p in bench.engine.network.parameters()]
        assert any(moved) == pull


def test_codes_vary_in_the_frame_as_much_as_asked():
    bench = Bench(held_variance=3.0)
    facts = {**bench.method.settings_.facts, "sampled_variance": 4.0}
    bench.method._prepare(dataclasses.replace(bench.method.settings_, facts=facts))
    with torch.no_grad():
        bench.method.update(View(bench.engine), bench.head)
    u = (bench.z - bench.z.mean(0)) @ bench.head.frame
    assert u.square().mean(0).sum().item() == pytest.approx(12.0)
    both = bench.head.frame @ bench.head.unframe
    torch.testing.assert_close(both, torch.eye(len(both), dtype=both.dtype))


def test_beta_learns_from_equation_5_whatever_the_objective():
    for objective in OBJECTIVES:
        bench = Bench(objective=objective)
        (ours,) = torch.autograd.grad(sum(bench.terms().values()), bench.head.b)
        distance = bench.method.distance(bench.batch.z, bench.batch.z, bench.head)
        alone = distance + bench.method.shared(bench.batch.z, bench.head)
        (paper,) = torch.autograd.grad(alone, bench.head.b)
        torch.testing.assert_close(ours, paper, rtol=1e-3, atol=1e-6)


# -- closed forms (property 7) --------------------------------------------------------------------
def test_rotation_and_hard_weights_give_the_cost_of_subkmeans():
    bench = Bench(start="random")
    z, head = bench.z, bench.head
    found = subkmeans(z, K, np.random.default_rng(0), n_init=2)
    with torch.no_grad():
        head.V.copy_(found.rotation)
        head.b.copy_(torch.where(torch.arange(4) < found.m, 100.0, -100.0))
        head.centers.copy_(found.centers)
        head.shared.copy_(z.mean(0))
    ours = bench.method.distance(z, z, head) + bench.method.shared(z, head)
    labels = nearest(z, head).tolist()
    expected = subkmeans_cost(
        z.tolist(), labels, found.centers.tolist(), found.rotation.tolist(), found.m
    )
    assert ours.item() == pytest.approx(expected / N, rel=1e-6)
    assert expected == pytest.approx(found.cost, rel=1e-4)


def test_the_best_beta_minimises_the_loss():
    bench = Bench()
    z, head, method = bench.z, bench.head, bench.method
    axes = head.frame @ head.V.detach()
    labels = nearest(z, head)
    total = ((z - head.shared) @ axes).square().mean(0)
    within = ((z - head.centers[labels]) @ axes).square().mean(0)

    def loss(beta):
        return float((beta**2 * within + (1 - beta) ** 2 * total).sum())

    best = beta_optimum(within, total)
    for step in (1e-3, -1e-3, 0.1, -0.1):
        for axis in range(4):
            moved = best.clone()
            moved[axis] += step
            assert loss(moved) > loss(best)
    with torch.no_grad():
        head.b.copy_(logits(best))
    terms = method.distance(z, z, head) + method.shared(z, head)
    assert torch.equal(nearest(z, head), labels)  # or it would be the loss of other clusters
    assert terms.item() == pytest.approx(loss(best), rel=1e-6)


def test_settled_start_is_a_fixed_point_and_beats_other_rotations():
    z = torch.from_numpy(synth(3, 600)[0])
    there, back = whitening(z)
    torch.testing.assert_close(there @ back, torch.eye(5), atol=1e-5, rtol=0)
    white = (z - z.mean(0)) @ there
    torch.testing.assert_close(white.T @ white / len(z), torch.eye(5), atol=1e-4, rtol=0)
    V, beta, centers = fit_space(white, 4, np.random.default_rng(0), n_init=5)
    assert (beta > 0.55).sum() == 2 and (beta[:-1] >= beta[1:]).all()
    W = V * beta
    labels = (white @ W)[:, None].sub(centers @ W).square().sum(2).argmin(1)

    def cost(V):
        A = ((white - centers[labels]) @ V).square().mean(0)
        return float((A / (1 + A)).sum())

    for seed in range(5):
        noise = torch.from_numpy(np.random.default_rng(seed).standard_normal((5, 5))).float()
        assert cost(V) < cost(torch.linalg.qr(V + 0.2 * noise).Q)


# -- training ---------------------------------------------------------------------------------
def test_a_centre_without_rows_in_a_batch_stays():
    bench = Bench()
    head = bench.head
    with torch.no_grad():
        head.centers[1] += 1e3
    before = head.centers.clone()
    bench.method.move_means(bench.batch, head)
    assert torch.equal(head.centers[1], before[1])
    assert not torch.equal(head.centers[0], before[0])
    assert head.counts.sum() == N + len(INDEX)


def linear(X, **changes):
    settings = {"hidden": (), "embedding_dim": X.shape[1], "pretrain_epochs": 60, "batch_size": 64}
    return quick("acedec", 4, **settings | {"n_init": 5} | changes)


def off_rotation(V):
    return float(np.abs(V.T @ V - np.eye(len(V))).max())


def test_reconstruction_of_a_linear_autoencoder_pulls_V_back_to_a_rotation():
    bench = Bench(hidden=(), embedding_dim=D)
    network, head = bench.engine.network, bench.head
    with torch.no_grad():
        network.decoder[0].weight.copy_(torch.linalg.inv(network.encoder[0].weight))
        network.decoder[0].bias.zero_()
        network.encoder[0].bias.zero_()
    assert off_rotation(head.V.detach().numpy()) > 0.05
    optimizer = torch.optim.Adam([head.V], lr=2e-2)
    for _ in range(200):
        batch = Batch(bench.engine, torch.arange(N), None)
        loss = bench.method.reconstruction(batch, head)["reconstruction"]
        (head.V.grad,) = torch.autograd.grad(loss, [head.V])
        optimizer.step()
    assert off_rotation(head.V.detach().numpy()) < 1e-3


def test_the_space_alone_moves_V_and_beta_and_nothing_else(blobs):
    before = quick("acedec", start="random", space_epochs=0, epochs=0).fit(blobs[0])
    after = quick("acedec", start="random", space_epochs=3, epochs=0).fit(blobs[0])
    for a, b in zip(before.network_.parameters(), after.network_.parameters()):
        assert torch.equal(a, b)
    assert not np.allclose(before.rotation_, after.rotation_)


def test_clusters_among_many_noise_axes_are_found_where_dcn_fails():
    X, y = synth(8, 1000)  # fewer axes and rows than SYNTH-25, to be quick
    model = linear(X, epochs=3, pretrain_epochs=20, n_init=10).fit(X)
    assert nmi(y, model.labels_) > 0.95
    assert model.beta_[1] > 0.85 > 0.8 > model.beta_[2]  # two axes, as the data have
    dcn = quick("dcn", 4, hidden=(), embedding_dim=10, pretrain_epochs=20, batch_size=64)
    assert nmi(y, dcn.fit(X).labels_) < 0.5


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("start", ["settled", "random"])
def test_every_objective_finds_blobs(objective, start, blobs):
    model = quick(
        "acedec", objective=objective, start=start, pretrain_epochs=20, epochs=3, batch_size=32
    )
    assert nmi(blobs[1], model.fit_predict(blobs[0])) > 0.9
    proba = model.predict_proba(blobs[0])
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-5)
    assert np.array_equal(proba.argmax(1), model.labels_)


# -- the result -----------------------------------------------------------------------------------
def test_spaces_and_pictures(digit_images, tmp_path):
    import coterie

    images = digit_images[0][:200]
    model = quick("acedec", 4, augment="affine", pretrain_epochs=3).fit(images)
    model.cluster_dims_ = 3  # whatever was found: a split with both spaces
    full = model.transform(images, space="full")
    assert model.transform(images).shape == full.shape == (200, 4)
    assert np.array_equal(full[:, :3], model.transform(images, space="cluster"))
    assert np.array_equal(full[:, 3:], model.transform(images, space="shared"))
    assert (np.diff(model.beta_) <= 0).all() and ((model.beta_ > 0) & (model.beta_ < 1)).all()
    whole, clusters, shared = (
        model.reconstruct(images[:5], space=s) for s in ("full", "cluster", "shared")
    )
    assert whole.shape == clusters.shape == shared.shape == (5, 8, 8)
    assert not np.allclose(clusters, shared)
    assert np.array_equal(whole, model.reconstruct(images[:5]))
    walk = model.traverse(1, component=0, steps=6)
    assert walk.shape == (6, 8, 8) and not np.allclose(walk[0], walk[-1])
    assert model.centers_in_input_space().shape == (4, 8, 8)
    np.testing.assert_allclose(
        model.interpolate(0, 1)[0], model.centers_in_input_space()[0], atol=1e-3
    )
    with pytest.raises(ValueError, match="1 shared axes"):
        model.traverse(0, component=1)
    with pytest.raises(ValueError, match="choose one of"):
        model.transform(images, space="noise")
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    again.cluster_dims_ = 3
    assert np.array_equal(again.traverse(1, component=0, steps=6), walk)
    assert np.array_equal(again.beta_, model.beta_)


def test_shared_walk_stays_in_its_cluster(digit_images):
    model = quick("acedec", 4, augment="none", pretrain_epochs=3).fit(digit_images[0][:200])
    head = model.head_
    model.cluster_dims_ = 2
    seen = []
    model.network_.decode = lambda z: seen.append(z) or z.new_zeros(len(z), 1, 8, 8)
    model.traverse(2, steps=3)
    inverse = torch.linalg.inv(head.V.detach().T @ head.unframe)  # V is close to a rotation only
    u = seen[0] @ inverse
    center = head.centers[2] @ head.frame @ head.V.detach()
    torch.testing.assert_close(u[:, :2], center[:2].repeat(3, 1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_hard_data(objective):
    X = np.repeat(np.arange(4.0), 3)[:, None].astype(np.float32) * np.ones((1, 3), np.float32)
    model = quick("acedec", 2, objective=objective, embedding_dim=1).fit(X)
    assert model.cluster_dims_ == 1 and np.isfinite(model.transform(X, space="full")).all()
    with pytest.raises(ValueError, match="0 shared axes"):
        model.traverse(0)


def test_presets_are_valid():
    cls = registry.get("acedec")
    for variant in (None, "plain", "aug"):
        check_params(cls.paper("usps", **({"variant": variant} if variant else {})))
    assert cls.paper("synth-25").hidden == () and cls.paper("synth-25").embedding_dim == 27
    assert cls.paper("usps", variant="aug").augment == "rigid"


def test_plain_and_augmented_fits_share_their_autoencoders(digit_images, tmp_path):
    cls, X = registry.get("acedec"), digit_images[0][:80]
    settings = {**cls.tiny, "cache_dir": tmp_path, "random_state": 0, "pretrain_augment": False}
    for augment in ("none", "rigid", "affine"):
        cls(3, augment=augment, **settings).fit(X)
    assert len(list(tmp_path.iterdir())) == 1
    cls(3, **settings | {"augment": "affine", "pretrain_augment": True}).fit(X)
    assert len(list(tmp_path.iterdir())) == 2
