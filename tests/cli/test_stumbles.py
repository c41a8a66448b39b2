"""Small things that a new user met; each was wrong once.

Where each of them is tested:

| what | test |
| --- | --- |
| texts in a pandas Series | estimator/test_encoding.py::test_texts_of_any_form |
| AnnData into fit | test_one_model.py::test_cells_by_the_names_of_their_genes |
| a DataLoader, a path, a stream | test_what_only_leads_to_rows_is_told_from_rows |
| a device that is not there | test_a_device_that_is_not_there_is_told |
| --hidden a,b | test_a_list_of_words_for_numbers |
| verbose=True, time_budget="3s" | test_verbose_true_and_a_budget_in_words |
| --k | test_k_is_called_clusters |
| True and False in a .csv | test_true_and_false_are_numbers |
| a column that numbers the rows | test_a_column_that_numbers_the_rows_is_told_about |
| rules that contradict | reporting/test_report.py::test_a_rule_asks_*, test_two_columns_* |
| reports of three rows | reporting/test_report.py::test_pages_of_one_group_* |
| errors in Python that advise flags | test_words.py::test_python_is_not_advised_to_use_flags |
| "Did you mean" | test_a_missing_column_is_not_taken_for_one_that_is_wanted_too |
| names of run folders | test_names_of_run_folders |
| notices said twice | test_words.py::test_nothing_is_said_twice_with_a_report |
| the ledger of bench | test_bench_adds_to_a_ledger_of_ones_own |
| the star of select-k | test_select_k_explains_its_star |
| one number of 1e30 | test_a_number_too_large_*, test_a_value_that_hides_all_others_* |
| evaluate --labels folder | test_folders_are_labels_of_images |
| names of genes | test_names_of_genes_are_shown, test_words.py::test_genes_of_cells_* |
| breaks in names, empty cards | reporting/test_report.py::test_numbers_keep_*, browser/ |
| "1 files", "X is 1 texts" | test_words.py::test_one_thing_is_not_called_many |
| other words | test_words.py::test_words_that_were_wrong_*, test_the_choice_of_kith_* |
| paths that are not there | test_words.py::test_a_path_that_is_not_there_* |
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from PIL import Image

import coterie
from conftest import quick
from coterie.cli import main
from coterie.cli.source import short_name
from coterie.data import DataError


def told(capsys, *words) -> str:
    """Standard error of a command that is refused."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


@pytest.fixture
def rows(tmp_path, blobs):
    np.save(tmp_path / "rows.npy", blobs[0])
    return tmp_path / "rows.npy"


def test_a_list_of_words_for_numbers(capsys, rows):
    said = told(capsys, "fit", rows, "--method", "dec", "--clusters", 3, "--hidden", "a,b")
    assert "'a' in 'a,b': give whole numbers, such as 64,32" in said
    assert "2.5" in told(capsys, "fit", rows, "--method", "dec", "--hidden", "2.5,4")


def test_k_is_called_clusters(capsys, rows):
    assert "unknown option --k; did you mean --clusters?" in told(capsys, "fit", rows, "--k", 3)
    assert "did you mean --clusters?" in told(capsys, "fit", rows, "-k", 3)


def test_verbose_true_and_a_budget_in_words(blobs, capsys, steady_clock):
    model = quick("dec", verbose=True, time_budget="30m").fit(blobs[0])
    assert capsys.readouterr() != ("", "") and not model.notes_
    with pytest.raises(ValueError, match="'soon' is not a length of time; write 90, 90s, 5m or 1h"):
        quick("dec", time_budget="soon").fit(blobs[0])
    cut = quick("dec", epochs=1e6, tol=0, time_budget="0.3s").fit(blobs[0])
    assert "time budget" in cut.notes_[0]


def test_true_and_false_are_numbers(tmp_path):
    lines = ["a,b", *(f"{i}.5,{('True', 'FALSE', ' true')[i % 3]}" for i in range(6))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert coterie.load_data(tmp_path / "t.csv").X[:, 1].tolist() == [1, 0, 1, 1, 0, 1]


def test_a_column_that_numbers_the_rows_is_told_about(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [
        f"{100 + i},{v:.3f},{i % 20}" for i, v in zip(rng.permutation(40), rng.normal(size=40))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["key,a,b", *lines]))
    with pytest.warns(UserWarning, match=r"'key' numbers the rows from 100 to 139; .*id_column="):
        coterie.load_data(tmp_path / "t.csv")
    words = ["fit", str(tmp_path / "t.csv"), "--method", "kmeans", "--clusters", "2", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "r")]) == 0
    assert "--id-column key takes it as the rows' names" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coterie.load_data(tmp_path / "t.csv", id_column="key")


def test_python_speaks_python_and_the_command_line_flags(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b c\n1,red\n2,green\n")
    with pytest.raises(DataError) as caught:
        coterie.load_data(tmp_path / "t.csv")
    assert 'drop="b c"' in str(caught.value) and "--" not in str(caught.value)
    with pytest.raises(DataError, match=r'columns="a" does not apply') as caught:
        coterie.load_data(np.eye(3), columns="a")
    assert "--" not in str(caught.value)
    said = told(capsys, "fit", tmp_path / "t.csv", "--clusters", 2)
    assert "--drop 'b c'" in said and "(--id-column)" in said and "drop=" not in said
    np.save(tmp_path / "x.npy", np.eye(3))
    assert "--skip-bad does not apply" in told(
        capsys, "fit", tmp_path / "x.npy", "--skip-bad", "--clusters", 2
    )


def test_a_missing_column_is_not_taken_for_one_that_is_wanted_too(tmp_path):
    (tmp_path / "a.csv").write_text("f03,f05,x\n1,2,3\n4,5,6\n")
    recipe = coterie.load_data(tmp_path / "a.csv").recipe
    (tmp_path / "b.csv").write_text("f03,x\n1,3\n")
    with pytest.raises(DataError, match=r"columns that the model was fitted on: f05\. Add them"):
        coterie.load_data(tmp_path / "b.csv", recipe=recipe)
    (tmp_path / "c.csv").write_text("f03,f5,x\n1,2,3\n")
    with pytest.raises(DataError, match="Did you mean 'f5'"):
        coterie.load_data(tmp_path / "c.csv", recipe=recipe)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("news.jsonl.gz", "news"),
        ("a/b/t.csv", "t"),
        ("photos/", "photos"),
        ("v1.2", "v1.2"),
        (None, "data"),
        ("digits", "digits"),
    ],
)
def test_names_of_run_folders(source, name):
    assert short_name(source) == name


def test_notices_are_printed_once_with_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coterie.reporting.maps.tsne_map", lambda *a, **k: None)
    (tmp_path / "t.csv").write_text("\n".join(f"{i % 2}.5,{i % 3}.25" for i in range(30)))
    words = ["fit", str(tmp_path / "t.csv"), "--method", "kmeans", "--clusters", "2", "--report"]
    assert main([*words, "--out", str(tmp_path / "r")]) == 0
    assert capsys.readouterr().err.count("columns are named 0, 1") == 1


def test_bench_adds_to_a_ledger_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "a clone of the project has its ledger" in told(capsys, "bench", "--show")
    Path("results").mkdir()
    committed = Path("results/ledger.jsonl")
    committed.write_text("")
    words = ["bench", "digits", "--methods", "kmeans:r", "--seeds", "1", "--threads", "1"]
    assert main([*words, "--set", "max_iter=2"]) == 0
    assert committed.read_text() == "" and Path("runs/ledger.jsonl").read_text().count("\n") == 1
    assert "runs/ledger.jsonl" in capsys.readouterr().out
    assert main([*words, "--set", "max_iter=2", "--ledger", str(committed)]) == 0
    assert committed.read_text().count("\n") == 1


def test_select_k_explains_its_star(tmp_path, rows, capsys):
    words = ["select-k", str(rows), "--method", "kmeans", "--from", "2", "--to", "4"]
    assert main([*words, "--out", str(tmp_path / "k")]) == 0
    assert "* the k that this curve prefers" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["kmeans", "dec"])
def test_a_value_that_hides_all_others_is_told_with_its_row(blobs, key):
    X = blobs[0].astype(np.float64)
    X[17, 2] = 1e18
    with pytest.warns(UserWarning, match=r"row 17 \(counted from 0\) holds 1e\+18 in column 2"):
        quick(key).fit(X)
    rare = blobs[0].copy()
    rare[:, 2] = 0
    rare[17, 2] = 1  # a rare mark is no slip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick("kmeans").fit(rare)


def test_folders_are_labels_of_images(tmp_path, capsys):
    for i in range(12):
        path = tmp_path / "p" / ("dark" if i % 2 else "light") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), 20 + i if i % 2 else 220 + i, np.uint8)).save(path)
    (tmp_path / "p" / "readme.md").write_text("one other file")
    words = ["fit", str(tmp_path / "p"), "--method", "kmeans", "--clusters", "2", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "r")]) == 0
    assert "p: left out 1 file of other types" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "r"), "--labels", "folder"]) == 0
    assert "ACC             1.0000" in capsys.readouterr().out
    assert main(["evaluate", "--help"]) == 0
    assert "folder: the class of an image" in " ".join(capsys.readouterr().out.split())


def test_names_of_genes_are_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coterie.reporting.maps.tsne_map", lambda *a, **k: None)
    y = np.repeat([0, 1], 30)
    rates = np.where(np.arange(40) // 20 == y[:, None], 4.0, 0.2)
    X = sp.csr_matrix(np.random.default_rng(0).poisson(rates).astype(np.float32))
    sp.save_npz(tmp_path / "cells.npz", X)
    genes = [f"unc-{i}" for i in range(40)]
    (tmp_path / "genes.txt").write_text("\n".join(genes) + "\n")
    words = ["fit", str(tmp_path / "cells.npz"), "--method", "feature_kmeans", "--clusters", "2"]
    words += ["--names", str(tmp_path / "genes.txt"), "--out", str(tmp_path / "r"), "--report"]
    assert main([*words, "--quiet"]) == 0
    page = (tmp_path / "r" / "report.html").read_text()
    assert re.search(r"high unc-\d+", page) and "feature 3" not in page
    (tmp_path / "genes.txt").unlink()  # the run knows them now
    assert main(["report", str(tmp_path / "r")]) == 0
    assert coterie.load_data(X, names=genes).columns == genes
    with pytest.raises(DataError, match="names= holds 3 names"):
        coterie.load_data(X, names=["a", "b", "c"])


def test_what_only_leads_to_rows_is_told_from_rows(blobs, rows, tmp_path):
    from torch.utils.data import DataLoader

    model = quick("kmeans")
    for name in (str(rows), rows):
        with pytest.raises(ValueError, match=r"X is one name, .*read it first: coterie\.load_data"):
            model.fit(name)
    with pytest.raises(ValueError, match=r"X is a DataLoader.*X\.dataset, or an array"):
        model.fit(DataLoader(list(blobs[0]), batch_size=8))
    with pytest.raises(ValueError, match=r"stream of rows.*np\.stack\(list\(X\)\)"):
        model.fit(row for row in blobs[0])
    with pytest.raises(ValueError, match=r"model\.recipe_\), or give a list, \['new\.png'\]"):
        model.fit(blobs[0]).predict("new.png")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_a_device_that_is_not_there_is_told(capsys, rows, blobs):
    with pytest.raises(ValueError, match=r"device='cuda' is not available; use 'auto', or .*'cpu'"):
        quick("dec", device="cuda").fit(blobs[0])
    with pytest.raises(TypeError, match="did you mean device"):
        coterie.DEC(3, gpu=True)
    assert "use 'auto'" in told(capsys, "fit", rows, "--clusters", "3", "--device", "cuda")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_number_too_large_is_refused_with_its_place(blobs, form):
    X = blobs[0].astype(np.float64)
    X[17, 2] = 1e30
    with pytest.raises(ValueError, match=r"1e\+30 in row 17, column 2 \(counted from 0\); drop"):
        quick("kmeans").fit(form(X))
    images = np.ones((30, 4, 4), np.float32)
    images[5, 1, 3] = np.nan
    with pytest.raises(ValueError, match="nan in row 5, pixel 1, 3"):
        quick("kmeans").fit(images)


def test_a_saved_model_is_no_run(blobs, capsys, tmp_path):
    quick("kmeans").fit(blobs[0]).save(tmp_path / "m")
    said = told(capsys, "report", tmp_path / "m")
    assert "holds a saved model, not a run" in said and "predict takes it" in said


def test_a_table_is_no_image(tmp_path, capsys):
    for i in range(4):
        Image.fromarray(np.full((6, 5), 60 * i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "broken.png").write_text("no image")
    words = ["fit", str(tmp_path), "--method", "kmeans", "--clusters", "2", "--quiet", "--skip-bad"]
    assert main([*words, "--out", str(tmp_path / "r")]) == 0
    assert "left out 1 unreadable image: broken.png" in capsys.readouterr().err
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    said = told(capsys, "predict", tmp_path / "r", tmp_path / "t.csv")
    assert "t is a table of 2 columns, the model was fitted on images of 6x5" in said
