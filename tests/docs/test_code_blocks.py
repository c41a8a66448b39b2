"""Every code block of README and of the site runs.

Blocks marked ``python`` are executed in one namespace for each page, blocks marked ``sh`` hold
coterie commands. Cells of tutorials (``{code-cell}``) run when the site is built. A block that
cannot run here has a comment before it: <!-- not run: reason -->. Each page has a folder of its
own with the same small made-up inputs.
"""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from coterie import cli

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "guide").glob("*.md"),
    *(ROOT / "docs" / "methods").glob("*.md"),
    *(ROOT / "docs" / "tutorials").glob("*.md"),
]
FENCE = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^(`{3,}|:{3,})(.*?)\n(.*?)^\2 *$", re.M | re.S)
MOST_NOT_RUN = 24  # blocks in all; commands of studies need data sets and hours


def blocks(path: Path) -> list[tuple[str, str, bool]]:
    """Language, text and whether it is to be run, of each fenced block."""
    text = path.read_text("utf-8")
    return [(m[3].strip(), m[4], m[1] is None) for m in FENCE.finditer(text)]


def runnable(path: Path) -> bool:
    return any(lang in ("python", "sh") and run for lang, _, run in blocks(path))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with the files that the pages speak of."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 3
    for name, count in (("photos", 24), ("new_photos", 3)):
        (folder / name).mkdir()
        for i in range(count):
            picture = rng.integers(0, 60, (32, 32, 3), dtype=np.uint8)
            picture[8:24, 8:24, i % 3] += 180
            Image.fromarray(picture).save(folder / name / f"{i:02d}.png")
    numbers = (rng.normal(0, 1, (60, 3)) + 6 * np.eye(3)[kind]).round(3)
    lines = [f"c{i},{a:.3f},{b:.3f},{c:.3f},{'AB'[i % 2]}" for i, (a, b, c) in enumerate(numbers)]
    head = "name,age,income,visits,city\n"
    (folder / "customers.csv").write_text(head + "\n".join(lines) + "\n")
    (folder / "new_customers.csv").write_text(head + "\n".join(lines[:6]) + "\n")
    rows = ["a,b,c", *(",".join(map(str, row)) for row in numbers)]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    (folder / "new_rows.csv").write_text("\n".join(rows[:7]) + "\n")
    words = ("goal match team cup", "rocket orbit moon crew", "bank price loan rate")
    texts = [" ".join(rng.choice(words[k].split(), 6)) for k in kind]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    (folder / "news.csv").write_text("body\n" + "\n".join(texts) + "\n")
    np.save(folder / "big.npy", numbers.astype(np.float32))
    cells().write_h5ad(folder / "cells.h5ad")
    given = ["rows.csv", "--method", "kmeans", "--clusters", "3", "--quiet"]
    assert cli.main(["fit", *(str(folder / w) if w == "rows.csv" else w for w in given),
                     "--out", str(folder / "runs" / "demo-small")]) == 0  # fmt: skip
    return folder


def cells():
    import anndata

    rng = np.random.default_rng(1)
    counts = rng.poisson(1 + 8 * (np.arange(30) % 3 == np.arange(60)[:, None] % 3))
    adata = anndata.AnnData(counts.astype(np.float32))
    adata.obsm["X_pca"] = rng.normal(0, 1, (60, 8)).astype(np.float32)
    return adata


def names() -> dict:
    """What blocks of Python take for granted: data of a reader."""
    rng = np.random.default_rng(2)
    kind = np.arange(60) % 3
    images = rng.random((60, 12, 12), dtype=np.float32) / 4
    images[:, 3:9, 3:9] += kind[:, None, None] / 4
    words = ("goal match team cup", "rocket orbit moon crew", "bank price loan rate")
    vectors = rng.normal(0, 0.3, (60, 64)) + np.eye(64)[kind]
    return {
        "X": (rng.normal(0, 1, (60, 5)) + 6 * np.eye(5)[kind]).astype(np.float32),
        "images": images,
        "new_images": images[:4],
        "photos": rng.random((12, 32, 32, 3), dtype=np.float32),
        "new_photos": rng.random((3, 32, 32, 3), dtype=np.float32),
        "texts": [" ".join(rng.choice(words[k].split(), 6)) for k in kind],
        "vectors": (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32),
        "adata": cells(),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [p for p in SOURCES if runnable(p)], ids=name_of)
def test_blocks_run(path, inputs, tmp_path, monkeypatch, capsys):
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    known = names()
    for lang, text, run in blocks(path):
        if run and lang == "python":
            exec(compile(text, name_of(path), "exec"), known)
        elif run and lang == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                command, *words = shlex.split(line, comments=True) or ["coterie", "--help"]
                assert command == "coterie", f"{line!r} is no coterie command"
                code = cli.main(words)
                assert code == 0, f"{line!r} ended with {code}: {capsys.readouterr().err}"


def test_no_block_goes_unnoticed():
    """Blocks are fenced and say their language; few of them are not run."""
    not_run = 0
    for path in SOURCES:
        text = path.read_text("utf-8")
        for lang, _, run in blocks(path):
            known = lang in ("python", "sh", "text", "toml") or lang.startswith("{")
            assert known, f"{name_of(path)}: a block is marked {lang!r}"
            not_run += lang in ("python", "sh") and not run
        bare = FENCE.sub("", text)
        indented = re.findall(r"\n\n    (\S[^\n]*)", bare)
        lists = re.search(r"^\s*[-*\d]", bare)
        assert not indented or lists, (
            f"{name_of(path)}: fence the block that begins {indented[0]!r}"
        )
    assert not_run <= MOST_NOT_RUN


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
