"""A grid of settings drawn from lines of the ledger."""

import pytest

from coterie.research.bench.grid import grid_map
from coterie.research.bench.ledger import KEYS


def record(**changes) -> dict:
    return dict.fromkeys(KEYS) | {"method": "dec", "status": "ok", "ari": 0.5, "seed": 0} | changes


def test_a_grid_of_settings_becomes_a_heat_map():
    runs = [
        record(seed=seed, ari=ari, params={"n_init": n, "lr": rate})
        for seed, n, rate, ari in [(0, 1, 0.1, 0.2), (1, 1, 0.1, 0.4), (0, 5, 0.1, 0.8)]
    ]
    runs += [
        record(params={"n_init": 5}),
        record(status="failed: x", params={"n_init": 9, "lr": 9}),
    ]
    ax = grid_map(runs, "n_init", "lr")
    assert [t.get_text() for t in ax.texts] == ["0.30", "0.80"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "5"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n_init", "lr")
    doubled = grid_map(runs, "n_init", lambda params: 2 * params.get("lr", 0.5))
    assert [t.get_text() for t in doubled.get_yticklabels()] == ["0.2", "1"]
    with pytest.raises(ValueError, match="both axes"):
        grid_map(runs, "n_init", "hidden")
