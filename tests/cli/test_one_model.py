"""A run is a model is a run: the command line and Python label the same raw rows alike.

A fit on the command line is loaded in a fresh process and predicts raw rows there; a fit in Python
is saved and used by `coterie predict`. Labels are compared row by row.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from PIL import Image

import coterie
from conftest import KEYS, quick
from coterie.cli import main
from coterie.cli.method_args import flag_name
from coterie.data import DataError

SOME = [key for key in ("kmeans", "dec", "kith") if key in KEYS]  # reading is the same for all
WORDS = ["cat dog mat sleep purr", "stock share fall market bank", "rain wind snow cloud sun"]


def flags(key: str) -> list[str]:
    """The settings of `quick` as a user would write them."""
    tiny = coterie.list_methods()[key].tiny.items()
    as_text = {name: ",".join(map(str, v)) if isinstance(v, tuple) else str(v) for name, v in tiny}
    return [word for name, value in as_text.items() for word in (flag_name(name), value)]


def fit(key: str, data, out: Path, *more: str) -> Path:
    words = ["fit", str(data), "--method", key, "--clusters", "3", "--out", str(out), "--quiet"]
    assert main([*words, "--no-baseline", *flags(key), *more]) == 0
    return out


def told(folder, data, *more: str) -> list[int]:
    """Labels by `coterie predict`."""
    out = Path(folder).with_suffix(".csv")
    assert main(["predict", str(folder), str(data), "--out", str(out), "--overwrite", *more]) == 0
    with open(out, newline="") as file:
        return [int(row["label"]) for row in csv.DictReader(file)]


def in_a_fresh_process(code: str, *args) -> list:
    """What a program prints as JSON; warnings are errors there."""
    command = [sys.executable, "-W", "error::UserWarning", "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def groups(n=60):
    return np.random.default_rng(0).permutation(np.arange(n) % 3)


# -- tables -------------------------------------------------------------------------------------
TABLE = """
import json, sys, coterie, pandas as pd
new = pd.read_csv(sys.argv[1])
found = {}
for folder in sys.argv[2:]:
    model = coterie.load(folder)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    found[folder] = model.predict(new).tolist()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table, and new rows with its columns shuffled, and two more among them."""
    folder, rng = tmp_path_factory.mktemp("table"), np.random.default_rng(1)
    shift = np.array([[0, 20, -5], [9, -20, 60], [-9, 0, 5]])
    old = pd.DataFrame(rng.normal(size=(60, 3)) + shift[groups()], columns=[*"abc"])
    new = pd.DataFrame(rng.normal(size=(30, 3)) + shift[groups(30)], columns=[*"abc"])
    new = new.assign(x=1.5, y=2.5)[[*"cxaby"]]
    for name, frame in (("old", old), ("new", new)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_every_method_on_a_table_with_its_columns_shuffled(table, tmp_path):
    runs = [fit(key, table / "old.csv", tmp_path / key) for key in KEYS]
    found = in_a_fresh_process(TABLE, table / "new.csv", *runs)
    new, old = pd.read_csv(table / "new.csv"), pd.read_csv(table / "old.csv")
    for run in runs:
        labels = told(run, table / "new.csv")
        assert found[str(run)] == labels, run.name
        assert told(run, table / "old.csv") == coterie.load(run).predict(old).tolist()
    one = coterie.load(runs[0])
    labels = one.predict(new).tolist()
    assert one.predict(pl.from_pandas(new)).tolist() == labels
    assert one.predict(coterie.load_data(table / "new.csv")).tolist() == labels  # read on its own
    assert one.predict(new[[*"abc"]].to_numpy()).tolist() == labels  # in the order of the fit


def test_missing_columns_are_named(table, tmp_path):
    model = coterie.load(fit("kmeans", table / "old.csv", tmp_path / "r"))
    new = pd.read_csv(table / "new.csv")
    with pytest.raises(DataError, match=r"lacks 1 of the 3 columns .*fitted on: b\."):
        model.predict(new.drop(columns="b"))
    (tmp_path / "less.csv").write_text("c,a\n1,2\n3,4\n")
    with pytest.raises(DataError, match=r"less lacks 1 of the 3 columns .*fitted on: b\."):
        model.predict(coterie.load_data(tmp_path / "less.csv"))


@pytest.mark.parametrize("key", SOME)
def test_a_table_fitted_in_python(key, table, tmp_path):
    old, new = pd.read_csv(table / "old.csv"), pd.read_csv(table / "new.csv")
    model = quick(key).fit(old)
    model.save(tmp_path / "m")
    assert told(tmp_path / "m", table / "old.csv") == model.labels_.tolist()
    assert told(tmp_path / "m", table / "new.csv") == model.predict(new[[*"abc"]]).tolist()
    read = quick(key).fit(coterie.load_data(table / "old.csv"))
    read.save(tmp_path / "read")
    again = coterie.load(tmp_path / "read")
    assert told(tmp_path / "read", table / "new.csv") == again.predict(new).tolist()
    assert again.predict(new).tolist() == read.predict(new).tolist()


def test_words_dates_and_gaps(tmp_path):
    """What a run made of a table's cells, a loaded run makes of a frame's."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kind": [("oak", "elm", "ash")[g] for g in groups()],
            "size": rng.normal(size=60) + 9 * groups(),
            "day": [f"20{10 + g}-03-{d:02}" for g, d in zip(groups(), rng.integers(1, 29, 60))],
        }
    )
    frame.loc[7, "size"] = np.nan
    frame.to_csv(tmp_path / "trees.csv", index=False)
    more = ["--categorical", "one-hot", "--dates", "numbers", "--missing", "median"]
    run = fit("kmeans", tmp_path / "trees.csv", tmp_path / "r", *more)
    model = coterie.load(run)
    assert list(model.feature_names_in_) == ["kind", "size", "day"]
    shuffled = frame[["day", "size", "kind"]]
    assert model.predict(shuffled).tolist() == told(run, tmp_path / "trees.csv")
    with pytest.raises(DataError, match=r"not prepared as .*load_data\(source, recipe=model"):
        model.predict(coterie.load_data(frame[["size"]].fillna(0)))


# -- images -------------------------------------------------------------------------------------
IMAGES = """
import json, sys, coterie
from pathlib import Path
from PIL import Image
paths = sorted(Path(sys.argv[1]).iterdir())
found = {}
for folder in sys.argv[2:]:
    model = coterie.load(folder)
    given = [Image.open(p) for p in paths], [str(p) for p in paths], paths
    found[folder] = [model.predict(rows).tolist() for rows in given]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Colour images in folders: old ones of one size, new ones of several, grey among them."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(2)
    for name, sizes in (("old", [(12, 12)]), ("new", [(12, 12), (30, 20), (9, 13)])):
        (folder / name).mkdir()
        for i, g in enumerate(groups(48 if name == "old" else 24)):
            height, width = sizes[i % len(sizes)]
            pixels = rng.integers(0, 60, (height, width, 3), dtype=np.uint8)
            pixels[..., g] += 190
            image = Image.fromarray(pixels)
            if name == "new" and i % 5 == 0:
                image = image.convert("L")
            image.save(folder / name / f"{i:02}.png")
    return folder


def test_images_and_their_paths(photos, tmp_path):
    runs = [fit(key, photos / "old", tmp_path / key) for key in SOME]
    with pytest.warns(UserWarning, match="resized to 12x12"):
        coterie.load(runs[0]).predict(sorted((photos / "new").iterdir()))
    code = "import warnings; warnings.simplefilter('ignore')\n" + IMAGES  # of sizes and colours
    found = in_a_fresh_process(code, photos / "new", *runs)
    for run in runs:
        assert found[str(run)] == [told(run, photos / "new")] * 3, run.name


@pytest.mark.parametrize("key", SOME)
@pytest.mark.filterwarnings("ignore:.*(resized to|read in colour|read as colour)")
def test_images_fitted_in_python(key, photos, tmp_path):
    paths = sorted((photos / "old").iterdir())
    from_paths = quick(key).fit(paths)
    from_images = quick(key).fit([Image.open(path) for path in paths])
    from_array = quick(key).fit(np.stack([np.asarray(Image.open(path)) for path in paths]))
    for i, model in enumerate((from_paths, from_images, from_array)):
        assert np.array_equal(model.labels_, from_array.labels_)
        model.save(tmp_path / str(i))
        assert told(tmp_path / str(i), photos / "old") == model.labels_.tolist()
        new = [Image.open(path) for path in sorted((photos / "new").iterdir())]
        assert told(tmp_path / str(i), photos / "new") == model.predict(new).tolist()


# -- texts --------------------------------------------------------------------------------------
TEXTS = """
import json, sys, coterie
texts = open(sys.argv[1]).read().splitlines()
print(json.dumps({f: coterie.load(f).predict(texts).tolist() for f in sys.argv[2:]}))
"""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(3)
    for name, n in (("old", 60), ("new", 30)):
        lines = [" ".join(rng.choice(WORDS[g].split(), 6)) for g in groups(n)]
        (folder / f"{name}.txt").write_text("\n".join(lines))
    return folder


def test_texts(texts, tmp_path):
    runs = [fit(key, texts / "old.txt", tmp_path / key) for key in SOME]
    found = in_a_fresh_process(TEXTS, texts / "new.txt", *runs)
    for run in runs:
        labels = told(run, texts / "new.txt")
        assert found[str(run)] == labels, run.name
        own_words = coterie.load_data(texts / "new.txt")
        assert coterie.load(run).predict(own_words).tolist() == labels


@pytest.mark.parametrize("key", SOME)
def test_texts_fitted_in_python(key, texts, tmp_path):
    lines = {name: (texts / f"{name}.txt").read_text().splitlines() for name in ("old", "new")}
    model = quick(key).fit(lines["old"])
    model.save(tmp_path / "m")
    assert told(tmp_path / "m", texts / "old.txt") == model.labels_.tolist()
    assert told(tmp_path / "m", texts / "new.txt") == model.predict(lines["new"]).tolist()


# -- vectors and counts -------------------------------------------------------------------------
NUMBERS = """
import json, sys, coterie, numpy as np, scipy.sparse as sp
path = sys.argv[1]
rows = np.load(path) if path.endswith("npy") else sp.load_npz(path)
print(json.dumps({f: coterie.load(f).predict(rows).tolist() for f in sys.argv[2:]}))
"""


def numbers(kind: str, n: int):
    rng, y = np.random.default_rng(n), groups(n)
    if kind == "vectors":
        X = rng.normal(size=(n, 70)) + 2 * np.eye(3, 70)[y] * np.sqrt(70)
        return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    rates = np.where(np.arange(45) // 15 == y[:, None], 6.0, 0.3)
    return sp.csr_matrix(rng.poisson(rates).astype(np.float32))


@pytest.mark.parametrize("kind", ["vectors", "counts"])
def test_vectors_and_counts(kind, tmp_path):
    end = "npy" if kind == "vectors" else "npz"
    for name, n in (("old", 60), ("new", 30)):
        write = np.save if kind == "vectors" else sp.save_npz
        write(tmp_path / f"{name}.{end}", numbers(kind, n))
    runs = [fit(key, tmp_path / f"old.{end}", tmp_path / key) for key in SOME]
    found = in_a_fresh_process(NUMBERS, tmp_path / f"new.{end}", *runs)
    for key, run in zip(SOME, runs):
        labels = told(run, tmp_path / f"new.{end}")
        assert found[str(run)] == labels, key
        model = quick(key).fit(numbers(kind, 60))
        model.save(tmp_path / f"{key}-saved")
        assert told(tmp_path / f"{key}-saved", tmp_path / f"new.{end}") == labels


def test_cells_by_the_names_of_their_genes(tmp_path):
    anndata = pytest.importorskip("anndata")
    old, new = (anndata.AnnData(numbers("counts", n)) for n in (60, 30))
    for adata in (old, new):
        adata.var_names = [f"gene{i}" for i in range(45)]
    new = new[:, np.random.default_rng(0).permutation(45)].copy()
    for name, adata in (("old", old), ("new", new)):
        adata.write_h5ad(tmp_path / f"{name}.h5ad")
    run = fit("kmeans", tmp_path / "old.h5ad", tmp_path / "r")
    labels = told(run, tmp_path / "new.h5ad")
    assert coterie.load(run).predict(new).tolist() == labels
    model = quick("kmeans").fit(old)
    assert model.predict(new).tolist() == labels
    model.save(tmp_path / "m")
    assert told(tmp_path / "m", tmp_path / "new.h5ad") == labels


@pytest.mark.parametrize("name", ["pendigits", "worm_neuron_cells"])
def test_raw_rows_of_a_named_set(name, made_up_sets, tmp_path):
    """Rows in the unit of the source, and rows that `load_data` has made, are told apart."""
    from coterie.data.sets.named import CATALOGUE, _raw

    folder = made_up_sets(name)
    run = fit("kmeans", name, tmp_path / "r", "--data-dir", str(folder))
    model, data = coterie.load(run), coterie.load_data(name, data_dir=folder)
    raw = _raw(CATALOGUE[name], folder).values
    assert model.predict(raw).tolist() == model.predict(data.X).tolist() == model.labels_.tolist()
    assert model.predict(data).tolist() == model.labels_.tolist()


def test_a_loaded_run_has_the_neighbours(table, tmp_path):
    if "kith" not in KEYS:
        pytest.skip("of Kith")
    run = fit("kith", table / "old.csv", tmp_path / "r")
    near = coterie.load(run).neighbours_
    assert near.shape == (60, 5) and np.array_equal(near, np.load(run / "neighbours.npy"))


def test_a_folder_that_says_nothing_of_its_rows(blobs, tmp_path, capsys):
    model = quick("kmeans").fit(blobs[0])
    del model.recipe_
    model.save(tmp_path / "m")
    np.save(tmp_path / "x.npy", blobs[0])
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "x.npy")]) == 2
    assert "does not say how its rows were read" in capsys.readouterr().err
