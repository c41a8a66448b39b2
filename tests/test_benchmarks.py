"""Benchmarks that hook into the engine still find their hooks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def test_parity_takes_turns_with_the_engine(folder):
    import parity

    ratio, gap = parity.compare(600, 8, 3)
    assert ratio > 0 and gap < 1e-5  # the same steps as by hand


def test_our_side_of_the_comparison_with_peers():
    job = {"dataset": "digits", "data_dir": None, "rows": 200, "seed": 0, "method": "dec"}
    job |= {"side": "same", "pretrain_epochs": 1, "epochs": 2, "threads": 1}
    command = [sys.executable, str(FOLDER / "peers_worker.py"), json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["epoch_cpu"] > 0 and 0 <= found["nmi"] <= 1
