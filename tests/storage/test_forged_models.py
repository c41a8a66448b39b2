"""Models whose digest is right and whose description is not; files beside them that are damaged."""

import json

import numpy as np
import pytest

from conftest import quick
from coterie import load
from coterie.cli import main
from coterie.storage.atomic import TEMP
from coterie.storage.seals import seal
from coterie.storage.tensors import StateError


def set_field(name, value):
    def change(about):
        about["params"][name] = about["fitted"]["settings"]["fields"][name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_field("hidden", [10**30]),
        set_field("hidden", "x"),
        set_field("hidden", [-1]),
        lambda about: about.pop("fitted"),
        lambda about: about.update(fitted=[]),
        lambda about: about["fitted"]["settings"].update(facts=None),
        lambda about: about["fitted"]["settings"].update(shape=[2**62]),
        lambda about: about["fitted"].update(encoding={"x": 1}),
    ],
)
def test_a_description_that_cannot_be_built_is_named(change, blobs, tmp_path):
    quick("dec").fit(blobs[0]).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    about = json.loads(path.read_text())
    about.pop("seal")
    change(about)
    path.write_text(json.dumps(about | {"seal": seal(about)}))
    with pytest.raises(StateError, match="describes no model that can be built"):
        load(tmp_path / "m")


def test_damaged_neighbours_are_told_and_killed_predictions_swept(blobs, tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs[0])
    out, data = str(tmp_path / "run"), str(tmp_path / "x.npy")
    words = ["fit", data, "--method", "kith", "--clusters", "3", "--no-baseline", "--quiet"]
    assert main([*words, "--epochs", "1", "--out", out]) == 0
    (tmp_path / f"{TEMP}dead").write_bytes(b"half")
    again = ["predict", out, data, "--overwrite", "--out", str(tmp_path / "labels.csv")]
    assert main(again) == 0 and not (tmp_path / f"{TEMP}dead").exists()
    near = tmp_path / "run" / "neighbours.npy"
    content = near.read_bytes()
    for at in (3, 30, 70, len(content) - 3):
        near.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert main(again) == 2, at
        assert "neighbours.npy" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [(90, 0, 1), (90, 4, 0), (90, 3, 3, 0)])
def test_images_without_pixels_are_named(shape):
    with pytest.raises(ValueError, match="0"):
        quick("kmeans", 2, scale="standard").fit(np.zeros(shape))
