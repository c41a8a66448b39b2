"""A run that was killed ends with the bits of one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import deep_keys, quick
from coterie.storage.tensors import StateError, pack, unpack, write_bytes
from coterie.train.batch import Batch

FIT_ONCE = str(Path(__file__).parents[1].joinpath("fit_once.py"))


def fit_in_process(job, wait=True):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.Popen([sys.executable, FIT_ONCE, json.dumps(job)], env=env)
    return run.wait() if wait else run


def made(folder):
    return {**np.load(folder / "made.npz"), **unpack(folder / "model.safetensors")[0]}


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(np.asarray(a[name]), np.asarray(b[name])), name


def told(history):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history]


class Killed(BaseException):
    """Stands for the end of the process in the quick tests: nothing of ours catches it."""


@pytest.mark.parametrize("key", deep_keys())
def test_every_method_resumes_from_every_checkpoint(key, digit_images, tmp_path, monkeypatch):
    """Stop after each step in turn; the fit that goes on must not be able to tell."""
    X = digit_images[0][:70]
    params = {"batch_size": 32, "checkpoint_seconds": 0.0}
    whole = quick(key, **params).fit(X)
    from coterie.train.engine import Engine

    steps, true_save = [0], Engine._save
    monkeypatch.setattr(
        Engine,
        "_save",
        lambda self, extra: steps.__setitem__(0, steps[0] + 1) or true_save(self, extra),
    )
    quick(key, checkpoint_dir=tmp_path / "count", **params).fit(X)
    total = steps[0]
    assert total >= 2
    for stop in sorted({1, 2, total // 3, total // 2, 2 * total // 3, total - 1} - {0}):
        count = [0]

        def save_and_stop(self, extra, stop=stop, count=count):
            true_save(self, extra)
            count[0] += 1
            if count[0] == stop:
                raise Killed

        folder = tmp_path / str(stop)
        monkeypatch.setattr(Engine, "_save", save_and_stop)
        with pytest.raises(Killed):
            quick(key, checkpoint_dir=folder, **params).fit(X)
        monkeypatch.setattr(Engine, "_save", true_save)
        again = quick(key, checkpoint_dir=folder, **params).fit(X)
        assert np.array_equal(again.labels_, whole.labels_), stop
        for (name, a), b in zip(
            again.network_.state_dict().items(), whole.network_.state_dict().values()
        ):
            assert torch.equal(a, b), (stop, name)
        mine, theirs = (
            again.head_.tensors(("param", "state")),
            whole.head_.tensors(("param", "state")),
        )
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[k], theirs[k]) for k in mine), stop
        assert told(again.history_) == told(whole.history_), stop


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "kills", "by_clock"), [("ae_kmeans", [7, 41, 42], 3), ("dec", [50], 0)]
)
def test_kill_9_in_every_phase_and_at_random_moments(key, kills, by_clock, digit_images, tmp_path):
    """Real SIGKILLs: after chosen checkpoints (pretrain, init, train) and by the clock."""
    np.save(tmp_path / "x.npy", digit_images[0][:300])
    params = {"batch_size": 32, "checkpoint_seconds": 0.0, "pretrain_epochs": 4}
    job = {"key": key, "data": str(tmp_path / "x.npy")}
    began = time.monotonic()
    assert fit_in_process({**job, "params": params, "out": str(tmp_path / "whole")}) == 0
    took = time.monotonic() - began
    whole = made(tmp_path / "whole")
    # 10 steps an epoch: 7 is mid-epoch in pretrain, 41 its end, 42 init, 50 in train (DEC)
    for kill in kills:
        folder = tmp_path / f"kill{kill}"
        own = {**params, "checkpoint_dir": str(folder / "checkpoint")}
        out = {**job, "params": own, "out": str(folder / "model")}
        assert fit_in_process({**out, "kill": kill}) == -signal.SIGKILL
        assert fit_in_process(out) == 0
        same(made(folder / "model"), whole)
    folder, moments = tmp_path / "clock", random.Random(key)
    own = {**params, "checkpoint_dir": str(folder / "checkpoint")}
    for attempt in range(by_clock + 1):  # wherever it happens to be, even while it writes, or done
        run = fit_in_process({**job, "params": own, "out": str(folder / f"{attempt}")}, wait=False)
        if attempt < by_clock:
            time.sleep(moments.uniform(0.4, 1.0) * took)
            run.kill()
        code = run.wait()
    assert code == 0
    same(made(folder / f"{by_clock}"), whole)


def test_a_checkpoint_of_another_run_is_refused(blobs, tmp_path):
    quick("dec", checkpoint_dir=tmp_path).fit(blobs[0])
    with pytest.raises(StateError, match=r"lr was 0\.001, now 0\.01"):
        quick("dec", checkpoint_dir=tmp_path, lr=0.01).fit(blobs[0])
    with pytest.raises(StateError, match="data was"):
        quick("dec", checkpoint_dir=tmp_path).fit(blobs[0] + 1)


def test_without_a_seed_the_interrupted_fit_goes_on_with_its_own(blobs, tmp_path):
    a = quick("dec", random_state=None, checkpoint_dir=tmp_path).fit(blobs[0])
    b = quick("dec", random_state=None, checkpoint_dir=tmp_path).fit(blobs[0])
    assert a.seed_ == b.seed_ and np.array_equal(a.labels_, b.labels_)


def test_cached_pretraining_gives_the_same_bits_and_its_cost(blobs, tmp_path):
    plain = quick("dec").fit(blobs[0])
    first = quick("dec", cache_dir=tmp_path).fit(blobs[0])
    second = quick("dec", cache_dir=tmp_path, n_clusters=3).fit(blobs[0])
    other = quick("ae_kmeans", cache_dir=tmp_path).fit(blobs[0])
    assert len(list(tmp_path.iterdir())) == 1  # two methods, one pre-training
    for model in (first, second):
        assert np.array_equal(model.transform(blobs[0]), plain.transform(blobs[0]))
    assert second.seconds_["pretrain"] > 0 and other.seconds_["pretrain"] > 0


def test_a_pretraining_that_a_budget_cut_is_not_cached(blobs, tmp_path, steady_clock):
    cut = quick("dec", cache_dir=tmp_path, pretrain_epochs=10**5, time_budget=0.3).fit(blobs[0])
    assert cut.history_[-1]["phase"] == "train" and list(tmp_path.iterdir()) == []


def test_a_cached_pretraining_does_not_use_up_the_budget(blobs, tmp_path):
    settings = {"cache_dir": tmp_path, "tol": 0.0}
    quick("dec", **settings, epochs=1).fit(blobs[0])
    (entry,) = tmp_path.iterdir()
    tensors, about = unpack(entry)
    write_bytes(entry, pack(tensors, about | {"seconds": 1000.0}))  # it was dear, once
    model = quick("dec", **settings, epochs=30, time_budget=100).fit(blobs[0])
    assert model.seconds_["pretrain"] == pytest.approx(1000, abs=10)
    assert model.history_[-1]["epoch"] == 29  # all of them: nothing of the 100 seconds was spent


def test_annealing_arrives_under_a_budget(blobs, steady_clock):
    settings = {"inverse_temperature": None, "init": "random", "levels": 40}
    whole = quick("dkm", **settings).fit(blobs[0])
    assert float(whole.head_.alpha) == pytest.approx(28.1, rel=0.01)
    cut = quick("dkm", **settings, epochs_per_level=10**4, time_budget=0.5).fit(blobs[0])
    assert cut.history_[-1]["epoch"] < 10**4  # less than one level of the whole plan
    assert float(cut.head_.alpha) > 20


def test_resume_with_a_cache_that_was_filled_meanwhile_trains_to_the_end(
    blobs, tmp_path, monkeypatch
):
    whole = quick("dec").fit(blobs[0])
    from coterie.train.engine import Engine

    true_save = Engine._save

    def stop_in(phase):
        def save(self, extra):
            true_save(self, extra)
            if extra and self.phase.name == phase:
                raise Killed

        return save

    params = {"checkpoint_seconds": 0.0}
    for phase, then in (("pretrain", True), ("train", True), ("train", False)):
        folder = tmp_path / f"{phase}{then}"
        params["checkpoint_dir"] = folder / "checkpoint"
        monkeypatch.setattr(Engine, "_save", stop_in(phase))
        with pytest.raises(Killed):
            quick("dec", cache_dir=folder / "cache", **params).fit(blobs[0])
        monkeypatch.setattr(Engine, "_save", true_save)
        quick("ae_kmeans", cache_dir=folder / "cache").fit(blobs[0])  # fills it
        again = quick("dec", cache_dir=folder / "cache" if then else None, **params).fit(blobs[0])
        assert [r["phase"] for r in again.history_] == [r["phase"] for r in whole.history_]
        assert np.array_equal(again.transform(blobs[0]), whole.transform(blobs[0]))


def test_the_seconds_before_a_kill_are_counted(blobs, tmp_path, monkeypatch):
    from coterie.train.engine import Engine

    true_save, clock = Engine._save, [0.0]
    monkeypatch.setattr("coterie.train.engine.time.perf_counter", lambda: clock[0])

    def save(self, extra):
        clock[0] += 10.0
        true_save(self, extra)
        if extra and self.phase.name == "train":
            raise Killed

    params = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    monkeypatch.setattr(Engine, "_save", save)
    with pytest.raises(Killed):
        quick("dec", **params).fit(blobs[0])
    monkeypatch.setattr(Engine, "_save", true_save)
    again = quick("dec", **params).fit(blobs[0])
    assert again.seconds_["train"] == 10.0


@pytest.mark.parametrize("phase", ["train", "refine"])
def test_a_checkpoint_of_kith_from_before_it_shared_no_rows_goes_on(
    phase, blobs, tmp_path, monkeypatch
):
    from coterie.train.engine import Engine

    true_save = Engine._save

    def save(self, extra):
        true_save(self, extra)
        if extra and self.phase.name == phase:
            raise Killed

    params = {"checkpoint_dir": tmp_path, "checkpoint_seconds": 0.0}
    monkeypatch.setattr(Engine, "_save", save)
    with pytest.raises(Killed):
        quick("kith", **params).fit(blobs[0])
    monkeypatch.setattr(Engine, "_save", true_save)
    path = tmp_path / "checkpoint.safetensors"
    tensors, about = unpack(path)
    old = {name.replace("head.whole.", "head.rows."): t for name, t in tensors.items()}
    assert old.keys() != tensors.keys()
    write_bytes(path, pack(old, about))
    again, whole = quick("kith", **params).fit(blobs[0]), quick("kith").fit(blobs[0])
    assert np.array_equal(again.transform(blobs[0]), whole.transform(blobs[0]))
    assert np.array_equal(again.neighbours_, whole.neighbours_)


def test_order_and_noise_depend_on_seed_phase_and_step_only(blobs, monkeypatch):
    seen = []
    init = Batch.__init__

    def spy(self, engine, index, augment):
        init(self, engine, index, augment)
        seen.append((engine.phase.name, engine.step, index.tolist()))

    monkeypatch.setattr(Batch, "__init__", spy)
    quick("dec", batch_size=50).fit(blobs[0])
    first, seen[:] = list(seen), []
    quick("dec", batch_size=50).fit(blobs[0])
    assert seen == first
    epochs = {}
    for phase, step, index in first:
        epochs.setdefault((phase, step // 3), []).extend(index)
    assert all(sorted(rows) == list(range(120)) for rows in epochs.values())  # each row once
    orders = {tuple(v) for v in epochs.values()}
    assert len(orders) == len(epochs)  # a new order for each epoch of each phase
