"""Two gloo processes against one: same losses, same gradients, same rows in the same order."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import deep_keys, quick
from coterie.runtime.shared_sum import FOLDER
from coterie.storage.tensors import unpack

FIT_MANY = str(Path(__file__).parents[1].joinpath("fit_many.py"))

# name: (method, what is changed). Adam hides a factor on all gradients, so one case goes without
CASES = {key: (key, {}) for key in deep_keys()}
CASES["idec-sgd"] = ("idec", {"pretrain_optimizer": "sgd", "optimizer": "sgd", "lr": 1e-2})


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def two_process_runs(tmp_path_factory, digit_images):
    """All methods, fitted by one pair of processes (starting torch twice is the expensive part)."""
    root = tmp_path_factory.mktemp("two")
    np.save(root / "x.npy", digit_images[0][:101])  # odd: the parts of a batch differ in size
    job = json.dumps({"root": str(root), "cases": CASES})
    port = str(free_port())
    runs = []
    for rank in range(2):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCAL_RANK": str(rank)}
        env |= {"LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
        runs.append(subprocess.Popen([sys.executable, FIT_MANY, job], env=env))
    assert [run.wait(timeout=600) for run in runs] == [0, 0]
    return root


@pytest.mark.parametrize("case", CASES)
def test_two_processes_equal_one(case, two_process_runs, digit_images):
    X = digit_images[0][:101]
    key, changes = CASES[case]
    one = quick(key, batch_size=20, **changes).fit(X)
    two = unpack(two_process_runs / case / "model.safetensors")[0]
    made = np.load(two_process_runs / case / "made.npz")
    # rounding differs (sums are taken in parts), the training does not
    for name, a in one.network_.state_dict().items():
        np.testing.assert_allclose(two[f"network.{name}"], a, atol=2e-3, rtol=2e-2, err_msg=name)
    first, other = one.history_[0], json.loads(str(made["history"]))[0]
    for term in first:
        if isinstance(first[term], float) and term != "seconds":
            np.testing.assert_allclose(other[term], first[term], rtol=1e-3, err_msg=term)
    assert np.mean(made["labels"] == one.labels_) > 0.97
    np.testing.assert_allclose(made["z"], one.transform(X), atol=2e-2, rtol=5e-2)


PER_ROW = {"dec": "target", "idec": "target", "dcec": "target", "dekm": "target", "dcn": "labels"}


@pytest.mark.parametrize("case", CASES)
def test_a_process_holds_the_state_of_its_own_rows_only(case, two_process_runs):
    """Targets, labels and embedding; a method without such state has nothing to show."""
    for rank, part in enumerate((50, 51)):
        held = json.loads((two_process_runs / f"{case}-held-{rank}.json").read_text())
        assert set(held.values()) <= {part}
        assert PER_ROW.get(case) is None or PER_ROW[case] in held


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no memory to share")
def test_two_processes_of_a_machine_add_up_gradients_in_shared_memory(two_process_runs):
    first, other = (np.load(two_process_runs / f"sums-{rank}.npy") for rank in range(2))
    assert len(first) > 10 * len(CASES) and np.array_equal(first, other)


def test_without_a_seed_all_processes_take_the_leaders(two_process_runs):
    first, other = (np.load(two_process_runs / f"unseeded-{rank}.npy") for rank in range(2))
    assert np.array_equal(first, other)
