"""The length of a phase under a time budget, by a clock that only moves when told."""

import pytest

from coterie.cli.method_args import duration
from coterie.train import budget


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: now[0])
    return now


def test_steps_and_updates_are_priced_apart(clock):
    pace = budget.Pace(0)
    clock[0] += 40  # one update ...
    pace.update_took(40)
    clock[0] += 8  # ... and eight steps of a second
    # 140 seconds are left; a step costs 1 s and its part of an update every 100 steps, 0.4 s
    assert pace.last_step(8, 188, every=100) == 8 + 100


def test_a_resumed_phase_counts_only_its_own_steps(clock):
    pace = budget.Pace(1000)
    clock[0] += 16
    assert pace.last_step(1008, 116, every=10**9) == 1008 + 50
    assert [s for s in range(1000, 2100) if pace.due(s)] == [1008, 1064, 1512, 2024]


def test_too_late_means_now(clock):
    pace = budget.Pace(0)
    clock[0] += 80
    assert pace.last_step(8, 10, every=5) < 8


@pytest.mark.parametrize(("text", "seconds"), [("5m", 300), ("90", 90), ("1.5h", 5400), ("2 s", 2)])
def test_durations(text, seconds):
    assert duration(text) == seconds
