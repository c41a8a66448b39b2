"""Shared by all tests: small data, and the methods of the registry under quick settings."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

import made_up
from coterie import registry
from coterie.data.sets import named, stored
from coterie.train import budget, checkpoint, engine
from coterie.train.engine import Engine
from coterie.train.settings import resolve

OFFLINE = str(Path(__file__).parent / "offline")
sys.path.insert(0, OFFLINE)
import refuse_network  # noqa: E402, F401

# for the processes that tests start
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [OFFLINE, os.environ.get("PYTHONPATH")]))

torch.set_num_threads(1)


def quick(key: str, n_clusters: int = 3, **changes):
    """A method with settings under which a fit takes a fraction of a second."""
    cls = registry.get(key)
    return cls(n_clusters, **{"random_state": 0, **cls.tiny, **changes})


def prepared(method, shape, n=120):
    """A method whose settings are resolved as a fit on n rows of a shape would, without the fit."""
    method._prepare(resolve(method, n, shape))
    return method


# COTERIE_KEYS=dec,idec narrows the registry-driven tests while a method is being written
KEYS = os.environ.get("COTERIE_KEYS", ",".join(registry.METHODS)).split(",")


def deep_keys() -> list[str]:
    from coterie.estimator.deep import DeepClusterer

    return [k for k in KEYS if issubclass(registry.get(k), DeepClusterer)]


@pytest.fixture(autouse=True)
def no_data_of_this_machine(request, monkeypatch, tmp_path_factory):
    """Only tests marked `data` see the data sets that happen to be here."""
    if request.node.get_closest_marker("data") is None:
        monkeypatch.delenv("COTERIE_DATA", raising=False)
        home = Path(tmp_path_factory.getbasetemp(), "no-data")
        monkeypatch.setattr(stored, "user_folder", lambda: home)


@pytest.fixture(scope="session")
def made_up_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("made-up")


@pytest.fixture
def made_up_sets(made_up_folder, monkeypatch):
    """A data folder: call it with names of data sets to have made-up files for them there."""
    monkeypatch.setenv("COTERIE_DATA", str(made_up_folder))

    def make(*names):
        for name in names:
            base = named.stored_base(name)
            if base and not stored.holds(made_up_folder, base):
                made_up.write(base, made_up_folder)
        return made_up_folder

    return make


@pytest.fixture
def real_sets():
    """Call it with a name for the folder that holds the real set; a test without it is skipped."""

    def folder_of(name):
        base = named.stored_base(name)
        if (folder := stored.find(base)) is None:
            pytest.skip(f"needs the real data set {base} (set COTERIE_DATA to its folder)")
        return folder

    return folder_of


@pytest.fixture(scope="session")
def blobs():
    X, y = make_blobs(120, 6, centers=3, cluster_std=0.6, random_state=3)
    return X.astype(np.float32), y


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def digit_images():
    d = load_digits()
    return (d.images * 15).astype(np.uint8), d.target


@pytest.fixture
def steady_clock(monkeypatch):
    """The engine's clock moves by a millisecond with each step: budgets end at the same step
    however busy the machine is."""
    now, one_step = [0.0], Engine._one_step

    def step(self, *args, **kwargs):
        now[0] += 0.001
        return one_step(self, *args, **kwargs)

    monkeypatch.setattr(Engine, "_one_step", step)
    clock = SimpleNamespace(perf_counter=lambda: now[0], monotonic=time.monotonic)
    for module in (budget, checkpoint, engine):
        monkeypatch.setattr(module, "time", clock)
