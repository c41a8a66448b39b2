"""Ledger, statistics, published figures, cost, and campaigns."""

import json
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from coterie import metrics
from coterie.cli import main
from coterie.cli.bench import read_methods, read_settings, seeds
from coterie.research.bench import published as papers
from coterie.research.bench import tables
from coterie.research.bench.campaign import Job, plan, run_campaign
from coterie.research.bench.ledger import KEYS, Ledger, same_run
from coterie.research.bench.predictions import Predictions, part

ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def record(**changes) -> dict:
    base = dict.fromkeys(KEYS)
    base |= {"method": "kmeans", "variant": "r", "profile": "default", "dataset": "usps"}
    base |= {"seed": 0, "params": {"n_init": 1}, "status": "ok", "km": {"ari": 0.5}}
    base |= {"acc": 0.6, "nmi": 0.6, "nmi_geo": 0.6, "ari": 0.5, "aee": 2.0}
    return base | changes


# -- the file -------------------------------------------------------------------------------
def test_a_line_reads_back_and_bad_keys_are_refused(tmp_path):
    ledger = Ledger(tmp_path / "deep/ledger.jsonl")
    assert ledger.read() == []
    ledger.append(record(params={"hidden": (5, 5)}, label_free={"silhouette": math.nan}))
    (line,) = ledger.read()
    assert list(line) == list(KEYS)
    assert line["params"] == {"hidden": [5, 5]} and line["label_free"] == {"silhouette": None}
    with pytest.raises(ValueError, match="extra"):
        ledger.append(record(extra=1))


def test_predictions_give_the_scores_of_a_part(tmp_path, capsys):
    rng, kept = np.random.default_rng(0), Predictions(tmp_path / "ledger.jsonl")
    classes = rng.integers(3, size=200)
    labels = np.where(rng.random(200) < 0.8, classes, rng.integers(300, size=200))
    run = record(fingerprint="abc")
    run["predictions"] = kept.save(run, classes, labels, km=classes[::-1])
    assert np.array_equal(kept.read(run["predictions"])["labels"], labels)
    with np.load(tmp_path / "predictions" / f"{run['predictions']}.npz") as file:
        assert file["labels"].dtype == np.uint16 and file["km"].dtype == np.uint8
    rows = part(200, 0.9)
    assert len(set(rows.tolist())) == 180 and np.array_equal(rows, part(200, 0.9))
    found = kept.part_scores(run, 0.9)
    assert found["acc"] == pytest.approx(metrics.accuracy(classes[rows], labels[rows]))
    assert found["km"]["ari"] == pytest.approx(metrics.ari(classes[rows], classes[::-1][rows]))
    assert kept.part_scores(record(), 0.9) == {}  # an old line
    assert kept.save(run | {"seed": 1}, classes, labels) != run["predictions"]
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(run)
    ledger.append(record(method="gmm"))
    assert main(["bench", "--show", "--part", "0.9", "--ledger", str(ledger.path)]) == 0
    shown = capsys.readouterr().out
    assert f"{100 * found['acc']:.1f}" in shown and "gmm" not in shown


def test_a_torn_last_line_is_skipped_and_ended(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    ledger.append(record(seed=0))
    with open(ledger.path, "ab") as file:
        file.write(b'{"method": "kmea')
    assert [run["seed"] for run in ledger.read()] == [0]
    ledger.append(record(seed=1))
    assert [run["seed"] for run in ledger.read()] == [0, 1]


def append_many(path, who):
    ledger = Ledger(path)
    for i in range(100):
        ledger.append(record(seed=i, dataset=who, params={"pad": "x" * (37 * i)}))


def test_two_writers_lose_nothing(tmp_path):
    path = tmp_path / "l.jsonl"
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=append_many, args=(path, who)) for who in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((r["dataset"], r["seed"]) for r in lines) == [
        (who, i) for who in "ab" for i in range(100)
    ]


def test_same_run_compares_parameters_that_both_have():
    assert same_run(record(params={"a": (1, 2)}), record(params={"a": [1, 2], "new": 3}))
    assert not same_run(record(params={"a": 1}), record(params={"a": 2}))
    assert not same_run(record(), record(seed=1))


def test_a_line_from_before_epsilon_could_be_set_is_no_run_with_another(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(record(method="dec", params={"lr": 1e-3}))
    wanted = record(method="dec", params={"lr": 1e-3, "eps": 1e-3})
    assert ledger.find(wanted) is None
    assert ledger.find(record(method="dec", params={"lr": 1e-3, "eps": 1e-8}))
    ledger.append(wanted)
    assert ledger.find(wanted)["params"]["eps"] == 1e-3


def test_a_claim_is_exclusive_and_ends(tmp_path):
    ledger, wanted = Ledger(tmp_path / "l.jsonl"), record()
    with ledger.claim(wanted) as mine, ledger.claim(wanted) as second:
        assert mine and not second
    with ledger.claim(wanted) as again, ledger.claim(record(seed=1)) as other:
        assert again and other
    assert os.listdir(tmp_path / ".claims") == []


# -- statistics and papers --------------------------------------------------------------------
def test_summary_over_seeds():
    runs = [record(seed=s, acc=a) for s, a in enumerate([0.5, 0.6, 0.7])]
    runs.append(record(seed=0, acc=0.8))  # run again: the latest counts
    runs.append(record(seed=3, status="failed: x", acc=None, km=None))
    (row,) = tables.summarise(runs)
    assert row["n"] == 3 and row["failed"] == 1 and row["params"] == {}
    assert row["acc"]["mean"] == pytest.approx(0.7) and row["acc"]["best"] == 0.8
    assert row["acc"]["std"] == pytest.approx(0.1)
    assert tables.percent(row["acc"]) == "70.0 ± 10.0 (80.0)"


def test_rows_name_only_the_parameters_that_differ():
    runs = [record(params={"lr": lr, "n_init": 1}) for lr in (0.1, 0.2)]
    assert [row["params"] for row in tables.summarise(runs)] == [{"lr": 0.1}, {"lr": 0.2}]


def test_select():
    runs = [record(), record(variant="p"), record(dataset="mnist")]
    assert len(tables.select(runs, ["usps"], ["kmeans:r"])) == 1
    assert len(tables.select(runs, None, ["kmeans"])) == 3


def test_published_figures():
    assert len(papers.cells()) == 3072
    (cell,) = papers.published(
        paper="cnet", table="1", method="kmeans", variant="r", dataset="usps", metric="ari"
    )
    assert cell["value"] == 0.526 and cell["stat"] == "mean"
    assert any(t.startswith("52.6") for t in papers.beside("kmeans", "r", "usps", "ari"))
    assert [t for t in papers.beside("dkm", "", "usps", "acc") if t.endswith(" dkm:p")]
    assert papers.beside("nobody", "", "usps", "acc") == []


# -- cost ---------------------------------------------------------------------------------------
def test_the_unit_of_cost_grows_with_the_rows():
    from coterie.research.bench import cost

    X = np.random.default_rng(0).random((512, 4, 4)).astype(np.float32)
    assert cost.ae_epoch_seconds(X) > 0
    assert cost.ae_epoch_seconds(sp.csr_matrix(X.reshape(512, 16))) > 0
    network = cost.autoencoder(16, torch.Generator())
    widths = [layer.out_features for layer in network if hasattr(layer, "out_features")]
    assert widths == [500, 500, 2000, 10, 2000, 500, 500, 16]
    linear_pairs = [type(layer).__name__ for layer in network][6:8] + [type(network[-1]).__name__]
    assert linear_pairs == ["Linear", "Linear", "Linear"]  # no ReLU on code and output


# -- campaigns ------------------------------------------------------------------------------------
def tiny_load(name):
    from coterie.data import load

    rng = np.random.default_rng(0)
    data = load(rng.normal(size=(60, 4)) + 6 * np.repeat(np.arange(3), 20)[:, None])
    data.labels = np.repeat(np.arange(3), 20)
    return data


def test_campaign_runs_each_job_once(tmp_path):
    ledger, told = Ledger(tmp_path / "l.jsonl"), []
    jobs = plan(["blobs"], [("kmeans", "r"), ("kmeans", "p")], seeds=range(2))
    assert run_campaign(jobs, ledger, tiny_load, tell=told.append)["done"] == 4
    assert run_campaign(jobs, ledger, tiny_load, tell=told.append)["skipped"] == 4
    runs = ledger.read()
    assert len(runs) == 4 and len(told) == 4 and all(set(run) == set(KEYS) for run in runs)
    first = runs[0]
    assert first["status"] == "ok" and first["acc"] == 1.0 and first["aee"] > 0
    assert first["params"]["init"] == "random" and first["params"]["n_clusters"] == 3
    assert first["seconds"]["total"] > 0 and first["rss_mb"] > 10 and first["threads"] >= 1


def test_k_means_on_the_embedding_where_there_is_one(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    jobs = plan(["blobs"], [("kmeans", ""), ("pca_kmeans", "")], seeds=range(1))
    run_campaign(jobs, ledger, tiny_load, tell=str)
    rows, components = ledger.read()
    assert rows["km"] is None and components["km"]["acc"] == 1.0


def test_campaign_gives_texts_in_the_words_that_a_method_asks_for(tmp_path):
    asked = []

    def load(name, **more):
        asked.append(more)
        return tiny_load(name)

    ledger = Ledger(tmp_path / "l.jsonl")
    fast = {"leiden": {"kind": "table"}}
    jobs = plan(["blobs"], [("kmeans", ""), ("leiden", "")], seeds=range(2), settings=fast)
    run_campaign(jobs, ledger, load, tell=str)
    assert asked == [{}, {"words": 5000}]
    assert plan(["usps"], [("leiden", "")], "paper")[0].words is None


def test_campaign_budget_and_claims(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    jobs = plan(["blobs"], [("kmeans", "")], seeds=range(2))
    assert run_campaign(jobs, ledger, tiny_load, budget=0.0)["left"] == 2
    from coterie.storage.runs import describe

    with ledger.claim(jobs[0].record(describe(jobs[0].estimator(3)))):
        counts = run_campaign(jobs, ledger, tiny_load, tell=str)
    assert counts["busy"] == 1 and counts["done"] == 1


def test_a_failing_run_is_recorded_and_not_retried(tmp_path):
    ledger = Ledger(tmp_path / "l.jsonl")
    jobs = [Job("blobs", "kmeans", settings={"n_init": 0})]
    assert run_campaign(jobs, ledger, tiny_load, tell=str)["failed"] == 1
    (run,) = ledger.read()
    assert re.match(r"failed: ValueError: KMeans\(n_init=0\)", run["status"]) and run["acc"] is None
    assert run_campaign(jobs, ledger, tiny_load, tell=str)["skipped"] == 1
    assert run_campaign(jobs, ledger, tiny_load, retry=True, tell=str)["failed"] == 1


def test_plan_words():
    assert seeds("3") == [0, 1, 2] and seeds("3-5") == [3, 4, 5] and seeds("0,7") == [0, 7]
    assert read_methods(["kmeans:*", "gmm"]) == [("kmeans", "p"), ("kmeans", "r"), ("gmm", "")]
    keys = ["dec", "kmeans"]
    assert read_settings(["n_init=3", "dec.lr=0.1"], keys) == {
        "dec": {"n_init": 3, "lr": 0.1},
        "kmeans": {"n_init": 3},
    }
    grid = read_settings(["hidden=(16,8),(4)", "epochs=1,2"], ["dec"], several=True)
    assert grid == {"dec": {"hidden": [(16, 8), (4,)], "epochs": [1.0, 2.0]}}
    jobs = plan(["a"], [("dec", "")], seeds=[0], grid=grid)
    assert len(jobs) == 4 and jobs[-1].settings == {"hidden": (4,), "epochs": 2.0}


# -- the command -------------------------------------------------------------------------
BENCH = ["bench", "digits", "--methods", "kmeans:r,kmeans:p", "--seeds", "3", "--threads", "1"]
# the unit of cost is not what these tests are about
COMMAND = [
    sys.executable,
    "-c",
    "import sys; from coterie.research.bench import cost; cost.WARM_UP, cost.MEASURED = 0, 1;"
    "from coterie.cli import main; sys.exit(main())",
]


@pytest.fixture(autouse=True, scope="module")
def quick_unit():
    from coterie.research.bench import cost

    before = cost.WARM_UP, cost.MEASURED
    cost.WARM_UP, cost.MEASURED = 0, 1
    yield
    cost.WARM_UP, cost.MEASURED = before


@pytest.mark.parametrize("how", ["--data-dir", "COTERIE_DATA"])
def test_named_sets_come_from_the_folder_that_is_given(tmp_path, monkeypatch, made_up_sets, how):
    folder, ledger = str(made_up_sets("wholesale")), str(tmp_path / "ledger.jsonl")
    command = ["bench", "wholesale", "--methods", "kmeans:p", "--seeds", "1", "--ledger", ledger]
    monkeypatch.delenv("COTERIE_DATA")
    assert main([*command, "--threads", "1"]) == 2  # the set is nowhere
    if how == "--data-dir":
        command += ["--data-dir", folder]
    else:
        monkeypatch.setenv(how, folder)
    assert main([*command, "--threads", "1"]) == 0
    assert [run["status"] for run in Ledger(ledger).read()] == ["ok"]


def essence(path) -> dict:
    """What a ledger says, without time and place."""
    kept = ("acc", "nmi", "nmi_geo", "ari", "km", "label_free", "params", "status")
    runs = Ledger(path).read()
    assert len({(r["method"], r["variant"], r["seed"]) for r in runs}) == len(runs)
    return {(r["method"], r["variant"], r["seed"]): {k: r[k] for k in kept} for r in runs}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "ledger.jsonl"
    assert main([*BENCH, "--ledger", str(path)]) == 0
    return path


def test_kill_9_and_again_gives_the_same_ledger(whole, tmp_path):
    path = tmp_path / "ledger.jsonl"
    command = [*COMMAND, *BENCH, "--ledger", str(path)]
    process = subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL)
    while not path.exists() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = len(path.read_text().splitlines())
    assert left < 6
    assert main([*BENCH, "--ledger", str(path)]) == 0
    assert essence(path) == essence(whole)


def test_two_campaigns_share_the_work(whole, tmp_path):
    path = tmp_path / "ledger.jsonl"
    command = [*COMMAND, *BENCH, "--ledger", str(path)]
    both = [
        subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    told = [process.communicate()[0].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    lines = path.read_text().splitlines()
    assert len(lines) == 6 and all(json.loads(line)["status"] == "ok" for line in lines)
    assert essence(path) == essence(whole)


def test_show(whole, capsys):
    assert main(["bench", "--show", "--ledger", str(whole), "--methods", "kmeans:r"]) == 0
    told = capsys.readouterr().out
    assert "kmeans:r" in told and "kmeans:p" not in told and "±" in told
    assert main(["bench", "--show", "--ledger", str(whole), "--datasets", "usps"]) == 2


def test_ranks_by_hand():
    """Three methods, two sets; a tie shares its rank, a method without a set has none."""
    from coterie.research.bench import ranking

    def run(method, dataset, seed, nmi, profile="default", lr=1):
        figures = dict.fromkeys(("acc", "nmi_geo", "ari", "aee"), 0.5) | {"nmi": nmi, "km": None}
        name = {"method": method, "variant": "", "profile": profile, "dataset": dataset}
        return name | {"seed": seed, "params": {"lr": lr}, "status": "ok"} | figures

    runs = [run("a", "x", 0, 0.9), run("a", "x", 1, 0.7), run("b", "x", 0, 0.8)]
    runs += [run("a", "y", 0, 0.3), run("b", "y", 0, 0.5), run("c", "y", 0, 0.6)]
    runs += [run("b", "x", 0, 0.1, profile="paper")]
    found = ranking.rank(runs, ["x", "y"])
    assert found.scores["a"] == pytest.approx({"x": 0.8, "y": 0.3})
    assert found.counts["a"] == {"x": 2, "y": 1}
    assert found.ranks == {"b": 1.25, "a": 1.75}  # a tie on x, b before a on y; c lacks x
    assert found.best_rival("b", "y") == ("c", 0.6)
    text = ranking.markdown(found).splitlines()
    assert text[2].startswith("| b | 1.2 |") and "**60.0** (1)" in text[4]


def test_ranks_are_of_todays_defaults():
    from coterie.research.bench import ranking
    from coterie.storage.runs import describe

    figures = dict.fromkeys(("acc", "nmi", "nmi_geo", "ari", "aee"), 0.5) | {"km": None}
    name = {"method": "kmeans", "variant": "p", "profile": "default", "dataset": "usps"}
    params = json.loads(json.dumps(describe(Job("usps", "kmeans", "p").estimator(10))))
    run = name | figures | {"seed": 0, "params": params, "status": "ok"}
    changed = run | {"seed": 1, "params": params | {"max_iter": 3}}
    found = ranking.rank_defaults([run, changed])
    assert found.datasets == ["usps"] and found.counts == {"kmeans:p": {"usps": 1}}
    earlier = {key: value for key, value in params.items() if key != "reject"}
    assert ranking.by_default(run | {"params": earlier}), "a parameter that came later"
    assert not ranking.by_default(run | {"params": params | {"gone": 1}})
