"""The example in the docstring of every method runs as it is printed."""

import doctest

import numpy as np
import pytest

from conftest import KEYS, quick
from coterie.methods import METHODS
from coterie.registry import get

SLOW = {"cuegan"}  # its default number of steps takes a minute and a half on any data


@pytest.mark.parametrize("key", [key for key in METHODS if key not in SLOW])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_example_of_a_method_runs(key):
    cls = get(key)
    centers = np.repeat([[0.0], [6.0], [12.0]], 20, axis=0)
    X = (centers + np.random.default_rng(0).normal(size=(60, 4))).astype(np.float32)
    scope: dict = {"X": X}
    found = doctest.DocTestParser().get_doctest(cls.__doc__, scope, cls.__name__, None, None)
    assert len(found.examples) == 2
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(found, out=told.append, clear_globs=False)
    assert result.failed == 0, "".join(told)
    assert found.globs["labels"].shape == (60,)


INNER = {"network_", "head_", "objective_", "scaling_", "seed_", "input_shape_", "row_shape_"}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_fit_leaves_is_documented(key, blobs):
    model = quick(key).fit(blobs[0])
    left = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    listed = model.__doc__.partition("Attributes\n")[2]
    assert [name for name in sorted(left - INNER) if f"    {name}\n" not in listed] == []
