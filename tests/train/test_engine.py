"""The engine: stop rule, NaN guard, empty clusters, schedules, averaging, budget, silence."""

import itertools
import math

import numpy as np
import pytest
import torch

from conftest import quick
from coterie import DEC
from coterie.data.chunks import epoch_steps
from coterie.nets import build
from coterie.runtime.processes import World
from coterie.runtime.progress import Progress
from coterie.runtime.rng import torch_rng
from coterie.storage.tensors import Checkpoint
from coterie.train.batch import READ_EVERY, Tally, TrainingError
from coterie.train.engine import Engine
from coterie.train.head import Head
from coterie.train.optim import Optim
from coterie.train.plan import Phase
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling


def engine(X, **changes):
    rows = Rows(X, fit_scaling(X, "none"))
    network = build(
        "mlp",
        rows.shape,
        embedding_dim=2,
        hidden=(8,),
        channels=(1, 1, 1),
        activation="relu",
        initializer="xavier",
        generator=torch_rng(0),
    )
    return Engine(
        rows, network, lambda z, h: z, seed=0, world=World(), progress=Progress(0), **changes
    )


def squared(batch, head):
    return {"reconstruction": (batch.clean - batch.x_hat).square().sum(1).mean()}


def test_a_nan_loss_names_phase_epoch_step_and_term(blobs):
    e = engine(blobs[0])

    def loss(batch, head):
        terms = squared(batch, head)
        terms["odd"] = terms["reconstruction"] * (math.nan if batch.step == 5 else 1)
        return terms

    with pytest.raises(TrainingError, match=r"'odd' became nan in phase 'train', epoch 1, step 5"):
        e.run([Phase("train", 3, loss, batch_size=30)])


def test_a_nan_is_told_by_its_own_step_whatever_comes_of_it(blobs, tmp_path):
    """Losses are read every few steps; until then nothing is kept, and no follow-up hides it."""
    keep = Checkpoint(tmp_path, {})

    def loss(batch, head):
        if batch.step == 3:
            raise RuntimeError("probability tensor contains nan")
        terms = squared(batch, head)
        return {"kl": terms["reconstruction"] * (math.nan if batch.step == 2 else 1)}

    for changes in ({}, {"checkpoint": keep, "checkpoint_seconds": 0.0}):
        with pytest.raises(TrainingError, match=r"'kl' became nan in phase 'train', epoch 0, step"):
            engine(blobs[0], **changes).run([Phase("train", 3, loss, batch_size=20)])
    assert keep.load()[1]["position"] == [0, 0, 2]  # the last one before the NaN


def test_losses_are_read_once_in_many_steps(blobs, monkeypatch):
    reads, read = [], Tally.read
    e = engine(blobs[0])
    monkeypatch.setattr(Tally, "read", lambda self: reads.append(e.step) or read(self))
    e.run([Phase("train", 2, squared, batch_size=1)])  # 120 steps an epoch
    assert reads == [READ_EVERY - 1, 120, 120 + READ_EVERY - 1, 240]


def test_the_stop_rule_follows_a_hand_made_sequence(blobs):
    n = len(blobs[0])
    base = torch.arange(n) % 3
    sequence = [base.clone() for _ in range(6)]
    for i, changed in enumerate([0, 40, 20, 5, 1, 0]):
        sequence[i][:changed] = (sequence[i][:changed] + 1) % 3
    seen = []

    def update(view, head):
        seen.append(view.step)
        return sequence[len(seen) - 1]

    e = engine(blobs[0])
    e.head = Head(state={"unused": torch.zeros(1)})
    e.run([Phase("train", 50, squared, batch_size=60, update=update, update_every=4, tol=0.04)])
    # changes: 40/120, 20.., 15/120, 4/120 < 0.04 -> stops at the fifth update
    assert seen == [0, 4, 8, 12, 16]


def test_renamed_clusters_have_not_changed_also_without_centres(blobs):
    labels = torch.arange(len(blobs[0])) % 3
    sequence, seen = [labels, (labels + 1) % 3], []

    def update(view, head):
        seen.append(view.step)
        return sequence[len(seen) - 1]

    e = engine(blobs[0])
    e.head = Head(state={"unused": torch.zeros(1)})
    e.run([Phase("train", 9, squared, batch_size=60, update=update, align=True, tol=0.01)])
    assert len(seen) == 2


def test_update_every_counts_batches_or_epochs(blobs):
    for every, expected in [(2, [0, 2, 4]), (1.0, [0, 3]), (0.5, [0, 2, 4])]:
        seen = []
        model = quick("dec", batch_size=40, epochs=2, update_every=every, tol=0.0)
        model.update = lambda view, head, m=model, seen=seen: (
            seen.append(view.step) or DEC.update(m, view, head)
        )
        model.fit(blobs[0])
        assert seen == expected


@pytest.mark.parametrize("policy", ["reseed", "keep", "raise"])
def test_empty_clusters(policy, blobs):
    class FarCentre(DEC):
        def init_head(self, latents, rng):
            head = super().init_head(latents, rng)
            head.centers.data[0] = 1e3  # nobody is near
            return head

    model = FarCentre(3, empty=policy, random_state=0, **DEC.tiny)
    if policy == "raise":
        with pytest.raises(TrainingError, match=r"clusters \[0\] of 3 have no rows"):
            model.fit(blobs[0])
        return
    model.fit(blobs[0])
    used = len(np.unique(model.labels_))
    assert used == 3 if policy == "reseed" else used < 3
    assert any("re-seeded" in note for note in model.notes_) == (policy == "reseed")
    assert any("uses 2 of 3" in note for note in model.notes_) == (policy == "keep")


def test_schedules():
    steps = [i / 100 for i in range(100)]
    cycle = [Optim(lr=1.0, schedule="onecycle").rate(s) for s in steps]
    assert cycle[0] < 0.05 and max(cycle) == pytest.approx(1, abs=0.01) and cycle[-1] < 0.01
    assert steps[int(np.argmax(cycle))] == pytest.approx(0.3)
    decay = [Optim(lr=1.0, schedule="polynomial").rate(s) for s in steps]
    assert decay[0] == 1 and all(a > b for a, b in itertools.pairwise(decay))
    assert Optim(lr=1.0, schedule="polynomial").rate(0.5) == pytest.approx(0.7821, abs=1e-4)
    assert Optim(lr=1.0, schedule="polynomial").rate(1.0) == pytest.approx(0.1)
    assert {Optim(lr=0.3).rate(s) for s in steps} == {0.3}


def test_averaging_ends_with_the_mean_of_the_steps(blobs):
    e, seen = engine(blobs[0]), []
    optimize = e.descend

    def spy(*args):
        optimize(*args)
        seen.append(e.network.encoder[0].weight.detach().clone())

    e.descend = spy
    e.run([Phase("train", 3, squared, batch_size=30, average=1.0)])
    last_epoch = seen[len(seen) * 2 // 3 :]
    torch.testing.assert_close(e.network.encoder[0].weight.data, torch.stack(last_epoch).mean(0))


def test_a_schedule_may_end_before_its_phase(blobs):
    e, rates = engine(blobs[0]), []
    optimize = e.descend

    def spy(*args):
        optimize(*args)
        rates.append(e._optims["main"][2].param_groups[0]["lr"])

    e.descend = spy
    optim = Optim(lr=1.0, schedule="polynomial", horizon=2.0)
    e.run([Phase("train", 4, squared, batch_size=30, optim=optim)])
    half, steps = len(rates) // 2, len(rates)
    for step in range(steps):
        left = max(0.0, 1 - step / half)
        assert rates[step] == pytest.approx(0.1 + 0.9 * left**0.4)


def test_clipping_bounds_the_gradient(blobs):
    e = engine(blobs[0] * 1000)
    e.run([Phase("train", 1, squared, batch_size=30, optim=Optim(kind="sgd", lr=1e-6, clip=0.1))])
    norms = [p.grad.norm() for p in e.network.parameters()]
    assert torch.stack(norms).norm() <= 0.1 + 1e-5


def test_a_time_budget_shortens_the_phases(blobs, steady_clock):
    X = np.repeat(blobs[0], 20, axis=0)
    model = quick("dec", pretrain_epochs=4000, epochs=4000, tol=0.0, time_budget=2.0)
    model.fit(X)
    assert 0 < len(model.history_) < 4000
    assert {r["phase"] for r in model.history_} == {"pretrain", "train"}
    last = [r["epoch"] for r in model.history_ if r["phase"] == "train"][-1]
    told = [note for note in model.notes_ if note.startswith("the time budget ended")]
    assert "'pretrain'" in told[0] and "of 4000 epochs" in told[0]
    assert last <= float(told[1].split("after ")[1].split()[0]) <= last + 2
    assert not quick("dec", time_budget=1000.0).fit(blobs[0]).notes_


def test_silence_callbacks_and_history(blobs, capfd):
    records = []
    model = quick("dec", callback=records.append).fit(blobs[0])
    out = capfd.readouterr()
    assert out.out == "" and out.err == ""
    assert records == model.history_
    last = model.history_[-1]
    assert last["phase"] == "train" and "kl" in last
    assert last["clusters_used"] == 3 and 0 < last["smallest_share"] <= last["largest_share"] < 1


def test_a_collapsed_result_is_not_returned_silently(blobs):
    class Flat(DEC):
        def build_network(self, shape, generator):
            network = super().build_network(shape, generator)
            for p in network.encoder[-1].parameters():
                p.data.zero_()
            return network

    with pytest.raises(TrainingError, match="collapsed"):
        Flat(3, random_state=0, **{**DEC.tiny, "init": "random"}).fit(blobs[0])


def test_a_single_row_that_is_left_over_joins_the_last_batch(blobs):
    sizes, X = [], blobs[0][:61]

    def loss(batch, head):
        sizes.append(len(batch.rows))
        return squared(batch, head)

    engine(X).run([Phase("train", 2, loss, batch_size=20)])
    assert sizes == [20, 20, 21] * 2
    assert [epoch_steps(n, 20) for n in (1, 20, 21, 22, 41)] == [1, 1, 1, 2, 2]
    assert epoch_steps(3, 1) == 3  # one by one is what was asked for


def test_frozen_layers_of_a_user_s_network_stay_and_the_rest_learns(blobs):
    encoder = torch.nn.Sequential(torch.nn.Linear(blobs[0].shape[1], 8), torch.nn.Linear(8, 3))
    decoder = torch.nn.Linear(3, blobs[0].shape[1])
    encoder[0].requires_grad_(False)
    before = [p.clone() for p in encoder.parameters()]
    model = quick("idec", 3, net=(encoder, decoder)).fit(blobs[0])
    after = list(model.network_.encoder.parameters())
    same = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert same == [True, True, False, False]
