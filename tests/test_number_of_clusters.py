"""How many clusters: the curves, the vote, the command."""

import csv

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from coterie import cli
from coterie.number_of_clusters import Curves, merge_curve, study
from coterie.registry import get


def blobs(centers=4):
    corners = 12 * np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]])[:centers]
    return make_blobs(240, 3, centers=corners, cluster_std=0.8, random_state=0)[0]


def make(k, seed):
    return get("kmeans")(n_clusters=k, random_state=seed)


def test_curves_agree_on_clear_blobs():
    found = study(make, blobs(), list(range(2, 8)), (0, 1))
    assert found.votes["silhouette"] == 4 and found.votes["merge"] == 4
    assert found.answer == 4 and found.verdict().startswith("4 clusters")
    assert all(len(values) == 6 for values in found.curves.values())


def test_noise_has_no_clear_answer():
    noise = np.random.default_rng(0).uniform(size=(300, 6)).astype(np.float32)
    found = study(make, noise, list(range(2, 10)), (0, 1))
    assert found.answer is None and "no clear answer" in found.verdict()


def test_a_column_of_large_numbers_does_not_decide():
    found = study(make, blobs() * [1, 1, 1e5], list(range(2, 8)), (0, 1))
    assert found.votes["silhouette"] == found.votes["merge"] == 4


def test_one_voice_that_differs_is_enough_for_doubt():
    nan = float("nan")
    curves = {"stability": [1.0, 0.5, 0.4], "silhouette": [0.1, 0.2, 0.9], "merge": [nan] * 3}
    assert Curves([2, 3, 4], curves).answer is None
    curves["stability"] = [0.1, 1.0, 0.4]
    assert Curves([2, 3, 4], curves).answer in (3, 4)
    with pytest.raises(ValueError, match="1 seed"):
        study(make, blobs(), [2, 3], (0,))


def test_merge_curve_bends_at_the_true_number():
    X = blobs().astype(np.float32)
    labels = make(8, 0).fit(X).labels_
    curve = merge_curve(X, labels, list(range(2, 9)))
    assert int(np.nanargmax(curve)) + 2 == 4 and np.isnan(curve[-1])


def test_command_writes_table_and_picture(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs())
    words = f"select-k {tmp_path / 'x.npy'} --method kmeans --from 2 --to 6 --out {tmp_path / 'k'}"
    assert cli.main(words.split()) == 0
    assert "4 clusters" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "k" / "curves.csv").read_text().splitlines()))
    assert [row["k"] for row in rows] == list("23456")
    assert set(rows[0]) == {"k", "stability", "silhouette", "merge"}
    assert (tmp_path / "k" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(words.replace("--from 2", "--from 9").split()) == 2
    assert "not a range" in capsys.readouterr().err
    (tmp_path / "k" / "curves.csv").write_text("mine")
    assert cli.main(words.split()) == 2
    assert "curves.csv exists" in capsys.readouterr().err
    assert (tmp_path / "k" / "curves.csv").read_text() == "mine"
    assert cli.main([*words.split(), "--overwrite"]) == 0
    assert (tmp_path / "k" / "curves.csv").read_text().startswith("k,stability")


def test_a_fit_sees_fewer_rows_than_there_are(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs()[:10])
    words = f"select-k {tmp_path / 'x.npy'} --method kmeans --quiet --out {tmp_path / 'k'}"
    assert cli.main([*words.split(), "--to", "9"]) == 2
    assert "8 of the 10 rows of x, but --to is 9; lower --to" in capsys.readouterr().err
    assert cli.main([*words.split(), "--to", "8"]) == 0
