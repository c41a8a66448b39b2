"""A run that is loaded is a model of its own: it leaves the run's folder alone."""

import numpy as np
import pytest
from sklearn.base import clone

import coterie
from conftest import quick
from coterie.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("runs")
    np.save(folder / "rows.npy", blobs[0])
    words = ["fit", str(folder / "rows.npy"), "--method", "dec", "--clusters", "3", "--hidden", "8"]
    words += ["--pretrain-epochs", "1", "--epochs", "1", "--out", str(folder / "r")]
    assert main(words) == 0
    return folder / "r"


def test_a_loaded_run_is_silent_and_writes_no_checkpoint(run, blobs, capsys):
    model = coterie.load(run)
    assert model.checkpoint_dir is None and model.verbose == 0
    before = sorted(path.name for path in run.rglob("*"))
    capsys.readouterr()
    clone(model).fit(blobs[0])
    assert sorted(path.name for path in run.rglob("*")) == before
    assert capsys.readouterr() == ("", "")


def test_a_saved_model_keeps_what_decides_its_result_only(blobs, tmp_path):
    how = {"verbose": 1, "cache_dir": tmp_path / "cache", "checkpoint_dir": tmp_path / "c"}
    quick("dec", time_budget=60, **how).fit(blobs[0]).save(tmp_path / "m")
    model = coterie.load(tmp_path / "m")
    assert (model.time_budget, model.random_state) == (60, 0)
    assert (model.verbose, model.cache_dir, model.checkpoint_dir) == (0, None, None)
    assert str(tmp_path) not in (tmp_path / "m" / "model.json").read_text()
    assert coterie.load(tmp_path / "m", verbose=1).verbose == 1
