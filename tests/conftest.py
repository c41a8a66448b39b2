"""Shared by all tests: small data, and the methods of the registry under quick settings."""

import os

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

from coterie import registry
from coterie.train.settings import resolve

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
