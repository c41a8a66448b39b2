"""The command line as a user meets it: fit, predict, evaluate, compare, stop and go on."""

import csv
import os
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest
from PIL import Image

import coterie
from coterie.cli import main
from coterie.storage import runs

COMMAND = [sys.executable, "-m", "coterie"]
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
NAMES = ["ada", "bob", "cleo"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV of three groups, with an id column and a column of classes."""
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat(np.arange(3), 30))
    X = rng.normal(size=(90, 3)) + 8 * groups[:, None]
    path = tmp_path_factory.mktemp("data") / "people.csv"
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["name", "height", "weight", "age", "who"])
        for i, (row, g) in enumerate(zip(X, groups)):
            out.writerow([f"row {i}, {NAMES[g]}", *(f"{v:.4f}" for v in row), NAMES[g]])
    return path


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "people"
    words = ["fit", str(table), "--method", "kmeans", "--clusters", "3", "--out", str(out)]
    assert main([*words, "--id-column", "name", "--label-column", "who", "--quiet"]) == 0
    return out


def read_labels(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_fit_writes_a_run(fitted, table):
    rows = read_labels(fitted / "labels.csv")
    source = read_labels(table)
    assert [row["id"] for row in rows] == [row["name"] for row in source]
    # the groups lie far apart: each name gets one label, whatever its number
    pairs = {(row["id"].split(", ")[1], row["label"]) for row in rows}
    assert len(pairs) == 3 and len({label for _, label in pairs}) == 3
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)
    assert np.load(fitted / "embedding.npy").shape == (90, 3)
    meta = tomllib.loads((fitted / "run.toml").read_text())
    assert meta["status"] == "done" and meta["evaluation"]["acc"] == 1.0
    assert meta["data"]["rows"] == 90 and meta["params"]["n_clusters"] == 3


def test_predict_gives_the_labels_of_the_fit(fitted, table, tmp_path, capsys):
    words = ["predict", str(fitted), str(table)]
    assert main([*words, "--out", str(tmp_path / "l.csv")]) == 0
    assert (tmp_path / "l.csv").read_bytes() == (fitted / "labels.csv").read_bytes()
    assert main([*words, "--proba"]) == 0
    first = capsys.readouterr().out.splitlines()[:2]
    assert first[0] == "id,label,confidence,p0,p1,p2"
    label, _, *soft = next(csv.reader(first[1:]))[1:]
    assert int(label) == int(np.argmax([float(p) for p in soft]))


def test_evaluate_finds_labels_in_all_three_places(fitted, table, tmp_path, capsys):
    lines = (fitted / "labels.csv").read_text().splitlines()
    shuffled = [lines[0], *reversed(lines[1:])]
    (tmp_path / "y.csv").write_text("\n".join(shuffled) + "\n")  # matched by id, not by place
    for more in ([], ["--labels", "who"], ["--labels", str(tmp_path / "y.csv")]):
        assert main(["evaluate", str(fitted), *more]) == 0
        told = dict(line.rsplit(None, 1) for line in capsys.readouterr().out.splitlines())
        assert told == {
            "ACC": "1.0000",
            "NMI": "1.0000",
            "NMI (geometric)": "1.0000",
            "ARI": "1.0000",
        }


def test_the_report_names_classes_as_the_labels_given_do(table, tmp_path):
    out = tmp_path / "r"
    words = ["fit", str(table), "--method", "kmeans", "--clusters", "3", "--out", str(out)]
    assert main([*words, "--id-column", "name", "--label-column", "who", "--quiet"]) == 0
    who = [row["who"] for row in read_labels(table)]
    towns = {"ada": "Zurich", "bob": "Lima", "cleo": "Oslo"}
    (tmp_path / "y.csv").write_text("\n".join(["label", *(towns[name] for name in who)]))
    assert main(["report", str(out), "--labels", str(tmp_path / "y.csv")]) == 0
    page = (out / "report.html").read_text()
    assert all(f'<th title="{town}">' in page for town in towns.values())
    assert '<th title="ada">' not in page
    assert main(["report", str(out), "--labels", "who"]) == 0
    assert '<th title="ada">' in (out / "report.html").read_text()


def test_summary_marks_the_evaluation(fitted, capsys):
    assert main(["fit", "--resume", "--out", str(fitted)]) == 0
    told = capsys.readouterr().out
    assert "3 of 3 clusters used" in told and "30 (33.3 %)" in told
    assert "silhouette" in told and "k-means on the data" not in told  # it is k-means itself
    assert f"written to {fitted}" in told.replace("\n", "")
    assert "evaluation only" in told and "ACC" in told


def test_summary_and_page_say_what_the_time_budget_cut(table, tmp_path, capsys):
    words = ["fit", str(table), "--method", "dec", "--clusters", "3", "--drop", "name,who"]
    words += ["--hidden", "8", "--epochs", "100000", "--tol", "0", "--time-budget", "0.5s"]
    out = tmp_path / "r"
    assert main([*words, "--report", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    cut = "time budget ended phase 'train' after "
    assert f"note: the {cut}" in told and "k-means on the data" in told
    page = (out / "report.html").read_text()
    assert cut.replace("'", "&#39;") in page


def test_quiet_prints_nothing(table, tmp_path, capsys):
    words = ["fit", str(table), "--method", "kmeans", "--clusters", "3", "--drop", "name,who"]
    assert main([*words, "--out", str(tmp_path / "r"), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_config_file_and_flags_mean_the_same(table, tmp_path):
    common = ["fit", str(table), "--drop", "name,who", "--quiet"]
    config = tmp_path / "fit.toml"
    config.write_text(
        'method = "ae_kmeans"\nclusters = 3\nhidden = [8, 4]\npretrain-epochs = 1\n'
        'seed = 5\nquiet = true\nreport = false\ntime_budget = "5m"\n'
    )
    flags = ["--method", "ae_kmeans", "--clusters", "3", "--hidden", "8,4", "--pretrain-epochs"]
    flags += ["1", "--seed", "5", "--time-budget", "300"]
    assert main([*common, *flags, "--out", str(tmp_path / "a")]) == 0
    assert main([*common, "--config", str(config), "--out", str(tmp_path / "b")]) == 0
    # a flag beats the file
    assert main([*common, "--config", str(config), "--seed=6", "--out", str(tmp_path / "c")]) == 0
    a, b, c = (tomllib.loads((tmp_path / n / "run.toml").read_text()) for n in "abc")
    assert a["params"] == b["params"] and a["params"]["hidden"] == [8, 4]
    assert a["seed"] == b["seed"] == 5 and c["seed"] == 6
    assert (tmp_path / "a/labels.csv").read_bytes() == (tmp_path / "b/labels.csv").read_bytes()


def test_a_run_is_fitted_again_from_its_own_file(table, tmp_path):
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    words = ["fit", str(table), "--drop", "name,who", "--clusters", "3", "--seed", "4", "--quiet"]
    words += ["--method", "dkm:a", "--hidden", "8", "--levels", "2", "--epochs-per-level", "1"]
    assert main([*words, "--out", str(first)]) == 0
    for given, out in ((first, again), (first / "run.toml", other)):
        more = ["--seed", "5"] if out is other else []
        assert main(["fit", "--config", str(given), "--quiet", *more, "--out", str(out)]) == 0
    a, b, c = (tomllib.loads((run / "run.toml").read_text()) for run in (first, again, other))
    assert a["params"] == b["params"] == c["params"] and a["data"] == b["data"]
    assert "inverse_temperature" not in a["params"]  # None, where the default is 1000
    assert a["seed"] == b["seed"] == 4 and c["seed"] == 5
    assert (first / "labels.csv").read_bytes() == (again / "labels.csv").read_bytes()


def test_every_field_is_a_flag_with_help(capsys):
    from coterie.cli.fit import build_parser
    from coterie.cli.method_args import OWN, option_names
    from coterie.registry import list_methods

    for key, cls in list_methods().items():
        parser = build_parser(cls)
        flags = option_names(parser)
        for name in cls(2).get_params(deep=False):
            assert name in OWN or "--" + name.replace("_", "-") in flags, (key, name)
        assert all(action.help for action in parser._actions if action.dest in dir(cls)), key
        parser.format_help()


def test_a_variant_of_a_method_is_named_after_a_colon(table, tmp_path, capsys):
    words = ["fit", str(table), "--clusters", "3", "--label-column", "who", "--id-column", "name"]
    words += ["--hidden", "8", "--epochs", "2", "--quiet"]
    made = {}
    for variant in ("a", "p"):
        out = tmp_path / variant
        assert main([*words, "--method", f"dkm:{variant}", "--out", str(out)]) == 0
        made[variant] = coterie.load(out).init
    assert made == {"a": "random", "p": "pretrained"}
    assert main([*words, "--method", "dkm:*"]) == 2
    assert "choose one of dkm:a, dkm:p" in capsys.readouterr().err
    assert main([*words, "--method", "dkm:q"]) == 2
    assert "dkm has no variant q (it has: a, p" in capsys.readouterr().err


def test_lists(capsys):
    assert main(["methods"]) == 0
    assert "ae_kmeans" in capsys.readouterr().out
    assert main(["datasets"]) == 0
    assert "digits" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("coterie 0.")


def test_compare_keeps_what_is_there(table, tmp_path, capsys):
    words = ["compare", str(table), "--methods", "kmeans:r,kmeans:p", "--clusters", "3", "--quiet"]
    words += ["--seeds", "2", "--out", str(tmp_path), "--id-column", "name"]
    assert main([*words, "--label-column", "who"]) == 0
    told = capsys.readouterr().out
    assert "kmeans-r" in told and "kmeans-p" in told and "evaluation only" in told
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/labels.csv")}
    assert len(stamps) == 4
    assert main([*words, "--label-column", "who"]) == 0
    assert stamps == {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/labels.csv")}
    capsys.readouterr()
    assert main([*words, "--label-column", "who", "--set", "n_init=3"]) == 2
    assert "other data or settings" in capsys.readouterr().err


def test_runs_of_a_comparison_of_texts_can_be_fitted_again(tmp_path, capsys):
    source = tmp_path / "docs.txt"
    source.write_text("\n".join(f"w{i % 1100} v{i % 1300}" for i in range(3900)))
    words = ["compare", str(source), "--methods", "kmeans,feature_kmeans", "--clusters", "3"]
    assert main([*words, "--out", str(tmp_path / "all"), "--quiet"]) == 0
    run = tmp_path / "all" / "kmeans-seed0"
    assert main(["fit", "--config", str(run), "--out", str(tmp_path / "again"), "--quiet"]) == 0
    one, two = (runs.peek(folder)["data"] for folder in (run, tmp_path / "again"))
    assert one["shape"][0] > 2000 and one["fingerprint"] == two["fingerprint"]


def test_a_source_whose_name_is_not_utf8_is_refused_before_the_fit(tmp_path, capsys):
    source = os.fsencode(tmp_path) + b"/caf\xe9.npy"
    with open(source, "wb") as file:
        np.save(file, np.eye(9))
    words = ["fit", os.fsdecode(source), "--method", "kmeans", "--clusters", "3"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "not UTF-8" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_compare_tells_variants_apart_on_the_page(table, tmp_path):
    words = ["compare", str(table), "--methods", "kmeans:r,kmeans:p", "--clusters", "3", "--quiet"]
    words += ["--out", str(tmp_path), "--drop", "name,who", "--report"]
    assert main(words) == 0
    page = (tmp_path / "compare.html").read_text()
    assert "2 methods on people" in page
    assert "kmeans-r, seed 0" in page and "kmeans-p, seed 0" in page


def test_compare_goes_on_from_runs_without_classes(table, tmp_path, capsys):
    words = ["compare", str(table), "--clusters", "3", "--quiet", "--out", str(tmp_path)]
    assert main([*words, "--methods", "kmeans", "--drop", "name,who"]) == 0
    assert "ACC" not in capsys.readouterr().out
    words += ["--id-column", "name", "--label-column", "who"]
    for methods in ("gmm,kmeans", "kmeans,gmm"):
        assert main([*words, "--methods", methods]) == 0
        told = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
        assert "ACC" in told["method"] and told["gmm"].count("1.000") > told["kmeans"].count(
            "1.000"
        )


def test_file_names_that_are_not_utf8(tmp_path, capfdbinary):
    folder, out = tmp_path / "photos", tmp_path / "r"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(6):
        name = os.fsencode(folder) + b"/\xff%d.png" % i
        Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(os.fsdecode(name))
    words = ["fit", str(folder), "--method", "kmeans", "--clusters", "2", "--out", str(out)]
    assert main([*words, "--quiet", "--report"]) == 0
    table = (out / "labels.csv").read_bytes()
    assert table.splitlines()[1].startswith(b"\xff0.png,")
    assert main(["predict", str(out), str(folder)]) == 0
    assert capfdbinary.readouterr().out == table
    assert main(["evaluate", str(out), "--labels", str(out / "labels.csv")]) == 0


# -- stop and go on -------------------------------------------------------------------------
SLOW = ["fit", "digits", "--method", "ae_kmeans", "--clusters", "10", "--hidden", "16"]
SLOW += ["--pretrain-epochs", "8", "--n-init", "1", "--no-baseline", "--quiet"]
SLOW += ["--checkpoint-seconds", "0", "--threads", "1"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert main([*SLOW, "--out", str(out)]) == 0
    return (out / "labels.csv").read_bytes()


def stop_when(path, out, how):
    """Start the slow fit, and send it a signal when `path` stands."""
    process = subprocess.Popen(
        [*COMMAND, *SLOW, "--out", str(out)], env=ENV, stderr=subprocess.PIPE, text=True
    )
    while not path.exists() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(how)
    _, told = process.communicate(timeout=300)
    return process.returncode, told


@pytest.mark.parametrize("moment", ["run.toml", "checkpoint/checkpoint.safetensors"])
def test_kill_9_and_resume_gives_the_same_bytes(moment, undisturbed, tmp_path):
    out = tmp_path / "run"
    code, _ = stop_when(out / moment, out, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (out / "labels.csv").exists()
    assert main(["predict", str(out), "digits"]) == 2
    assert main(["fit", "--resume", "--out", str(out), "--no-baseline", "--quiet"]) == 0
    assert (out / "labels.csv").read_bytes() == undisturbed
    assert not (out / "checkpoint").exists()


def test_none_and_the_word_none_survive_a_resume(tmp_path, monkeypatch):
    """scale=None or inverse_temperature=1000 (its default) would be another run."""
    from coterie.train.engine import Engine

    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    words = ["fit", str(tmp_path / "x.npy"), "--method", "dkm", "--clusters", "3", "--quiet"]
    words += ["--augment", "none", "--scale", "none", "--inverse-temperature", "none"]
    words += ["--hidden", "4", "--epochs", "2", "--pretrain-epochs", "1"]
    words += ["--checkpoint-seconds", "0", "--no-baseline", "--out", str(tmp_path / "r")]
    save = Engine._save

    def save_and_stop(self, extra):
        save(self, extra)
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "_save", save_and_stop)
    assert main(words) == 130
    monkeypatch.setattr(Engine, "_save", save)
    assert main(["fit", "--resume", "--out", str(tmp_path / "r"), "--quiet"]) == 0
    model = coterie.load(tmp_path / "r")
    assert model.augment == model.scale == "none" and model.inverse_temperature is None


def test_ctrl_c_says_how_to_resume(undisturbed, tmp_path):
    out = tmp_path / "run"
    checkpoint = out / "checkpoint/checkpoint.safetensors"
    code, told = stop_when(checkpoint, out, signal.SIGINT)
    assert code == 130
    assert f"coterie fit --resume --out {out}" in told and "Traceback" not in told
    assert checkpoint.exists()
    assert main([*SLOW, "--resume", "--out", str(out)]) == 0
    assert (out / "labels.csv").read_bytes() == undisturbed
