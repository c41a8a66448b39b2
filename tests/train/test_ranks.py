"""Several processes: one that dies and comes back, summed statistics, and torchrun's launcher."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from test_distributed import free_port
from torch.testing import assert_close

from conftest import quick
from coterie.math.kmeans import kmeans
from coterie.runtime import processes
from coterie.runtime.processes import sharing
from coterie.storage.tensors import unpack
from coterie.train.scaling import fit_scaling

FIT_ONCE = str(Path(__file__).parents[1].joinpath("fit_once.py"))


class Ranks:
    """Two threads that behave as two processes: each adds its part and waits for the other."""

    def __init__(self, size=2):
        self.size, self.barrier, self.parts = size, threading.Barrier(size), [None] * size

    def run(self, function):
        out, errors = [None] * self.size, []

        def work(rank):
            try:
                with sharing(Rank(self, rank)):
                    out[rank] = function()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=600)
        if errors:
            raise errors[0]
        return out


class Rank:
    def __init__(self, ranks, rank):
        self.ranks, self.rank, self.size = ranks, rank, ranks.size

    def span(self, n):
        return n * self.rank // self.size, n * (self.rank + 1) // self.size

    def sum(self, t):
        self.ranks.parts[self.rank] = t
        self.ranks.barrier.wait(timeout=300)
        total = sum(self.ranks.parts)
        self.ranks.barrier.wait(timeout=300)
        return total

    def concat(self, part, n):
        whole = part.new_zeros((n, *part.shape[1:]))
        start, stop = self.span(n)
        whole[start:stop] = part
        return self.sum(whole)


class Stored:
    """Rows that are read in slices; remembers which ones were read."""

    def __init__(self, x):
        self.x, self.n, self.read = torch.from_numpy(x), len(x), []

    def slice(self, start, stop):
        self.read.append((start, stop))
        return self.x[start:stop]


@pytest.mark.parametrize("kind", ["tensor", "disk", "sparse"])
def test_kmeans_adds_up_the_statistics_of_all_ranks(kind):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 6)) * 4)[rng.integers(0, 4, 301)] + rng.normal(size=(301, 6))
    x = np.where(rng.random(x.shape) < 0.5, 0, x).astype(np.float32)

    def z():
        return {"tensor": torch.from_numpy, "disk": Stored, "sparse": sp.csr_matrix}[kind](x)

    alone = kmeans(z(), 7, rng=np.random.default_rng(1), n_init=3)
    both = Ranks().run(lambda: kmeans(z(), 7, rng=np.random.default_rng(1), n_init=3))
    for found in both:
        assert torch.equal(found.labels, alone.labels)
        torch.testing.assert_close(found.centers, alone.centers, rtol=1e-4, atol=1e-5)
        assert found.inertia == pytest.approx(alone.inertia, rel=1e-5)
    assert torch.equal(both[0].centers, both[1].centers)


def test_an_empty_cluster_goes_to_the_farthest_row_of_all_ranks():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    x[190] = 100.0  # in the second rank's part
    start = torch.stack([x[0], x[1], x[1]])
    for found in Ranks().run(lambda: kmeans(x, 3, rng=np.random.default_rng(0), init=start)):
        assert (found.labels == found.labels[190]).sum() == 1


def test_ranks_read_their_own_rows_only():
    x = np.random.default_rng(0).normal(size=(3000, 2)).astype(np.float32)
    stored = [Stored(x), Stored(x)]
    turn = iter(stored)
    lock = threading.Lock()

    def work():
        with lock:
            mine = next(turn)
        kmeans(mine, 3, rng=np.random.default_rng(0), n_init=1, sample=100)
        return mine.read

    spans = [{(a, b) for a, b in read if b > 1} for read in Ranks().run(work)]  # not the probe
    assert all(b <= 1500 for a, b in min(spans, key=min))
    assert all(a >= 1500 for a, b in max(spans, key=min))


def test_column_statistics_of_all_ranks_and_an_error_on_all():
    x = np.random.default_rng(0).normal(3, 2, (501, 4)).astype(np.float32)
    alone = fit_scaling(x, "standard")
    for found in Ranks().run(lambda: fit_scaling(x, "standard")):
        np.testing.assert_allclose(found.shift, alone.shift, rtol=1e-6)
        np.testing.assert_allclose(found.factor, alone.factor, rtol=1e-6)
    x[400, 1] = np.nan  # only the second rank meets it
    with pytest.raises(ValueError, match="NaN"):
        Ranks().run(lambda: fit_scaling(x, "standard"))


def launch(job):
    port, runs = str(free_port()), []
    for rank in range(2):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCAL_RANK": str(rank)}
        env |= {"LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, FIT_ONCE, json.dumps(job)]
        runs.append(subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL))
    return [run.wait(timeout=600) for run in runs]


def test_a_killed_rank_comes_back_and_the_result_is_the_same(digit_images, tmp_path):
    """kill -9 one of two ranks in the clustering phase; both start again from the checkpoint."""
    np.save(tmp_path / "x.npy", digit_images[0][:101])
    params = {"batch_size": 20, "checkpoint_seconds": 0.0}
    job = {"key": "dec", "data": str(tmp_path / "x.npy")}
    assert launch({**job, "params": params, "out": str(tmp_path / "whole")}) == [0, 0]
    own = {**params, "checkpoint_dir": str(tmp_path / "checkpoint")}
    out = {**job, "params": own, "out": str(tmp_path / "again")}
    codes = launch({**out, "kill_step": [1, 17]})  # 10 steps of pre-training, then 10 of training
    assert codes[1] == -signal.SIGKILL
    assert codes[0] != 0  # the survivor notices and gives up instead of waiting
    assert not (tmp_path / "again").exists() and any((tmp_path / "checkpoint").iterdir())
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "alone")
    assert launch(out) == [0, 0]
    alone = quick("dec", **{**own, "checkpoint_dir": str(tmp_path / "alone")})
    alone.fit(np.load(tmp_path / "x.npy"))  # one process goes on with what two have left
    made = [unpack(tmp_path / name / "model.safetensors")[0] for name in ("whole", "again")]
    assert made[0].keys() == made[1].keys()
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    for name, tensor in alone.network_.state_dict().items():
        assert_close(tensor, made[0][f"network.{name}"], atol=2e-3, rtol=2e-2)
    told = [np.load(tmp_path / name / "made.npz")["history"] for name in ("whole", "again")]
    for one, two in zip(*(json.loads(str(history)) for history in told), strict=True):
        assert one.keys() == two.keys() and one.pop("phase") == two.pop("phase")
        assert one == pytest.approx(two, rel=1e-12)  # sums of ranks are added in another order


@pytest.mark.slow
def test_torchrun_fits_and_restarts_nothing_that_is_done(tmp_path, blobs):
    np.save(tmp_path / "x.npy", blobs[0])
    run = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(free_port()), "-m", "coterie", "fit", str(tmp_path / "x.npy")]
    command += ["--method", "dec", "--clusters", "3", "--hidden", "16", "--pretrain-epochs", "2"]
    command += ["--epochs", "2", "--out", str(run), "--resume", "--quiet"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    for _ in range(2):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    assert (run / "labels.csv").exists() and "done" in (run / "run.toml").read_text()


def test_what_a_loss_does_not_use_is_not_sent(monkeypatch):
    """DEC never trains its decoder: half of the weights stay out of every message."""
    sent = []
    monkeypatch.setattr(processes.dist, "all_reduce", lambda t: sent.append(len(t)) or t.mul_(2))
    monkeypatch.setattr(processes.SharedSum, "open", lambda *args: None)  # two machines
    used, unused = torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(50))
    used.grad = torch.full((3, 2), 1.5)
    processes.World(0, 2).sum_gradients([used, unused])
    assert sent == [6] and unused.grad is None
    assert torch.equal(used.grad, torch.full((3, 2), 3.0))
