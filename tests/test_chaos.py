"""A short, seeded version of benchmarks/chaos.py."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "chaos.py"


@pytest.mark.parametrize(
    "campaigns, trials",
    [("kills,full,races", 4), ("flips,forged", 60), ("fuzz,extremes", 100)],
)
def test_nothing_is_lost_changed_or_unnamed(campaigns, trials):
    words = ["--only", campaigns, "--trials", str(trials), "--minutes", "30", "--seed", "1"]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in campaigns.split(","):
        assert f"| {name} | {trials} | 0 | 0 |" in done.stdout, done.stdout
