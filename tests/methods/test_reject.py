"""Rows that belong nowhere: the same rules for every registered method."""

import json

import numpy as np
import pytest
import torch

import coterie
from conftest import KEYS, quick
from coterie import cli, metrics
from coterie.estimator.labelling import threshold
from coterie.math.assign import log_odds
from coterie.storage import runs


def odds_by_loops(proba):
    out = []
    for row in proba.tolist():
        best = max(range(len(row)), key=lambda j: row[j])
        rest = sum(p for j, p in enumerate(row) if j != best)
        out.append(np.log(max(row[best], 1e-30)) - np.log(max(rest, 1e-30)))
    return np.array(out)


def test_log_odds_are_those_of_loops_and_do_not_saturate():
    proba = torch.rand(20, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    proba[0] = torch.tensor([0.5, 0.5, 0, 0])  # a tie
    np.testing.assert_allclose(log_odds(proba), odds_by_loops(proba), rtol=1e-4, atol=1e-5)
    sure = torch.tensor([[1.0, 1e-10], [1.0, 1e-20]])
    assert float(log_odds(sure)[0]) < float(log_odds(sure)[1]) and float(1 - sure.max()) == 0
    assert torch.isfinite(log_odds(torch.ones(3, 1))).all()


def test_threshold_lies_between_two_rows():
    fits = np.array([5, 1, 4, 2, 3], np.float32)
    assert threshold(fits, 0.4) == 2.5 and threshold(fits, 0.1) == -np.inf
    assert (np.ones(5) < threshold(np.ones(5), 0.4)).sum() == 0  # nobody is worse than others


@pytest.mark.parametrize("key", KEYS)
def test_the_worst_rows_get_no_cluster(key, blobs, tmp_path):
    X = blobs[0]
    plain, model = quick(key).fit(X), quick(key, reject=0.1).fit(X)
    fits = model.score_samples(X)
    assert fits.shape == (len(X),) and fits.dtype == np.float32 and np.isfinite(fits).all()
    gone = model.labels_ == -1
    if model.notes_:  # equal fits
        assert gone.sum() <= 12
    else:
        assert gone.sum() == 12 and fits[gone].max() < fits[~gone].min()
    assert np.array_equal(model.labels_, model.predict(X))
    assert np.array_equal(model.labels_, model.predict_both(X)[0])
    assert np.array_equal(plain.labels_[~gone], model.labels_[~gone])  # the fit is the same
    assert np.array_equal(plain.predict_proba(X), model.predict_proba(X))
    model.save(tmp_path / key)
    about = json.loads((tmp_path / key / "model.json").read_text())
    assert about["fitted"]["reject_below"] == model.reject_below_
    again = coterie.load(tmp_path / key)
    assert np.array_equal(again.predict(X), model.labels_)


@pytest.mark.parametrize("key", sorted({"kmeans", "gmm", "dcn"} & set(KEYS)))
def test_far_off_rows_fit_worse(key, blobs):
    X = blobs[0]
    model = quick(key, reject=0.05).fit(X)
    far = X[:5] + 40
    assert model.score_samples(far).max() < model.score_samples(X).min()
    assert (model.predict(far) == -1).all()


def test_wrong_shares_are_refused(blobs):
    for share in (-0.1, 0.95):
        with pytest.raises(ValueError, match="reject"):
            quick("kmeans", reject=share).fit(blobs[0])


def test_scores_leave_out_rows_without_cluster():
    y, labels = np.array([0, 0, 1, 1]), np.array([0, -1, 1, 1])
    found = metrics.scores(y, labels)
    assert found["acc"] == 1 and found["coverage"] == 0.75
    assert "coverage" not in metrics.scores(y, np.abs(labels))
    with pytest.raises(ValueError, match="lower reject"):
        metrics.scores(y, np.full(4, -1))
    free = metrics.label_free(np.eye(4), labels, np.eye(4)[:, :2], n_clusters=2)
    assert free["rejected"] == 0.25 and free["largest_share"] == pytest.approx(2 / 3)


def test_the_command_line_copes(tmp_path, blobs, capsys):
    X, y = blobs
    X = X + np.random.default_rng(0).normal(0, 3, X.shape)  # groups that touch
    np.savez(tmp_path / "d.npz", X=X, y=y)
    words = f"fit {tmp_path / 'd.npz'} --method kmeans --clusters 3 --reject 0.1 --report"
    assert cli.main([*words.split(), "--out", str(tmp_path / "run")]) == 0
    assert "rejected" in capsys.readouterr().out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "fit no cluster well" in page and "If rows that fit badly were left out" in page
    assert runs.read(tmp_path / "run").labels.min() == -1
    assert cli.main(["evaluate", str(tmp_path / "run")]) == 0
    assert "coverage        0.9000" in capsys.readouterr().out
    words = f"compare {tmp_path / 'd.npz'} --methods kmeans,gmm --clusters 3 --set reject=0.1"
    assert cli.main([*words.split(), "--report", "--out", str(tmp_path / "both")]) == 0
    assert "rows in none" in coterie.load(tmp_path / "run")._repr_html_()


@pytest.mark.parametrize("key", sorted({"kmeans", "dec", "kith"} & set(KEYS)))
def test_exported_models_reject_the_same_rows(key, blobs, tmp_path):
    pytest.importorskip("onnxruntime")
    from coterie.export import OnnxModel, export_onnx

    model = quick(key, reject=0.1).fit(blobs[0])
    there = OnnxModel(export_onnx(model, tmp_path / "m.onnx")).predict(blobs[0])
    assert np.mean(there == model.labels_) > 0.99 and (there == -1).sum() > 5


def test_a_cluster_of_which_nothing_is_left_is_told():
    """A wide cluster of five rows lies lower than every row of the narrow ones."""
    rng = np.random.default_rng(0)
    narrow = np.concatenate([rng.normal(c, 0.1, (50, 2)) for c in (0, 5)])
    X = np.concatenate([narrow, rng.normal(40, 3, (5, 2))]).astype(np.float32)
    with pytest.warns(UserWarning, match=r"reject=0\.05 leaves 2 of 3 clusters: no row of \[\d\]"):
        model = quick("gmm", 3, reject=0.05).fit(X)
    assert "reject=0.05 leaves 2 of 3 clusters" in model.notes_
    assert np.array_equal(model.predict(X), model.labels_) and (model.labels_[-5:] == -1).all()
