"""How far a step and a row walk: benchmarks/trace.py counts."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "trace.py"


@pytest.fixture(scope="module")
def trace():
    spec = importlib.util.spec_from_file_location("trace_of_a_step", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("key", "most"), [("dec", 6), ("idec", 6), ("acedec", 9)])
def test_a_step_runs_through_few_files(key, most, trace):
    files = trace.files_of_a_step(key)
    assert "train/engine.py" in files and "nets/mlp.py" in files
    assert len(files) <= most, files


def test_a_file_is_read_once_and_its_rows_are_scaled_once_for_each_model(trace):
    found = trace.rows_of_a_run()
    assert found == {"models fitted": 3, "Rows built": 3, "file read": 1}
