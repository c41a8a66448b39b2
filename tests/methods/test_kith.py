"""Kith and its parts: loss, gradients, merging, graph, features."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

import coterie
from conftest import prepared
from coterie import Kith, Leiden
from coterie.math import components
from coterie.math import features as kinds
from coterie.math.graph import by_cells, exact, neighbours, smooth
from coterie.math.guess import guess_kind
from coterie.math.merge import (
    agreement,
    edge_information,
    greedy_merge,
    joint,
    modularity,
    normalised_cut,
    one_hot,
    spectral_merge,
)
from coterie.math.vocabulary import word_information
from coterie.methods.kith import density, judge, rivals, row_features, stability
from coterie.methods.kith.choosing import target
from coterie.methods.kith.consensus import consensus, edge_agreement
from coterie.methods.kith.heads import finalists, verdict
from coterie.methods.kith.start import fitted_head, smoothed, starting_heads
from coterie.methods.kith.views import lose_words
from coterie.methods.kith.words import NAMES
from coterie.nets.feature_net import FeatureNet, SharedNorm
from coterie.nets.kith_encoder import BODY, KithCoder
from coterie.runtime.processes import World
from coterie.train.head import Head
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling
from reference import features as twin


def rand(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def rng(seed=0):
    return np.random.default_rng(seed)


# -- graph --------------------------------------------------------------------------------------
@settings(max_examples=20, deadline=None)
@given(st.integers(4, 60), st.integers(1, 8), st.integers(0, 10**6), st.floats(-1e3, 1e3))
def test_graph_is_that_of_scikit_learn(n, d, seed, shift):
    z = torch.from_numpy(rng(seed).normal(size=(n, d)).astype(np.float32)) + shift
    k = min(3, n - 1)
    mine = exact(z, k)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(z.double().numpy())
    far, _ = search.kneighbors()
    ours = (z[:, None].double() - z[mine].double()).norm(dim=2)
    assert (mine != torch.arange(n)[:, None]).all()  # nobody is his own neighbour
    np.testing.assert_allclose(ours, far, rtol=1e-3, atol=1e-3 * (1 + 1e-3 * abs(shift)))


def test_graph_in_blocks_equals_graph_at_once(monkeypatch):
    z = rand(100, 5)
    whole = exact(z, 4)
    monkeypatch.setattr("coterie.math.graph.BLOCK", 700)
    assert torch.equal(exact(z, 4), whole)


def test_cells_find_nearly_all_neighbours_and_repeat():
    z = torch.from_numpy(make_blobs(3000, 8, centers=12, random_state=0)[0].astype(np.float32))
    true = exact(z, 5)
    found = by_cells(z, 5, rng(), cell_rows=100, probes=8)
    assert torch.equal(found, by_cells(z, 5, rng(), cell_rows=100, probes=8))
    hits = (found[:, :, None] == true[:, None]).any(2).float().mean()
    assert hits > 0.97
    assert torch.equal(neighbours(z, 5, rng(), exact_rows=3000), true)


def test_two_processes_search_for_half_of_the_rows_each(monkeypatch):
    z = rand(201, 5)
    monkeypatch.setattr(World, "concat", lambda world, part, n: part)  # nobody to talk to
    monkeypatch.setattr(World, "sum", lambda world, t: t)
    monkeypatch.setattr(World, "broadcast", lambda world, tensors: None)
    parts = [exact(z, 4, World(rank, 2)) for rank in (0, 1)]
    assert [len(part) for part in parts] == [100, 101]
    assert torch.equal(torch.cat(parts), exact(z, 4))
    parts = [by_cells(z, 4, rng(), cell_rows=20, world=World(rank, 2)) for rank in (0, 1)]
    idle = [(part == 0).all(1) for part in parts]
    assert (idle[0] ^ idle[1]).all() and 50 < int(idle[0].sum()) < 150
    assert torch.equal(sum(parts), by_cells(z, 4, rng(), cell_rows=20))


def test_processes_that_round_differently_search_for_every_row_once(monkeypatch):
    told = []

    def broadcast(world, tensors):
        told.extend(t.clone() for t in tensors if world.rank == 0)
        for mine, leaders in zip(tensors, told, strict=True):
            mine.copy_(leaders)

    monkeypatch.setattr(World, "broadcast", broadcast)
    monkeypatch.setattr(World, "sum", lambda world, t: t)
    z = 1 + rand(201, 5)
    first, other = (by_cells(z**p, 4, rng(), 20, world=World(r, 2)) for r, p in ((0, 1), (1, 1.1)))
    assert ((first == 0).all(1) ^ (other == 0).all(1)).all()


def test_cells_with_duplicate_rows_still_have_enough_candidates():
    found = by_cells(torch.zeros(50, 3), 5, rng(), cell_rows=5, probes=1)
    assert found.shape == (50, 5) and (found != torch.arange(50)[:, None]).all()


def test_too_many_neighbours_says_both_numbers():
    with pytest.raises(ValueError, match="k=9 neighbours of 5 rows"):
        neighbours(rand(5, 2), 9, rng())


def test_smooth_and_joint_against_loops():
    p, graph = rand(30, 4).softmax(1), exact(rand(30, 3, seed=1), 3)
    mean, j = torch.zeros(30, 4), torch.zeros(4, 4)
    for i, a in itertools.product(range(30), range(3)):
        mean[i] += p[graph[i, a]] / 3
        j += torch.outer(p[i], p[graph[i, a]]) / 90
    torch.testing.assert_close(smooth(p, graph), mean)
    torch.testing.assert_close(joint(p, graph).float(), (j + j.T) / 2)
    assert abs(float(joint(p, graph).sum()) - 1) < 1e-6


# -- merging ------------------------------------------------------------------------------------
def brute_force(j, k, rule):
    """Greedy merging that recomputes every score from the original matrix."""
    groups = [{a} for a in range(len(j))]
    mass = j.sum(1)

    def score(a, b):
        between = sum(j[x, y] for x in a for y in b)
        d_a, d_b = (sum(mass[x] for x in g) for g in (a, b))
        return between / (d_a * d_b if rule == "mod" else min(d_a, d_b))

    while len(groups) > k:
        a, b = max(itertools.combinations(groups, 2), key=lambda pair: score(*pair))
        groups = [g for g in groups if g not in (a, b)] + [a | b]
    return {frozenset(g) for g in groups}


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 9), st.integers(0, 10**6), st.sampled_from(["mod", "ncut"]))
def test_merge_order_against_brute_force(o, seed, rule):
    raw = rng(seed).random((o, o))
    j = (raw + raw.T) / (2 * raw.sum())
    for k in range(1, o + 1):
        names = greedy_merge(torch.from_numpy(j), k, rule).numpy()
        assert {frozenset(np.flatnonzero(names == c)) for c in range(k)} == brute_force(j, k, rule)


@pytest.mark.parametrize("merge", [greedy_merge, lambda j, k: spectral_merge(j, k, rng())])
def test_merging_finds_blocks_of_unequal_size(merge):
    truth = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 3])
    j = np.where(truth[:, None] == truth, 1.0, 0.01) * (1 + 0.1 * rng().random((12, 12)))
    j = torch.from_numpy((j + j.T) / (2 * j.sum()))
    assert adjusted_rand_score(merge(j, 4).numpy(), truth) == 1


def test_spectral_merge_uses_every_name_and_takes_empty_outputs():
    p = torch.zeros(40, 6)
    p[torch.arange(40), torch.arange(40) % 5] = 1  # output 5 has no rows
    names = spectral_merge(joint(p, exact(rand(40, 2), 3)), 4, rng())
    assert sorted(set(names.tolist())) == [0, 1, 2, 3] and len(names) == 6
    assert torch.equal(spectral_merge(torch.eye(3).double(), 3, rng()), torch.arange(3))


def test_agreement_is_the_rand_index_of_pairs():
    labellings = [rng(s).integers(3, size=50) for s in range(3)]
    table = agreement(labellings)
    assert table[0, 2] == pytest.approx(adjusted_rand_score(labellings[0], labellings[2]))
    assert (np.diag(table) == 1).all()


# -- the loss -----------------------------------------------------------------------------------
class OneBatch:
    """What Kith's loss needs of a batch, on one process."""

    def __init__(self, network, rows):
        self.network, self.rows, self.size = network, rows, len(rows)

    def draw(self, make, *keys):
        seed = sum(map(ord, "".join(map(str, keys))))
        return make(self.size, torch.Generator().manual_seed(seed))

    def mean(self, t):
        return t.mean(0)


def small_problem():
    method = Kith(3, direct_heads=2, over_heads=2, hidden=(6,), embedding_dim=4, noise=0.1)
    method = prepared(method, (5,), n=12)
    method._labelled = None  # as a fit begins
    z = torch.randn(12, 5, generator=torch.Generator().manual_seed(1)).double()
    features = kinds.Features("table", (5,))
    network = FeatureNet(features, (6, 4), torch.Generator().manual_seed(2)).double()
    # two direct heads of three outputs, two over-heads of five
    params = {"weight": rand(4, 16).double(), "bias": rand(16, seed=4).double()}
    head = Head(params, {"spread": z.std(0)}, {"z": z, "graph": exact(z, 3)})
    return method, OneBatch(network, torch.arange(8)), head


def loop_loss(method, batch, head):
    """The loss as its definition reads: one head, one row, one output at a time."""
    picked = batch.draw(lambda b, g: torch.randint(3, (b,), generator=g), "pair")
    partner = torch.stack([head.graph[i, a] for i, a in zip(batch.rows, picked)])
    views = [method._view(batch, head, batch.rows, "own"), method._view(batch, head, partner, "j")]
    h = batch.network.body(torch.cat(views))
    near, even = [], []
    for start, o in ((0, 3), (3, 3), (6, 5), (11, 5)):
        p = (h @ head.weight[:, start : start + o] + head.bias[start : start + o]).softmax(1)
        total = 0
        for i in range(8):
            total = total - torch.log(sum(p[i, a] * p[i + 8, a] for a in range(o)))
        near.append(total / 8)
        m = p.mean(0)
        even.append(sum(m[a] * torch.log(m[a]) for a in range(o)))
    return sum(near) / 4, method.balance * sum(even) / 4


def test_loss_and_its_gradient_against_a_loop():
    method, batch, head = small_problem()
    params = [*head.parameters(), *batch.network.parameters()]
    terms, twin = method.loss(batch, head), loop_loss(method, batch, head)
    torch.testing.assert_close(terms["neighbours"], twin[0])
    torch.testing.assert_close(terms["balance"], twin[1])
    mine = torch.autograd.grad(sum(terms.values()), params)
    theirs = torch.autograd.grad(sum(twin), params)
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a, b)


def test_gradient_of_the_loss_by_finite_differences():
    method, batch, head = small_problem()

    def value(weight, bias):
        changed = Head({}, {}, {"z": head.z, "graph": head.graph, "spread": head.spread})
        changed.weight, changed.bias = weight, bias
        return sum(method.loss(batch, changed).values())

    inputs = (head.weight.data.clone(), head.bias.data.clone())
    assert torch.autograd.gradcheck(value, [t.requires_grad_() for t in inputs])


def test_the_target_is_the_sharpened_mean_of_a_row_and_its_neighbours():
    q, graph = rand(12, 3).softmax(1), exact(rand(12, 2, seed=1), 3)
    made = target(q, graph, 3)
    for i in range(12):
        circle = [q[i].tolist(), *(q[j].tolist() for j in graph[i].tolist())]
        mean = [sum(row[c] for row in circle) ** 2 for c in range(3)]
        want = [m / sum(mean) for m in mean]
        assert made[i].tolist() == pytest.approx(want, rel=1e-4)


def test_learning_ends_when_the_network_gives_the_winners_labels():
    method, batch, head = small_problem()
    z, network = head.z, batch.network
    params = {"weight": head.weight.data[:, :3] * 9, "bias": head.bias.data[:3]}
    state = {"merge": torch.eye(3).double(), "labelled": torch.tensor(True)}
    made = Head(params, state, {"z": z, "target": torch.zeros(12, 3)})
    made = made.double()
    with torch.no_grad():
        labels = method.assign(network.eval().body(z), made).argmax(1)
        network.train()
        for agree, ended in ((12, True), (11, False)):
            made.target.zero_()
            for i in range(12):
                made.target[i, labels[i] if i < agree else (labels[i] + 1) % 3] = 1
            view = SimpleNamespace(network=network, step=50, n=12)
            assert method.update(view, made) is ended
            assert network.training  # asked in its settled state, and given back as it was
        view.step = 10
        made.target.zero_().scatter_(1, labels[:, None], 1)
        assert method.update(view, made) is False  # never after a few steps


def test_a_head_fitted_by_least_squares_tells_separate_labels_apart():
    X, y = make_blobs(90, 4, centers=3, cluster_std=0.3, random_state=0)
    h, q = torch.from_numpy(X).float(), one_hot(torch.from_numpy(y), 3)
    head = fitted_head(h, q)
    assert torch.equal((h @ head["weight"] + head["bias"]).argmax(1), torch.from_numpy(y))


def test_normalised_cut_against_a_loop_and_its_order():
    labels, graph = torch.from_numpy(rng().integers(3, size=40)), exact(rand(40, 2), 4)
    ends = [(int(labels[i]), int(labels[b])) for i in range(40) for b in graph[i]]
    ends += [(b, a) for a, b in ends]
    shares = [sum(a == c != b for a, b in ends) / sum(a == c for a, b in ends) for c in range(3)]
    assert normalised_cut(joint(one_hot(labels, 3), graph)) == pytest.approx(np.mean(shares))
    graph = torch.tensor([[1], [0], [3], [2]])
    cut = [
        normalised_cut(joint(one_hot(torch.tensor(c), 2), graph))
        for c in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0])
    ]
    assert cut == pytest.approx([0, 1, 0.5])  # an empty cluster is no way to a low cut


def test_choice_follows_the_cut_unless_merging_is_chance():
    assert verdict("auto", direct=0.2, merged=0.1, firm=0.9) == "merged"
    assert verdict("auto", direct=0.2, merged=0.15, firm=0.5) == "direct"
    assert verdict("auto", direct=0.2, merged=0.1, firm=0.5) == "merged"
    assert verdict("auto", direct=0.1, merged=0.2, firm=0.9) == "direct"
    assert verdict("free", direct=0.1, merged=0.2, firm=0.1) == "merged"
    assert verdict("equal", direct=0.2, merged=0.1, firm=1.0) == "direct"


def test_modularity_against_a_loop_and_giants_do_not_win():
    labels, graph = rng().integers(3, size=40), exact(rand(40, 2), 4).numpy()
    ends = [(labels[i], labels[b]) for i in range(40) for b in graph[i]]
    ends += [(b, a) for a, b in ends]
    want = 0.0
    for c in range(3):
        inside = sum(a == c == b for a, b in ends) / len(ends)
        want += inside - (sum(a == c for a, b in ends) / len(ends)) ** 2
    j = joint(one_hot(torch.from_numpy(labels), 3), torch.from_numpy(graph))
    assert modularity(j) == pytest.approx(want)

    def candidate(cut, modularity, seed):
        labels = torch.from_numpy(rng(seed).integers(4, size=50))
        return {"cut": cut, "modularity": modularity, "labels": labels}

    direct = [candidate(0.2, 0.70, 0), candidate(0.19, 0.69, 1)]
    spectral = [candidate(0.15, 0.68, 2), candidate(0.16, 0.72, 3)]  # heads disagree
    giant = [candidate(0.05, 0.5, 4)] * 2  # heads agree
    best, firm = finalists({"direct": direct, "spectral": spectral, "ncut": giant})
    assert best["direct"] is direct[1] and best["merged"] is spectral[0] and firm < 0.5
    best, firm = finalists({"direct": direct, "ncut": giant})
    assert best["merged"] is giant[0] and firm == 1  # nothing else is there


# -- rivals and judge ---------------------------------------------------------------------------
def test_kernel_scores_against_a_loop():
    known, new = rand(6, 2).double(), rand(3, 2, seed=1).double()
    for made, h in zip(density.kernel_scores(known, new), density.WIDTHS):
        logs = []
        for x in new.tolist():
            parts = [
                np.exp(-sum((a - b) ** 2 for a, b in zip(x, c)) / (2 * h * h)) / (2 * np.pi * h * h)
                for c in known.tolist()
            ]
            logs.append(np.log(np.mean(parts)))
        assert made == pytest.approx(np.mean(logs), rel=1e-6)


def test_gaussians_leave_no_gap_and_rings_do():
    X, y = make_blobs(600, 2, centers=3, random_state=1)
    X, y = torch.from_numpy((X - X.mean(0)) / X.std(0)).float(), torch.from_numpy(y)
    found = density.describe(X, 3, [y], rng())
    assert found.gap < judge.ADEQUATE
    assert adjusted_rand_score(y, found.labels(X)) > 0.9
    rings, y = make_circles(600, noise=0.05, factor=0.5, random_state=1)
    rings = torch.from_numpy(rings / rings.std(0)).float()
    assert density.describe(rings, 2, [torch.from_numpy(y)], rng()).gap > 3 * judge.ADEQUATE


def test_rounding_is_undone_by_the_smallest_step():
    x = torch.stack(
        [rand(400).round(), torch.arange(400) * 0.25, rand(400, seed=1), rand(400) * 0], 1
    )
    made = density.unrounded(x, rng()) - x
    assert 0.4 < made[:, 0].abs().max() <= 0.5 and 0.1 < made[:, 1].abs().max() <= 0.125
    assert made[:, 2].abs().max() < 0.01 and not made[:, 3].any()


def test_columns_of_two_values_do_not_make_gaussians_of_a_coin():
    g = np.random.default_rng(2)
    y = g.integers(3, size=400)
    coins = (g.random((400, 4)) < 0.5).astype(np.float32)
    X = np.c_[3 * np.eye(3)[y] + g.normal(size=(400, 3)), coins].astype(np.float32)
    X = torch.from_numpy((X - X.mean(0)) / X.std(0))
    coin = torch.from_numpy(coins[:, 0] + (coins[:, 0] * coins[:, 1])).long()
    found = density.describe(X, 3, [coin, torch.from_numpy(y)], rng())
    assert adjusted_rand_score(y, found.labels(X)) > 0.8


def test_edge_information_against_a_loop():
    labels, graph = rng().integers(3, size=40), exact(rand(40, 2), 4).numpy()
    ends = [(labels[i], labels[b]) for i in range(40) for b in graph[i]]
    ends += [(b, a) for a, b in ends]
    told, entropy = 0.0, 0.0
    for a, b in itertools.product(range(3), repeat=2):
        p = sum(end == (a, b) for end in ends) / len(ends)
        pa, pb = (sum(e[0] == c for e in ends) / len(ends) for c in (a, b))
        told += p * np.log(p / (pa * pb)) if p else 0
        entropy -= pa * np.log(pa) if b == 0 else 0
    j = joint(one_hot(torch.from_numpy(labels), 3), torch.from_numpy(graph))
    assert edge_information(j) == pytest.approx(told / entropy)
    whole = joint(one_hot(torch.zeros(40).long(), 3), torch.from_numpy(graph))
    assert edge_information(whole) == 0


def test_the_judge_takes_gaussians_where_they_suffice_and_else_what_the_graph_keeps_apart():
    X, y = make_blobs(60, 2, centers=[[0, 0], [9, 0]], random_state=0)
    graph, y = exact(torch.from_numpy(X).float(), 5), torch.from_numpy(y)
    wrong = torch.arange(60) % 2
    labels = {"direct": wrong, "merged": y, "mixture": wrong}
    said = judge.decide(labels, graph, None, 2, 2, gap=0.01, rng=rng())
    assert (said.winner, said.second) == ("mixture", "merged") and "2 Gaussians" in said.why
    said = judge.decide(labels, graph, None, 2, 2, gap=0.5, rng=rng())
    assert (said.winner, said.second) == ("merged", "direct") and "0.50 nats" in said.why


def test_words_decide_about_texts_whatever_the_graph_says():
    drawn, topic = rng(), torch.arange(120) % 2
    likely = np.where(np.arange(40) // 20 == topic.numpy()[:, None], 0.4, 0.05)
    words = sp.csr_matrix((drawn.random((120, 40)) < likely).astype(float))
    place = torch.arange(120)[:, None] // 60 * 100.0 + torch.arange(120)[:, None] / 120
    graph = exact(place, 5)  # neighbours say nothing of the topic
    labels = {"direct": torch.arange(120) // 60, "embedding": topic}
    by_graph, by_words = (
        judge.decide(labels, graph, None, 2, 0, float("nan"), rng(), told) for told in (None, words)
    )
    assert (by_graph.winner, by_words.winner) == ("direct", "embedding")
    assert "words" in by_words.why and by_words.merits["embedding"] > by_words.merits["direct"]


def test_words_of_dense_texts_are_those_before_scaling_and_other_columns_are_no_words():
    words = ((rng().random((60, 30)) < 0.3) * rng(1).random((60, 30))).astype(np.float32)
    scaled, other, sparse = (
        Rows(x, fit_scaling(x, "auto")) for x in (words, words + 1, sp.csr_matrix(words))
    )
    assert (scaled.slice(0, 60) != 0).all()  # as the network sees them
    for rows in (scaled, sparse):
        assert np.array_equal(row_features.words_in(rows).toarray() != 0, words != 0)
    assert row_features.words_in(other) is None


def test_finer_clusters_of_texts_have_to_tell_more():
    words = sp.csr_matrix((rng().random((60, 30)) < 0.3).astype(float))
    labels = np.arange(60) % 4
    entropy = np.log(4)
    told = word_information(labels, 4, words)
    assert judge.wording(labels, 4, words) == pytest.approx(told / entropy**judge.FINER)


def test_the_steadier_candidate_wins_where_rows_are_too_few_to_tell():
    X, y = make_blobs(400, 2, centers=[[0, 0], [4, 0]], random_state=0)
    graph, y = exact(torch.from_numpy(X).float(), 5), torch.from_numpy(y)
    near = torch.where(torch.arange(400) == 3, 1 - y, y)  # one row apart from the best
    far = torch.where(torch.arange(400) < 100, 1 - y, y)
    for other, winner in ((near, "spectral"), (far, "direct")):
        labels = {"direct": y, "merged": far, "spectral": other}
        said = judge.decide(labels, graph, None, 2, 0, float("nan"), rng())
        assert said.winner == winner and said.merits["direct"] > said.merits["spectral"]
        assert ("as well as direct's" in said.why) == (winner == "spectral")


def test_a_candidate_with_an_empty_cluster_does_not_win():
    X, y = make_blobs(90, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    graph, y = exact(torch.from_numpy(X).float(), 5), torch.from_numpy(y)
    labels = {"merged": y, "direct": torch.where(torch.arange(90) < 5, (y + 3) % 4, y)}
    said = judge.decide(labels, graph, None, 4, 0, float("nan"), rng())
    assert said.merits["merged"] > said.merits["direct"] and said.winner == "direct"


def test_a_giant_with_a_few_strays_does_not_win():
    X = make_blobs([480, 480, 8], 2, centers=[[0, 0], [5, 0], [0, 60]], random_state=0)[0]
    graph, x = exact(torch.from_numpy(X).float(), 5), torch.from_numpy(X)
    strays, halves = (x[:, 1] > 30).long(), (x[:, 0] > 2.5).long()
    labels = {"consensus": strays, "direct": halves}
    said = judge.decide(labels, graph, None, 2, 0, float("nan"), rng())
    assert said.merits["consensus"] > 1 and said.winner == "direct"
    assert judge.has_strays(strays, 2) and not judge.has_strays(halves, 2)
    assert judge.has_strays(halves, 3)  # one cluster of three is empty


def test_noise_of_a_merit_is_its_deviation_over_drawn_rows():
    y = torch.from_numpy(make_blobs(80, 2, centers=2, random_state=0)[1])
    other = torch.where(torch.arange(80) < 9, 1 - y, y)
    graph, drawn, lost = exact(rand(80, 2), 3), rng(5), []
    labels = {"direct": y, "spectral": other}
    for times in drawn.multinomial(80, np.full(80, 1 / 80), judge.RESAMPLES):
        rows = torch.from_numpy(np.repeat(np.arange(80), times))
        merits = [judge.merit(joint(one_hot(v, 2), graph, rows), few=False) for v in (y, other)]
        lost.append(merits[0] - merits[1])
    found = judge.noises(labels, "direct", graph, None, 2, False, rng(5))
    assert found == {"spectral": pytest.approx(judge.ERRORS * np.std(lost, ddof=1), rel=1e-4)}


# -- consensus ----------------------------------------------------------------------------------
def test_agreement_on_edges_against_a_loop():
    voices = [rand(20, 3).softmax(1), rand(20, 5, seed=1).softmax(1)]
    graph = exact(rand(20, 2, seed=2), 4)
    found = edge_agreement(voices, graph)
    for i, a in itertools.product(range(20), range(4)):
        j = graph[i, a]
        both = [sum(float(p[i, o] * p[j, o]) for o in range(p.shape[1])) for p in voices]
        assert float(found[i, a]) == pytest.approx(sum(both) / 2, rel=1e-5)


def test_heads_that_agree_need_no_consensus_and_heads_that_do_not_have_one():
    X, _ = make_blobs(200, 4, centers=3, cluster_std=0.3, random_state=0)
    assert "consensus" not in Kith(3, kind="vector", random_state=0).fit(X).candidates_
    X = rng().normal(size=(200, 4))
    assert "consensus" in Kith(3, kind="vector", random_state=0).fit(X).candidates_


def test_smoothing_against_a_loop():
    values, graph = rand(20, 3), exact(rand(20, 2, seed=2), 4)
    found, twin_of = smoothed(values, graph, 2), values.clone()
    for _ in range(2):
        twin_of = torch.stack(
            [(twin_of[i] + 2 * sum(twin_of[j] for j in graph[i]) / 4) / 3 for i in range(20)]
        )
    torch.testing.assert_close(found, twin_of)


def test_heads_begin_at_the_clusters_of_the_features_whatever_the_network():
    X, y = make_blobs(200, 4, centers=4, cluster_std=0.5, random_state=0)
    z = torch.from_numpy(X).float()
    graph, answers = exact(z, 5), []
    for seed in range(2):
        h = (z @ torch.randn(4, 32, generator=torch.Generator().manual_seed(seed))).relu()
        head = starting_heads(h, z, graph, [4, 12])
        assert head["weight"].shape == (32, 16)
        answers.append((h @ head["weight"] + head["bias"])[:, :4].argmax(1))
    assert adjusted_rand_score(y, answers[0]) > 0.95
    assert torch.equal(*answers)


def test_consensus_finds_what_heads_have_in_common_though_each_is_wrong_somewhere():
    X, y = make_blobs(300, 2, centers=[[0, 0], [5, 0], [0, 5]], cluster_std=1.2, random_state=0)
    graph, y = exact(torch.from_numpy(X).float(), 5), torch.from_numpy(y)
    voices = []
    for seed in range(9):
        wrong = torch.from_numpy(rng(seed).random(300) < 0.3)
        guess = torch.from_numpy(rng(seed + 50).integers(3, size=300))
        names = torch.from_numpy(rng(seed + 90).permutation(3))  # every head has names of its own
        voices.append(one_hot(names[torch.where(wrong, guess, y)], 3))
    found = consensus(voices, graph, 3, rng())
    single = max(adjusted_rand_score(y, p.argmax(1)) for p in voices)
    assert adjusted_rand_score(y, found) > 0.85 > 0.6 > single
    assert adjusted_rand_score(found, consensus(voices, graph, 3, rng(1))) == 1


def test_a_few_strays_do_not_make_a_good_cluster_in_many_columns():
    # nine rows apart and everything else in one, against two halves with some edges between
    j = torch.tensor([[0.97, 0.0], [0.0, 0.03]]).double()
    halves = torch.tensor([[0.48, 0.02], [0.02, 0.48]]).double()
    assert judge.merit(j, few=True) > judge.merit(halves, few=True)
    assert judge.merit(j, few=False) < judge.merit(halves, few=False)


def test_rivals_of_many_rows_work_on_a_sample(monkeypatch):
    X, y = make_blobs(400, 3, centers=3, cluster_std=0.5, random_state=0)
    X = torch.from_numpy(X).float()
    for name in ("MEANS_ROWS", "LINKED_ROWS", "LINKED_VALUES", "SPECTRAL_ROWS"):
        monkeypatch.setattr(rivals, name, 100)
    found = rivals.table_rivals(X, 3, rng()) | {"kmeans": rivals.means(X, 3, rng())}
    assert set(found) == {"kmeans", "linkage"}
    for labels in found.values():
        assert adjusted_rand_score(y, labels.numpy()) > 0.98


@pytest.mark.parametrize(("shape", "winner"), [("circles", "linkage"), ("stretched", "mixture")])
def test_the_network_learns_what_a_rival_found(shape, winner, tmp_path):
    if shape == "circles":
        X, y = make_circles(400, noise=0.05, factor=0.4, random_state=0)
    else:
        X, y = make_blobs(400, random_state=170)
        X = X @ np.array([[0.6, -0.6], [-0.4, 0.8]])
    model = Kith(len(set(y)), random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.notes_[0].startswith("chosen:") and "refits" in model.notes_[0]
    if shape == "stretched":
        assert model.chosen_ == winner and "mixture of Gaussians" in model.notes_[0]
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert np.array_equal(again.predict(X), model.labels_)
    assert (again.chosen_, again.second_) == (model.chosen_, model.second_)
    assert str(again.stability_) == str(model.stability_)
    assert again.agreements_[model.chosen_] == 1
    if shape == "stretched":
        assert model.stability_.overall > 0.9 and model.stability_.reappears.min() >= 8


# -- stability ----------------------------------------------------------------------------------
def test_overlap_against_sets():
    ours, theirs = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([2, 2, 1, 1, 1, 1])
    made = stability.overlap(ours, theirs, 3)
    assert made.tolist() == pytest.approx([2 / 3, 3 / 4, -1])


def test_stability_counts_the_refits_that_have_a_cluster():
    overlaps = torch.tensor([[1.0, 0.5, -1], [0.8, 0.8, -1]])
    found = stability.Stability.of(torch.tensor([0.9, 0.7]), overlaps)
    assert found.overall == pytest.approx(0.8) and found.reappears.tolist() == [2, 1, 0]
    assert found.clusters.tolist() == pytest.approx([0.9, 0.65, 0])
    assert "1 (1 of 2)" in str(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_can_be_made_anew_from_some_rows(name):
    X, y = make_blobs(200, 4, centers=3, cluster_std=0.3, random_state=0)
    z, y = torch.from_numpy(X).float(), torch.from_numpy(y)
    heads = [[one_hot(y, 3)] * 2, [one_hot(2 * y + torch.arange(200) % 2, 6)] * 2]
    way = stability.way_of(
        name, 3, z, z, exact(z, 5), heads, [p for family in heads for p in family], "tied"
    )
    rand_indices, overlaps = stability.repeat(y, 3, way, rng())
    assert rand_indices.min() > 0.98 and overlaps.min() > 0.98
    noise = torch.from_numpy(rng().integers(3, size=200))
    assert stability.repeat(noise, 3, way, rng())[0].max() < 0.2


# -- network ------------------------------------------------------------------------------------
def test_shared_norm_is_batch_norm_and_settles_on_exact_moments():
    norm, twin = SharedNorm(4), torch.nn.BatchNorm1d(4)
    x = 3 + 2 * rand(16, 4)
    torch.testing.assert_close(norm(x), twin(x))
    features = kinds.Features("table", (4,))
    network = FeatureNet(features, (5, 3), torch.Generator().manual_seed(0))
    network.update_norms(x)
    seen = network.layers[0](x)
    torch.testing.assert_close(network.norms[0].running_mean, seen.mean(0))
    torch.testing.assert_close(network.norms[0].running_var, seen.var(0, correction=0))


# -- features -----------------------------------------------------------------------------------
def test_kind_is_guessed_by_shape_and_values():
    counts = torch.from_numpy(rng().poisson(rng(1).gamma(0.1, 2, size=300), (50, 300))).float()
    pixels = (rand(50, 300) > 0.7) * 255.0
    assert guess_kind(rand(5, 8, 8), False, (1, 8, 8)) == "image"
    assert guess_kind(counts, False, (300,)) == "counts"
    assert guess_kind(counts, True, (300,)) == "counts"
    assert guess_kind(pixels, False, (300,)) == "table"
    assert guess_kind(rand(50, 300), True, (300,)) == "text"
    assert guess_kind(rand(50, 6), False, (6,)) == "table"


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("image", (1, 8, 8)), ("image", (3, 40, 36)), ("table", (5,)), ("table", (130,))]
    + [
        ("text", (160,)),
        ("counts", (30,)),
        ("text", (1600,)),
        ("vector", (70,)),
        ("vector", (300,)),
    ],
)
def test_features_have_the_announced_size_on_few_and_many_rows(kind, shape):
    for n in (2, 60):
        x = rand(n, *shape)
        made = kinds.Features(kind, shape).fit(x, torch.Generator().manual_seed(0))(x)
        assert made.shape == (n, kinds.size(kind, shape)) and bool(made.isfinite().all())


def test_hog_sees_direction_not_brightness():
    across, along = torch.zeros(2, 1, 32, 32)
    across[:, :, 16:] = 1
    along[:, 16:] = 1
    images = torch.stack([across, 0.5 * across + 0.3, along])
    made = kinds.hog(images)
    assert made.shape == (3, 576)
    assert (made[0] - made[1]).norm() < 0.1 * (made[0] - made[2]).norm()


@pytest.mark.parametrize("shape", [(1, 32, 32), (1, 8, 8), (3, 40, 36)])
def test_hog_against_loops(shape):
    images = rand(2, *shape).double() ** 4  # some edges far stronger than others
    expected = [twin.hog(image) for image in images.tolist()]
    made = kinds.hog(images)
    torch.testing.assert_close(made, torch.tensor(expected, dtype=torch.float64))
    assert 0.05 < (made >= 0.2 - 1e-9).double().mean() < 0.5  # where the clipping matters


def test_image_features_are_components_of_hog_and_half_as_heavy_ones_of_pixels():
    images = rand(90, 1, 8, 8).double() ** 4
    hog, pixels = kinds.hog(images).numpy(), images.flatten(1).numpy()
    features = kinds.Features("image", (1, 8, 8)).double()
    made = features.fit(images, torch.Generator().manual_seed(0))(images)
    for ours, x, weight in ((made[:, :50], hog, 1.0), (made[:, 50:], pixels, 0.5)):
        u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
        parts = torch.from_numpy(u * s)[:, :50]
        parts *= weight / parts.square().mean().sqrt()
        torch.testing.assert_close(ours @ ours.T, parts @ parts.T, atol=1e-3, rtol=1e-3)


def test_skewed_columns_are_logged_in_the_users_units():
    raw = torch.from_numpy(
        np.stack([np.exp(rng().normal(0, 2, 400)), rng(1).normal(5, 1, 400)], 1)
    ).float()
    origin, unit = raw.mean(0), raw.std(0)
    features = kinds.Features("table", (2,))
    z = features.fit((raw - origin) / unit, torch.Generator(), origin, unit)((raw - origin) / unit)
    assert features.logged.tolist() == [True, False]
    logs = raw[:, 0].log1p()
    torch.testing.assert_close(
        z[:, 0], (logs - logs.mean()) / logs.std(correction=0), atol=2e-3, rtol=2e-3
    )


def test_wide_axes_agree_with_the_full_covariance(monkeypatch):
    x = torch.randn(200, 40, generator=torch.Generator().manual_seed(0)) * torch.logspace(1, -2, 40)
    full = components.leading_axes(x, 5, torch.Generator())
    monkeypatch.setattr(components, "EXACT", 1)
    quick = components.leading_axes(x, 5, torch.Generator().manual_seed(1))
    torch.testing.assert_close(full[0], quick[0], atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(full[1], quick[1], atol=1e-3, rtol=1e-3)


def test_wide_axes_do_not_show_their_random_start(monkeypatch):
    """Nearly equal directions, as texts and counts have: every seed finds the same ones."""
    x = torch.randn(300, 120, generator=torch.Generator().manual_seed(0))
    x = x * torch.linspace(1.6, 1, 120)
    full = components.leading_axes(x, 4, torch.Generator())[0]
    monkeypatch.setattr(components, "EXACT", 1)
    monkeypatch.setattr(components, "SPARE", 5)
    for seed in (1, 2):
        found = components.leading_axes(x, 4, torch.Generator().manual_seed(seed))[0]
        torch.testing.assert_close(found, full, atol=0.02, rtol=0)
        wide = components.leading_axes(sp.csr_matrix(x.numpy()), 4, torch.Generator())[0]
        torch.testing.assert_close(wide, full, atol=0.02, rtol=0)


# -- the method ---------------------------------------------------------------------------------
FAST = {"hidden": (64,), "embedding_dim": 32, "random_state": 0}


def test_kith_finds_blobs_and_says_what_it_found(tmp_path):
    X, y = make_blobs(300, 6, centers=4, cluster_std=0.5, random_state=1)
    model = Kith(4, epochs=60, refine_epochs=2, **FAST).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.kind_ == "table" and set(model.candidates_) == set(NAMES) - {"consensus"}
    assert model.agreement_ > 0.9 and len(model.notes_) == 1  # why it is this one
    new = make_blobs(80, 6, centers=4, cluster_std=0.5, random_state=1)[0] + 0.01
    model.save(tmp_path / "m")
    again = coterie.load(tmp_path / "m")
    assert np.array_equal(again.predict(new), model.predict(new))
    assert again.agreement_ == model.agreement_ and again.chosen_ == model.chosen_
    assert np.array_equal(again.candidates_["merged"], model.candidates_["merged"])


def test_free_sizes_beat_equal_ones_on_unequal_blobs():
    X, y = make_blobs([400, 60, 40], 5, cluster_std=0.5, random_state=2)
    found = {}
    for sizes in ("equal", "free"):
        model = Kith(3, sizes=sizes, epochs=40, refine_epochs=0, **FAST).fit(X)
        found[sizes] = adjusted_rand_score(y, model.labels_)
        assert model.chosen_ == {"equal": "direct", "free": "merged"}[sizes]
    assert found["free"] > 0.95 > found["equal"]
    assert any("candidates_" in note for note in model.notes_)


def test_text_and_counts_lose_words_in_their_views():
    topics = rng().dirichlet(np.full(80, 0.05), size=3)
    y = rng(1).integers(3, size=150)
    words = np.stack([rng(i).multinomial(60, topics[c]) for i, c in enumerate(y)])
    text = sp.csr_matrix(words / np.linalg.norm(words, axis=1, keepdims=True))
    for X, kind in ((text, "text"), (sp.csr_matrix(words.astype(np.float32)), "counts")):
        model = Kith(3, epochs=30, refine_epochs=1, **FAST).fit(X)
        assert model.kind_ == kind and adjusted_rand_score(y, model.labels_) > 0.8


def test_kith_and_leiden_on_real_digits():
    data = load_digits()
    images, y = data.images[:500].astype(np.float32), data.target[:500]
    kith = Kith(10, epochs=50, refine_epochs=2, direct_heads=2, **FAST).fit(images)
    assert adjusted_rand_score(y, kith.labels_) > 0.7
    leiden = Leiden(10, random_state=0).fit(images)
    assert adjusted_rand_score(y, leiden.labels_) > 0.8
    assert len(np.unique(leiden.labels_)) == 10


def test_the_graph_is_kept_with_the_run(blobs, tmp_path):
    import coterie
    from coterie.data import Dataset
    from coterie.storage import runs

    X, _ = blobs
    model = Kith(4, random_state=0, **Kith.tiny).fit(X)
    assert model.neighbours_.shape == (len(X), 5) and model.neighbours_.dtype == np.int32
    data = Dataset(X, range(len(X)), "vector", "blobs")
    with runs.writing(tmp_path / "run", {}) as path:
        runs.finish(path, model, data, {})
    assert np.array_equal(np.load(path / "neighbours.npy"), model.neighbours_)
    loaded = coterie.load(path)
    assert np.array_equal(loaded.neighbours_, model.neighbours_)  # the run has its rows
    assert np.array_equal(loaded.predict(X), model.labels_)


def test_leiden_without_its_libraries_names_the_extra(monkeypatch, blobs):
    monkeypatch.setitem(__import__("sys").modules, "leidenalg", None)
    with pytest.raises(ImportError, match=r"coterie\[leiden\]"):
        Leiden(3).fit(blobs[0])


def test_sparse_text_has_the_features_of_dense_text_and_loses_the_same_words():
    words = sp.random(60, 40, density=0.2, random_state=0, format="csr", dtype=np.float32)
    features = kinds.Features("text", (40,)).fit(words, torch.Generator().manual_seed(0))
    dense = torch.from_numpy(words.toarray())
    twin = kinds.Features("text", (40,)).fit(dense, torch.Generator().manual_seed(0))
    torch.testing.assert_close(features(words), features(dense))
    torch.testing.assert_close(features(words), twin(dense), atol=1e-4, rtol=1e-4)
    keep = rng().random((60, int(np.diff(words.indptr).max()))) > 0.5
    lost = lose_words(words.copy(), keep)
    for r in range(60):
        kept = words[r].data * keep[r, : len(words[r].data)]
        assert np.array_equal(lost.data[lost.indptr[r] : lost.indptr[r + 1]], kept)


def test_moved_copies_are_other_images_of_the_same_things_and_do_not_depend_on_parts(monkeypatch):
    images = load_digits().images.astype(np.float32)
    model = Kith(10, epochs=0, refine_epochs=0, **FAST).fit(images)
    still, moved = model.head_.z, model.head_.moved
    own = (moved - still).norm(dim=1)
    other = (moved - still.roll(1, 0)).norm(dim=1)
    assert 0.1 * other.mean() < own.mean() < 0.8 * other.mean()
    monkeypatch.setattr(row_features, "ENCODE_ROWS", 100)
    again = Kith(10, epochs=0, refine_epochs=0, **FAST).fit(images)
    torch.testing.assert_close(again.head_.moved, moved)
    for none in (Kith(10, moved=False, epochs=0, **FAST), Kith(10, kind="table", epochs=0, **FAST)):
        flat = images if none.kind == "auto" else images.reshape(len(images), -1)
        assert "moved" not in none.fit(flat).head_


def test_features_of_a_fit_are_computed_once(monkeypatch):
    images = load_digits().images[:120].astype(np.float32)
    seen = []
    plain = kinds.hog
    monkeypatch.setattr(kinds, "hog", lambda x: seen.append(len(x)) or plain(x))
    model = Kith(10, epochs=2, refine_epochs=1, **FAST).fit(images)
    assert sum(seen) == 3 * 120  # to learn the axes, then for all rows, then for the moved ones
    assert np.array_equal(model.predict(images), model.labels_)
    assert set(model.seconds_) >= {"features", "graph", "train"}


@pytest.mark.parametrize("key", ["dec", "idec", "dekm", "dkm", "cnet", "acedec"])
def test_kith_can_start_the_others(key, tmp_path, monkeypatch):
    monkeypatch.setattr("coterie.methods.kith.fields.STEPS", 80)
    monkeypatch.setattr("coterie.methods.kith.method.REFINE_STEPS", 10)
    X, y = make_blobs(150, 6, centers=3, cluster_std=0.4, random_state=1)
    cls = coterie.registry.get(key)
    settings = {**cls.tiny, "embedding_dim": 4, "pretrain": "kith", "random_state": 0}
    model = cls(3, **settings).fit(X)
    assert model.seconds_["kith"] > 0 and np.array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "m")
    assert np.array_equal(coterie.load(tmp_path / "m").predict(X), model.labels_)
    if key in ("dec", "idec"):
        assert adjusted_rand_score(y, model.labels_) > 0.9


def test_the_code_that_kith_hands_over_keeps_the_means_of_its_clusters_apart(monkeypatch):
    monkeypatch.setattr("coterie.methods.kith.fields.STEPS", 80)
    X, _ = make_blobs(150, 6, centers=3, cluster_std=0.4, random_state=1)
    kith = Kith(3, hidden=BODY[:-1], embedding_dim=BODY[-1], random_state=0).fit(X)
    coder = KithCoder((6,), 4, torch.Generator().manual_seed(0))
    labels = torch.from_numpy(kith.labels_).long()
    coder.take_over(kith.network_, kith.head_.z, labels, torch.Generator().manual_seed(0))
    with torch.no_grad():
        h = kith.network_.body(kith.head_.z)
        code = coder.code(h)
    assert not code[:, 2:].any()  # three means differ along two axes
    torch.testing.assert_close(code.mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    means = [torch.stack([t[labels == j].mean(0) for j in range(3)]) for t in (h, code)]
    wide, narrow = (torch.cdist(m, m)[[0, 0, 1], [1, 2, 2]] for m in means)
    torch.testing.assert_close(narrow / narrow[0], wide / wide[0], atol=1e-3, rtol=1e-3)


def test_columns_far_from_zero_keep_their_content():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = np.c_[1.7e9 + 60 * y + rng.normal(0, 5, 600), rng.normal(0, 1, 600)]
    labels = Kith(2, random_state=0).fit_predict(X)
    assert max(np.mean(labels == y), np.mean(labels != y)) > 0.99
