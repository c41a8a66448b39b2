"""Workbooks, Arrow files, zips, folders of texts, sets of other libraries; columns made numbers."""

import csv
import gzip
import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import feather

import coterie
from coterie import KMeans, load_data
from coterie.cli import main
from coterie.data import Recipe
from coterie.data.errors import DataError

TABLE = {"a": [1.5, 2.5, 4.0], "b": [1, 2, 3]}


def numbers(data):
    return np.asarray(data.X).tolist()


# -- files ------------------------------------------------------------------------------------
def workbook(path, rows):
    openpyxl = pytest.importorskip("openpyxl", reason="extra `xlsx`")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_workbooks(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["a", "b"], *zip(*TABLE.values())])
    data = load_data(path)
    assert numbers(data) == [[1.5, 1], [2.5, 2], [4, 3]] and data.columns == ["a", "b"]
    assert numbers(load_data(path, recipe=data.recipe)) == numbers(data)
    workbook(path, [["a", "b"], [1, "x"], [None, "y"]])
    with pytest.raises(DataError, match=r"'a': 1 of 2 cells missing(?s:.)*'b': 2 of 2 cells with"):
        load_data(path)
    workbook(path, [["a", "a"], [1, 2]])
    with pytest.raises(DataError, match="column 'a' more than once"):
        load_data(path)
    workbook(path, [["a", "b"]])
    with pytest.raises(DataError, match="needs a header and rows"):
        load_data(path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DataError, match=r"cannot read .* as an Excel workbook"):
        load_data(path)


def test_arrow_files(tmp_path):
    table = pa.table(TABLE)
    feather.write_feather(table, tmp_path / "t.feather")
    stream = str(tmp_path / "t.arrow")
    with pa.OSFile(stream, "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table)
    for name in ("t.feather", "t.arrow"):
        assert numbers(load_data(tmp_path / name)) == [[1.5, 1], [2.5, 2], [4, 3]]
    (tmp_path / "t.arrow").write_bytes(b"no arrow")
    with pytest.raises(DataError, match=r"cannot read .* as an Arrow file"):
        load_data(tmp_path / "t.arrow")


def test_packed_json_lines(tmp_path):
    with gzip.open(tmp_path / "t.jsonl.gz", "wt") as file:
        file.write("\n".join(json.dumps({"text": t}) for t in ("red apple", "green pear")))
    assert load_data(tmp_path / "t.jsonl.gz").texts == ["red apple", "green pear"]


def test_zips_of_images(tmp_path):
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as packed:
        for name in ("a/1.png", "b/2.png", "../3.png", "__MACOSX/a/1.png", "notes.txt"):
            Image.new("L", (4, 4), 10).save(tmp_path / "x.png")
            packed.write(tmp_path / "x.png", name)
    data = load_data(tmp_path / "pictures.zip", label_column="folder")
    assert data.X.shape == (2, 4, 4) and sorted(data.ids) == ["a/1.png", "b/2.png"]
    assert data.label_names == ["a", "b"]
    assert not (tmp_path.parent / "3.png").exists()  # a name cannot leave the folder
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as packed:
        packed.writestr("a.csv", "1,2")
    with pytest.raises(DataError, match="holds no images"):
        load_data(tmp_path / "none.zip")
    (tmp_path / "none.zip").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="as a zip file"):
        load_data(tmp_path / "none.zip")


def test_folders_of_texts(tmp_path):
    for name, text in {"x/1.txt": "red apple", "y/2.txt": "green\npear", ".z/3.txt": "no"}.items():
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text(text)
    data = load_data(tmp_path / "t", label_column="folder")
    assert data.ids == ["x/1.txt", "y/2.txt"] and data.texts == ["red apple", "green\npear"]
    assert data.label_names == ["x", "y"] and data.kind == "text"
    with pytest.raises(DataError, match="names no classes of texts"):
        load_data(tmp_path / "t", label_column="kind")


# -- sets of other libraries ------------------------------------------------------------------
class HuggingFace:
    """What coterie uses of a data set of the library `datasets`."""

    column_names = ("a", "b")

    def with_format(self, name):
        assert name == "arrow"
        return _Sliced()


class _Sliced:
    def __getitem__(self, rows):
        return pa.table(TABLE)


HuggingFace.__module__ = "datasets.arrow_dataset"


class Splits(dict):
    column_names = ()


Splits.__module__ = "datasets.dataset_dict"


def test_hugging_face_sets():
    assert numbers(load_data(HuggingFace())) == [[1.5, 1], [2.5, 2], [4, 3]]
    with pytest.raises(DataError, match=r"dict of splits \(train\)"):
        load_data(Splits(train=1))


class Pairs(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 2


def test_torch_sets():
    X = torch.rand(20, 5, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(load_data(Pairs(X)).X, X.numpy())
    model = KMeans(2, random_state=0).fit(Pairs(X))
    assert np.array_equal(model.labels_, KMeans(2, random_state=0).fit(X).labels_)
    with pytest.raises(DataError, match="rows of 2 shapes"):
        load_data(Pairs([torch.ones(2), torch.ones(3)]))


# -- columns that are not numbers -------------------------------------------------------------
ROWS = [
    ["colour", "born", "size", "ok"],
    ["red", "1970-01-02", "1", "True"],
    ["blue", "1970-01-03T12:00", "", "false"],
    ["red", "1969-12-31", "5", "true"],
    ["green", "", "2", "False"],
]
ALL = {"categorical": "one-hot", "dates": "numbers", "missing": "median"}


def table(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_words_dates_and_gaps_become_numbers_and_do_so_again(tmp_path):
    path = table(tmp_path / "t.csv", ROWS)
    data = load_data(path, **ALL)
    names = ["colour=blue", "colour=green", "colour=red", "born", "size", "ok"]
    assert data.columns == names
    assert numbers(data) == [
        [0, 0, 1, 1, 1, 1],
        [1, 0, 0, 2.5, 2, 0],
        [0, 0, 1, -1, 5, 1],
        [0, 1, 0, 1, 2, 0],
    ]
    data.recipe.save(tmp_path / "r")
    recipe = Recipe.load(tmp_path / "r")
    new = [
        [ROWS[0][i] for i in (3, 1, 0, 2)],
        ["true", "", "pink", "-"],
        ["", "1970-01-01", "", "4"],
    ]
    notes = []
    again = load_data(table(tmp_path / "n.csv", new), recipe=recipe, notice=notes.append)
    assert numbers(again) == [[0, 0, 0, 1, 2, 1], [0, 0, 0, 0, 4, 0.5]]
    assert "has 1 values that the fit has not seen (pink)" in notes[0]


def test_each_choice_alone_and_frames(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"c": ["x", "y"], "v": [1.0, 2.0]})
    data = load_data(frame, categorical="one-hot")
    assert numbers(data) == [[1, 0, 1], [0, 1, 2]] and data.columns == ["c=x", "c=y", "v"]
    times = pd.DataFrame({"t": pd.to_datetime(["1970-01-02", "1970-01-04"])})
    assert numbers(load_data(times, dates="numbers")) == [[1], [3]]
    gaps = pd.DataFrame({"v": [1.0, np.nan, 4.0, 10.0]})
    assert numbers(load_data(gaps, missing="median")) == [[1], [4], [4], [10]]


def test_what_is_not_asked_for_is_still_refused(tmp_path):
    path = table(tmp_path / "t.csv", ROWS)
    with pytest.raises(DataError, match=r'categorical="one-hot"(?s:.)*missing="median"'):
        load_data(path)
    with pytest.raises(DataError, match="column 'size': 1 of 4 cells missing"):
        load_data(path, categorical="one-hot", dates="numbers")
    with pytest.raises(DataError, match="column 'colour': 4 of 4 cells with text"):
        load_data(path, dates="numbers", missing="median")
    with pytest.raises(DataError, match=r"missing=.mean.*there is: median"):
        load_data(path, missing="mean")
    many = table(tmp_path / "m.csv", [["name", "v"], *([f"n{i}", i] for i in range(300))])
    with pytest.raises(DataError, match=r"300 different values, too many.*id_column="):
        load_data(many, categorical="one-hot")


def test_prepared_tables_end_to_end(tmp_path, capsys):
    rows = [
        ["kind", "size"],
        *([("big", "small")[i % 2], 10 * (i % 2) + i / 50] for i in range(30)),
    ]
    rows[5][1] = ""
    path, run = str(table(tmp_path / "t.csv", rows)), str(tmp_path / "run")
    fit = ["fit", path, "--method", "kmeans", "--clusters", "2", "--out", run, "--quiet"]
    assert main([*fit, "--categorical", "one-hot", "--missing", "median", "--report"]) == 0
    assert main(["predict", run, path, "--out", str(tmp_path / "p.csv")]) == 0
    want = (tmp_path / "run" / "labels.csv").read_text()
    assert (tmp_path / "p.csv").read_text() == want
    assert "kind=big" in (tmp_path / "run" / "report.html").read_text()
    assert coterie.load(run).n_features_in_ == 3
