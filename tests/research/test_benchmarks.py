"""Benchmarks that hook into the engine still find their hooks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def test_parity_takes_turns_with_the_engine(folder):
    import parity

    ratio, gap = parity.compare(600, 8, 3)
    assert ratio > 0 and gap < 1e-5  # the same steps as by hand


@pytest.mark.parametrize("side, goal", [("same", None), ("default", 0.01)])
def test_our_side_of_the_comparison_with_peers(side, goal, tmp_path):
    job = {"dataset": "digits", "data_dir": None, "rows": 200, "seed": 0, "method": "dec"}
    job |= {"side": side, "pretrain_epochs": 1, "epochs": 2, "threads": 1}
    job |= {"goal": goal, "cache": str(tmp_path)}
    command = [sys.executable, str(FOLDER / "peers_worker.py"), json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if goal is None:
        assert found["epoch_cpu"] > 0 and 0 <= found["nmi"] <= 1
    else:  # it stops at the goal: a course and no scores
        assert found["nmi"] is None and found["course"][-1][2] >= goal
        assert list(tmp_path.glob("ours-digits-200-0.json"))


def test_peers_are_shown_from_whole_fits_and_from_those_that_stopped_at_their_goal(
    folder, monkeypatch, capsys
):
    import speed

    whole = {"nmi": 0.7, "fit_cpu": 100.0, "course": [[50, 50, 0.6], [100, 100, 0.7]]}
    stopped = {"nmi": None, "fit_cpu": None, "course": [[40, 40, 0.4], [60, 60, 0.5]]}
    rows = {"usps/dec/default/0": whole, "usps/dec/default/1": stopped}
    monkeypatch.setattr(speed.speedfile, "read", lambda: {"peers": rows})
    speed.show_peers()
    assert "NMI 0.600 in 80 s (2 seeds)" in capsys.readouterr().out
