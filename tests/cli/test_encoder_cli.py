"""Photographs and texts with a pretrained encoder, from the command line and back."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import coterie
from coterie.cli import main
from encoders.models import bert_folder, onnx_means


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))


def photos(folder, n=16):
    """Reddish and bluish photographs of different sizes, by turns."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for i in range(n):
        pixels = rng.integers(0, 60, (20 + i, 30, 3), dtype=np.uint8)
        pixels[..., 0 if i % 2 else 2] += 180
        Image.fromarray(pixels).save(folder / f"{i:02}.png")
    return folder


def labels_of(path):
    with open(path, newline="") as file:
        return {row["id"]: row["label"] for row in csv.DictReader(file)}


PREDICT = """
import sys
from coterie.cli import main
sys.exit(main(["predict", sys.argv[1], sys.argv[2], "--out", sys.argv[3]]))
"""


def test_a_folder_of_photographs_end_to_end(tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    encoder, run = onnx_means(tmp_path / "m.onnx", side=12), str(tmp_path / "run")
    data = photos(tmp_path / "photos")
    common = ["--clusters", "2", "--method", "kmeans", "--encoder", str(encoder), "--quiet"]
    assert main(["fit", str(data), "--out", run, "--report", *common]) == 0
    found = labels_of(f"{run}/labels.csv")
    sides = {found[f"{i:02}.png"] for i in range(0, 16, 2)}
    assert len(sides) == 1 and len(set(found.values())) == 2
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script" in page and "12" in page
    # new rows in a fresh process
    (tmp_path / "cache").rename(tmp_path / "gone")
    out = str(tmp_path / "new.csv")
    subprocess.run([sys.executable, "-c", PREDICT, run, str(data), out], check=True)
    assert labels_of(out) == found
    # the encoder goes, and comes back changed
    encoder.rename(tmp_path / "away.onnx")
    assert main(["predict", run, str(data)]) == 2
    assert "is not there; put it back" in capsys.readouterr().err
    onnx_means(encoder, side=20)
    assert main(["predict", run, str(data)]) == 2
    assert "is not the one that the model was fitted with" in capsys.readouterr().err


def test_texts_end_to_end(tmp_path, capsys):
    pytest.importorskip("tokenizers")
    folder, run = bert_folder(tmp_path / "bert"), str(tmp_path / "run")
    lines = ["red dog runs", "red red dog", "blue bird sings", "blue bird", "green cat"] * 4
    data = tmp_path / "texts.jsonl"
    data.write_text("\n".join(json.dumps({"id": f"t{i}", "text": t}) for i, t in enumerate(lines)))
    fit = ["fit", str(data), "--clusters", "2", "--method", "kmeans", "--out", run, "--quiet"]
    assert main([*fit, "--encoder", str(folder), "--report"]) == 0
    found = labels_of(f"{run}/labels.csv")
    assert main(["predict", run, str(data), "--out", str(tmp_path / "p.csv")]) == 0
    assert labels_of(tmp_path / "p.csv") == found
    model = coterie.load(run)
    assert [str(v) for v in model.predict(lines)] == list(found.values())
    assert np.load(f"{run}/embedding.npy").shape == (20, 8)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "blue bird" in page and "a list of strings" in page


def test_the_model_of_a_run_on_texts_takes_texts(tmp_path):
    lines = ["red dog runs", "red red dog", "blue bird sings", "blue bird", "green cat"] * 4
    (tmp_path / "t.txt").write_text("\n".join(lines))
    run = str(tmp_path / "run")
    fit = ["fit", str(tmp_path / "t.txt"), "--method", "kmeans", "--clusters", "2", "--out", run]
    assert main([*fit, "--quiet"]) == 0
    found = list(labels_of(f"{run}/labels.csv").values())
    assert [str(label) for label in coterie.load(run).predict(lines)] == found


def test_a_model_behind_an_encoder_is_not_exported(tmp_path):
    from coterie.export import ExportError, export_onnx

    X = np.random.default_rng(0).normal(size=(20, 4))
    model = coterie.KMeans(2, random_state=0, encoder=lambda rows: rows[:, :3]).fit(X)
    with pytest.raises(ExportError, match="embedded by the encoder"):
        export_onnx(model, tmp_path / "m.onnx")


def test_errors_name_the_way_out(tmp_path, capsys):
    data = photos(tmp_path / "photos", 4)
    fit = ["fit", str(data), "--clusters", "2", "--out", str(tmp_path / "run")]
    assert main([*fit, "--encoder", "imagee"]) == 2
    assert "nor a known name" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
