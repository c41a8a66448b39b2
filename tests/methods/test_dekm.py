"""DEKM: rotation and target against slow twins, the anchor, warm starts, edge cases, decoder."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from torch import nn

import coterie
from conftest import prepared
from coterie import DEKM, load
from coterie.math.centers import kmeans
from coterie.math.subspace import rotated_target, scatter_axes
from coterie.methods.dekm import STRATEGIES, DEKMObjective
from coterie.metrics import accuracy
from coterie.runtime.processes import World
from coterie.runtime.progress import Progress
from coterie.train.batch import Batch
from coterie.train.engine import Engine
from coterie.train.head import Head
from coterie.train.plan import Phase
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling
from coterie.train.view import View

QUICK = {**DEKM.tiny, "random_state": 0}


@pytest.fixture
def clustered():
    """(z, labels, centers) of k-means on stretched blobs, float64."""
    z, _ = make_blobs(90, 5, centers=4, random_state=1)
    z = torch.from_numpy(z * [1, 3, 0.5, 2, 1])
    found = kmeans(z, 4, rng=np.random.default_rng(0), n_init=3)
    return z, found.labels, found.centers


def make_engine(X, model):
    """The engine as `fit` builds it, stopped before training, with the head in place."""
    rows = Rows(X, fit_scaling(X, "none"))
    prepared(model, rows.shape, rows.n)
    network = model.build_network(model.settings_, torch.Generator().manual_seed(0))
    engine = Engine(rows, network, model.assign, seed=0, world=World(), progress=Progress(0, None))
    engine.phase = Phase("train", 1)
    engine.head = model.init_head(engine.encode_all(), np.random.default_rng(0))
    return engine


# -- the rotation and the target -------------------------------------------------------------
def test_axes_are_orthonormal_ascending_and_diagonalise_the_scatter(clustered):
    z, labels, centers = clustered
    values, vectors = scatter_axes(z, labels, centers)
    scatter = torch.zeros(5, 5, dtype=torch.float64)
    for i in range(len(z)):  # the slow twin of S_w / n
        r = z[i] - centers[labels[i]]
        scatter += torch.outer(r, r) / len(z)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(5, dtype=torch.float64))
    assert (values.diff() >= 0).all()
    torch.testing.assert_close(vectors.T @ scatter @ vectors, torch.diag(values))


@pytest.mark.parametrize("axes", [[4], [2], [0, 1, 2, 3, 4]])
def test_target_equals_its_twin(clustered, axes):
    z, labels, centers = clustered
    _, rotation = scatter_axes(z, labels, centers)
    target = rotated_target(z, labels, centers, rotation, axes)
    for i in range(len(z)):
        for a in range(5):
            source = centers[labels[i]] if a in axes else z[i]
            assert float(target[i, a]) == pytest.approx(float(source @ rotation[:, a]), abs=1e-9)


def test_gradient_is_zero_on_all_axes_but_the_last(clustered):
    """Property 6: at f = f_old only the loosest axis is pulled, every other one is anchored."""
    z, labels, centers = clustered
    _, rotation = scatter_axes(z, labels, centers)
    target = rotated_target(z, labels, centers, rotation, [4])
    rotated = (z @ rotation).requires_grad_()
    (rotated - target).square().mean(1).mean().backward()
    assert rotated.grad[:, :4].abs().max() < 1e-12
    assert rotated.grad[:, 4].abs().max() > 1e-4


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_update_and_loss_through_a_real_batch(strategy, blobs):
    X = blobs[0]
    model = DEKM(3, strategy=strategy, **QUICK)
    engine = make_engine(X, model)
    head = engine.head
    labels = model.update(View(engine), head)
    z = engine.encode_all()
    moved = (head.target - z @ head.rotation).abs().amax(0) > 1e-5
    assert int(moved.sum()) == (4 if strategy.startswith("all") else 1)
    if strategy == "last":
        assert moved[-1]
    if strategy.endswith("_raw"):
        assert torch.equal(head.rotation, torch.eye(4))
    batch = Batch(engine, torch.tensor([5, 2, 77]), None)
    value = model.loss(batch, head)["pull"]
    twin = 0.0
    for i in (5, 2, 77):
        own = z[i] @ head.rotation
        goal = own.clone()
        goal[moved] = (head.centers[labels[i]] @ head.rotation)[moved]
        twin += float(sum((own[a] - goal[a]) ** 2 for a in range(4))) / 4 / 3
    assert value.item() == pytest.approx(twin, rel=1e-4)


def test_gradient_through_the_network_in_float64(clustered):
    z, labels, centers = clustered
    _, rotation = scatter_axes(z, labels, centers)
    head = Head(state={"rotation": rotation}, rows={"target": z @ rotation})
    weight = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    class Fake:
        rows = torch.arange(7)

    def loss(w):
        Fake.z = z[:7] @ w
        return DEKMObjective(4).loss(Fake.z, head, Fake.rows)["pull"]

    assert torch.autograd.gradcheck(loss, weight.requires_grad_())


# -- k-means that starts where it was --------------------------------------------------------
def test_warm_start_is_never_worse_than_the_old_centres_or_the_challengers(clustered):
    z, k = clustered[0].float(), 4
    bad = z[:k].clone()  # four neighbouring rows: a poor place to start
    for every, runs in ((1, 0), (1, 3), (1000, 3)):
        model = DEKMObjective(k, fresh_every=every, fresh_runs=runs, n_init=5)
        head = Head(state={"centers": bad, "updates": torch.tensor(0)})
        found = model._recluster(z, head, np.random.default_rng(0))
        before = (z[:, None] - bad).square().sum(2).amin(1).sum()
        assert found.inertia <= float(before)
        if every == 1 and runs:
            wide = kmeans(z, k, rng=np.random.default_rng(5), n_init=20)
            assert found.inertia <= 1.01 * wide.inertia


def test_warm_start_keeps_the_names_of_the_clusters(clustered):
    z, labels, centers = clustered
    head = Head(state={"centers": centers, "updates": torch.tensor(0)})
    found = DEKMObjective(4, fresh_every=1)._recluster(z, head, np.random.default_rng(9))
    assert torch.equal(found.labels, labels)


# -- edge cases ------------------------------------------------------------------------------
def test_n_divisible_by_the_batch_size(blobs):
    model = DEKM(3, batch_size=40, update_every=2, tol=0.0, **QUICK).fit(blobs[0])  # 120 rows
    records = [r for r in model.history_ if r["phase"] == "train"]
    assert len(records) == 2 and all(np.isfinite(r["pull"]) for r in records)
    assert accuracy(blobs[1], model.labels_) > 0.9


def test_one_cluster_much_larger_than_the_rest():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(400, 6)), rng.normal(9, 1, (8, 6)), rng.normal(-9, 1, (8, 6))]
    )
    y = np.repeat([0, 1, 2], [400, 8, 8])
    model = DEKM(3, **QUICK).fit(X.astype(np.float32))
    assert np.isfinite(model.rotation_).all() and len(np.unique(model.labels_)) == 3
    assert accuracy(y, model.labels_) > 0.5


def test_more_clusters_than_embedding_dimensions():
    X, _ = make_blobs(240, 6, centers=8, cluster_std=0.3, random_state=2)
    model = DEKM(8, **{**QUICK, "embedding_dim": 2, "pretrain_epochs": 30}).fit(
        X.astype(np.float32)
    )
    assert model.rotation_.shape == (2, 2) and len(np.unique(model.labels_)) == 8


def test_equal_rows_do_not_break_the_rotation():
    X = np.repeat(np.eye(3, 6, dtype=np.float32), 20, axis=0)
    model = DEKM(3, **QUICK).fit(X)
    np.testing.assert_allclose(model.rotation_.T @ model.rotation_, np.eye(4), atol=1e-5)


# -- the estimator ---------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_run(strategy, blobs):
    model = DEKM(3, strategy=strategy, **QUICK).fit(blobs[0])
    assert len(np.unique(model.labels_)) == 3


def test_full_updating_runs_kmeans_once_per_epoch(blobs):
    options = {**QUICK, "epochs": 3, "batch_size": 30, "tol": 0.0, "update_every": 1}
    mini = DEKM(3, **options).fit(blobs[0])
    full = DEKM(3, updating="full", **options).fit(blobs[0])
    # one more update at the end, for the finished network
    assert int(mini.head_.updates) == 12 + 1 and int(full.head_.updates) == 3 + 1


def test_small_data_get_more_epochs(blobs):
    """500 and 1100 steps, k-means every 20: an epoch of 120 rows is one step of 256, or 6 of 20."""
    for batch_size, steps in ((256, 1), (20, 6)):
        model = DEKM(3, batch_size=batch_size)
        plan = prepared(model, (6,), 120).plan(None, "")
        pretrain, train = (p for p in plan if isinstance(p, Phase))
        assert pretrain.epochs * steps == pytest.approx(500)
        assert train.epochs * steps == pytest.approx(1100)
        assert train.update_every * steps == pytest.approx(20)
    plan = prepared(model, (6,), 20_000).plan(None, "")  # 1,000 steps of 20
    pretrain, train = (p for p in plan if isinstance(p, Phase))
    assert (pretrain.epochs, train.epochs, train.update_every) == (10, 15, 0.5)


def test_a_part_of_each_batch_stays_clean(digit_images):
    x = torch.from_numpy(digit_images[0][:21]).float().unsqueeze(1)
    model = prepared(DEKM(10, clean_share=0.25, augment="affine"), (1, 8, 8))
    seen = model.augmentation()(x, torch.Generator().manual_seed(0))
    same = (seen == x).flatten(1).all(1)
    assert seen.shape == x.shape and same.tolist() == [True] * 5 + [False] * 16
    assert prepared(DEKM(10), (1, 8, 8)).augmentation() is None


def test_state_belongs_to_the_finished_network(blobs):
    X = blobs[0]
    model = DEKM(3, **QUICK).fit(X)
    z = torch.from_numpy(model.transform(X))
    centers = torch.stack([z[model.labels_ == c].mean(0) for c in range(3)])
    torch.testing.assert_close(model.head_.centers, centers, rtol=1e-3, atol=1e-3)
    values, _ = scatter_axes(z, torch.from_numpy(model.labels_), centers)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-2, atol=1e-5)
    rotated = model.transform(X, space="rotated")
    np.testing.assert_allclose(rotated, z.numpy() @ model.rotation_, rtol=1e-4, atol=1e-4)
    assert 0 < model.kmeans_share_ < 1
    with pytest.raises(ValueError, match="rotated"):
        model.transform(X, space="turned")


def test_training_tightens_the_clusters(blobs):
    """The share of the variance that lies within clusters falls."""
    shares = []
    for epochs in (0, 20):
        options = {
            **QUICK,
            "epochs": epochs,
            "batch_size": 20,
            "update_every": 5,
            "tol": 0.0,
            "lr": 3e-3,
        }
        model = DEKM(3, **options).fit(blobs[0])
        shares.append(model.eigenvalues_.sum() / model.transform(blobs[0]).var(0).sum())
    assert shares[1] < 0.8 * shares[0]


def test_decoder_of_the_finished_embedding(blobs, tmp_path):
    X, options = blobs[0], {**QUICK, "batch_size": 20}
    model = DEKM(3, **options).fit(X)
    assert not hasattr(model, "centers_in_input_space")
    labels, z = model.labels_, model.transform(X)
    model.train_decoder(X, epochs=40)
    assert np.array_equal(model.predict(X), labels) and np.array_equal(model.transform(X), z)
    assert model.centers_in_input_space().shape == (3, 6)
    error = np.square(model.reconstruct(X) - X).sum() / np.square(X - X.mean(0)).sum()
    assert error < 0.5
    model.save(tmp_path / "m")
    again, stream = load(tmp_path / "m"), torch.get_rng_state()
    np.testing.assert_array_equal(again.centers_in_input_space(), model.centers_in_input_space())
    assert again.train_decoder(X, epochs=1).history_[-1]["phase"] == "decoder"
    assert torch.equal(torch.get_rng_state(), stream)  # the user's random numbers are the user's
    in_fit = DEKM(3, decoder_epochs=40, **options).fit(X)
    assert np.array_equal(in_fit.labels_, labels)
    np.testing.assert_allclose(in_fit.reconstruct(X), model.reconstruct(X), rtol=1e-4, atol=1e-4)


def test_training_the_decoder_leaves_layers_that_learn_by_looking_alone():
    X = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    model = DEKM(3, net=(encoder, nn.Linear(3, 6)), pretrain_epochs=2, epochs=2, random_state=0)
    z = model.fit(X).transform(X)
    model.train_decoder(X + 5, epochs=5)
    np.testing.assert_array_equal(model.transform(X), z)


@pytest.mark.parametrize("dataset", ["mnist", "usps", "coil20", "20newsgroups", "reuters_r8"])
def test_published_settings(dataset):
    model = DEKM.paper(dataset)
    text = dataset in ("20newsgroups", "reuters_r8")
    assert model.update_every == (10 if text else 40) and isinstance(model.update_every, int)
    assert model.tol == 0.001 and model.augment == "none" and model.pretrain_epochs == 200
    assert model.embedding_dim == (10 if text else model.n_clusters)
    full = DEKM.paper(dataset, variant="f")
    assert full.updating == "full"
    epochs = {"usps": 2.0, "coil20": 10.0}.get(dataset, 1.0)
    assert prepared(full, (10,)).training()[0].update_every == epochs


def test_the_reconstruction_is_a_mean_over_features(digit_images):
    X = digit_images[0][:60]
    model = DEKM(3, recon_weight=0.5, scale="none", random_state=0, **DEKM.tiny).fit(X)
    batch = batch_of(model, X)
    error = np.mean([(x - y) ** 2 for x, y in zip(X.ravel(), model.reconstruct(X).ravel())])
    terms = model.loss(batch, model.head_)
    assert terms["reconstruction"].item() == pytest.approx(0.5 * error, rel=1e-4)
    assert "reconstruction" not in prepared(DEKM(3), (64,)).loss(batch, model.head_)
    assert model.keeps_decoder


def batch_of(model, X):
    x = torch.from_numpy(np.asarray(X, np.float32))[:, None]
    z = model.network_.encode(x).detach()
    model.head_.target = torch.zeros_like(z)
    rows = torch.arange(len(x))
    return SimpleNamespace(x=x, clean=x, z=z, x_hat=model.network_.decode(z), rows=rows)


def test_codes_of_unit_length(digit_images, tmp_path):
    X = digit_images[0][:60]
    model = DEKM(3, normalize=True, random_state=0, **DEKM.tiny).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.transform(X), axis=1), 1, rtol=1e-5)
    model.save(tmp_path / "model")
    assert np.array_equal(coterie.load(tmp_path / "model").predict(X), model.labels_)
