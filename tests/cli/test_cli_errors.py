"""What the command line answers to commands that cannot be carried out."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coterie.cli import main
from coterie.cli.config import config_flags
from coterie.cli.method_args import UsageError, duration, read_value, simple_types


@pytest.fixture
def data(tmp_path):
    """60 rows in three groups, as a file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 6 * np.repeat(np.arange(3), 20)[:, None]
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    return str(tmp_path / "x.npy")


@pytest.fixture
def finished(data, tmp_path):
    out = str(tmp_path / "run")
    words = ["fit", data, "--method", "kmeans", "--clusters", "3", "--out", out, "--quiet"]
    assert main(words) == 0
    return out


def refused(capsys, *words) -> str:
    """Run a command that must fail with exit code 2 and one message; return it as a line."""
    assert main([str(word) for word in words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    told = captured.err
    assert told.startswith("coterie: ") and told.count("coterie: ") == 1, told
    assert "Traceback" not in told and all(line.strip() for line in told.splitlines())
    return " ".join(told.split())


def snapshot(folder) -> dict:
    files = (path for path in sorted(Path(folder).iterdir()) if path.is_file())
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "words, hint",
    [
        (["fitt"], "did you mean fit?"),
        (["--versoin"], "did you mean --version?"),
        (["fit", "X", "--method", "ae_kmean"], "did you mean ae_kmeans?"),
        (["fit", "X", "--method", "kmeans", "--n-int", "3"], "did you mean --n-init?"),
        (["fit", "X", "--method", "ae_kmeans", "--pretrain", "denoice"], "did you mean denoise?"),
        (["fit", "X", "--method", "kmeans", "--clusters", "many"], "'many'"),
        (["fit", "X", "--method", "kmeans", "--n-init", "2.5"], "'2.5' is not of type int"),
        (["fit", "X", "--time-budget", "soon"], "90, 90s, 5m or 1h"),
        (["fit", "digitz", "--clusters", "3"], "Did you mean 'digits'?"),
        (["fit", "digits", "--words", "9"], "--words 9 does not apply to digits, which is image"),
        (["fit", "--clusters", "3"], "give DATA"),
        (["fit", "--resume", "--out", "nowhere"], "nowhere holds no run to resume; give DATA"),
        (["fit", "X", "Y"], "unexpected argument 'Y'"),
        (["bench", "pendigit_s", "--methods", "kmeans"], "did you mean pendigits?"),
        (["bench", "digits", "--methods", "kmeans:q"], "it has: p, r"),
        (["bench", "digits", "--methods", "kmeans", "--set", "n_int=3"], "did you mean n_init?"),
        (["bench", "digits", "--methods", "kmeans", "--set", "n_init"], "KEY=VALUE"),
        (["bench", "digits", "--methods", "kmeans", "--profile", "papr"], "did you mean paper?"),
        (["bench", "digits"], "--methods"),
        (["predict", "nowhere", "digits"], "is not a folder"),
        (["compare", "X", "--methods", ",", "--out", "c"], "names 0 methods; give at least 1"),
        (["compare", "X", "--methods", "leiden:*", "--out", "c"], "names 0 methods"),
        (
            ["compare", "X", "--methods", "kmeans", "--seeds", "0", "--out", "c"],
            "'0' names no seeds",
        ),
        (["bench", "digits", "--methods", "kmeans", "--seeds", "a"], "'a' names no seeds"),
        (["bench", "digits", "--methods", "kmeans", "--seeds", "7-3"], "'7-3' names no seeds"),
    ],
)
def test_a_wrong_word_gets_a_suggestion(words, hint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["digits" if word == "X" else word for word in words]
    assert hint in refused(capsys, *words)
    assert os.listdir(tmp_path) == []


def test_a_run_that_exists_is_not_touched(finished, data, capsys):
    before = snapshot(finished)
    again = ["fit", data, "--method", "kmeans", "--clusters", "3", "--out", finished]
    assert "--overwrite" in refused(capsys, *again)
    assert "--seed 0, not 7" in refused(capsys, *again, "--resume", "--seed", 7)
    assert "--clusters 3, not 2" in refused(
        capsys, "fit", data, "--method", "kmeans", "--clusters", 2, "--out", finished, "--resume"
    )
    assert snapshot(finished) == before


def test_resuming_a_finished_run_is_no_work_and_no_error(finished, capsys):
    before = snapshot(finished)
    assert main(["fit", "--resume", "--out", finished, "--quiet"]) == 0
    assert snapshot(finished) == before


def test_overwrite_replaces_runs_only(finished, data, tmp_path, capsys):
    words = ["fit", data, "--method", "kmeans", "--clusters", "2", "--quiet", "--overwrite"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    assert "not a coterie run" in refused(capsys, *words, "--out", mine)
    assert (mine / "thesis.txt").read_text() == "years of work"
    notes = Path(finished, "notes.txt")
    notes.write_text("keep me")
    assert main([*words, "--out", finished]) == 0
    assert set(np.loadtxt(f"{finished}/labels.csv", delimiter=",", skiprows=1)[:, 1]) == {0, 1}
    assert notes.read_text() == "keep me"


def test_overwrite_with_bad_input_keeps_the_old_run(finished, data, capsys):
    before = snapshot(finished)
    words = ["fit", data, "--method", "kmeans", "--out", finished, "--overwrite"]
    assert "60 rows but --clusters is 61" in refused(capsys, *words, "--clusters", 61)
    assert "n_init" in refused(capsys, *words, "--clusters", 3, "--n-init", 0)
    assert snapshot(finished) == before


def test_demo_replaces_its_own_folder_only(finished, tmp_path, capsys, monkeypatch):
    before = snapshot(finished)
    line = refused(capsys, "demo", "--method", "kmeans", "--out", finished)
    assert "holds a run already; use --overwrite" in line
    assert snapshot(finished) == before
    monkeypatch.chdir(tmp_path)
    for words in ([], [], ["--out", finished, "--overwrite"]):
        assert main(["demo", "--method", "kmeans", *words]) == 0
    assert Path(tmp_path, "runs/demo/report.html").exists() and snapshot(finished) != before


def test_training_that_fails_brings_the_old_run_back(finished, tmp_path, capsys):
    np.save(tmp_path / "same.npy", np.ones((60, 4), np.float32))
    words = ["fit", tmp_path / "same.npy", "--method", "dec", "--clusters", 3, "--hidden", 4]
    words += ["--pretrain-epochs", 1, "--checkpoint-seconds", 0, "--quiet"]
    before = snapshot(finished)
    line = refused(capsys, *words, "--out", finished, "--overwrite")
    assert "the same soft assignment" in line and "unexpected" not in line
    assert snapshot(finished) == before
    refused(capsys, *words, "--out", tmp_path / "new")  # a resume would meet the same end
    assert not (tmp_path / "new").exists()


def test_a_stopped_overwrite_can_go_on_and_leaves_nothing_of_the_old_run(
    finished, data, tmp_path, capsys, monkeypatch
):
    from coterie.train.engine import Engine

    Path(finished, "model.onnx").write_text("of the old model")
    old = snapshot(finished)
    words = ["fit", data, "--method", "dec", "--clusters", "3", "--hidden", "4", "--epochs", "1"]
    words += ["--pretrain-epochs", "1", "--checkpoint-seconds", "0", "--quiet", "--out", finished]
    save = Engine._save

    def save_and_stop(self, extra):
        save(self, extra)
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "_save", save_and_stop)
    assert main([*words, "--overwrite"]) == 130
    capsys.readouterr()
    assert main(["predict", finished, data]) == 0  # with the old model, which stands
    captured = capsys.readouterr()
    assert captured.out.encode() == old["labels.csv"]
    assert f"a fit that will replace {finished} is not finished yet" in captured.err
    assert main(words) == 2
    assert "--resume to finish it or --overwrite" in capsys.readouterr().err
    monkeypatch.setattr(Engine, "_save", save)
    assert main(["fit", "--resume", "--out", finished, "--quiet"]) == 0
    assert main([*words[:-1], str(tmp_path / "fresh")]) == 0
    again, fresh = snapshot(finished), snapshot(tmp_path / "fresh")
    assert again.keys() == fresh.keys() and again["labels.csv"] == fresh["labels.csv"]


def test_more_clusters_than_rows_leaves_nothing_behind(data, tmp_path, capsys):
    out = tmp_path / "new"
    line = refused(capsys, "fit", data, "--method", "kmeans", "--clusters", 61, "--out", out)
    assert "60 rows but --clusters is 61" in line
    assert not out.exists()


def test_predict_with_other_columns(finished, tmp_path, capsys):
    np.save(tmp_path / "wide.npy", np.zeros((5, 7), np.float32))
    line = refused(capsys, "predict", finished, tmp_path / "wide.npy")
    assert "7" in line and "4" in line


def test_predict_does_not_overwrite(finished, data, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    out.write_text("mine")
    assert "--overwrite" in refused(capsys, "predict", finished, data, "--out", out)
    assert out.read_text() == "mine"
    assert main(["predict", finished, data, "--out", str(out), "--overwrite"]) == 0
    assert out.read_bytes() == Path(finished, "labels.csv").read_bytes()


def test_labels_of_another_length(finished, tmp_path, capsys):
    np.save(tmp_path / "y.npy", np.zeros(59, int))
    line = refused(capsys, "evaluate", finished, "--labels", tmp_path / "y.npy")
    assert "59 labels" in line and "60 rows" in line


def test_labels_with_a_short_line(finished, tmp_path, capsys):
    path = tmp_path / "y.csv"
    path.write_text("id,label\n" + "".join(f"{i},a\n" for i in range(59)) + "59\n")
    line = refused(capsys, "evaluate", finished, "--labels", path)
    assert f"{path}, line 61: 1 cells but 2 in the first line" in line


def test_predict_makes_the_folder_of_its_table(finished, data, tmp_path, capsys):
    out = tmp_path / "new" / "folder" / "labels.csv"
    assert main(["predict", finished, data, "--out", str(out)]) == 0
    assert out.read_bytes() == Path(finished, "labels.csv").read_bytes()
    line = refused(capsys, "predict", finished, data, "--out", Path(data, "labels.csv"))
    assert line.startswith(f"coterie: {data}: ")


def test_data_that_changed_are_neither_scored_nor_drawn(tmp_path, capsys):
    lines = [f"{i % 2 * 9 + i / 99},{'ab'[i % 2]}" for i in range(20)]
    table, out = tmp_path / "t.csv", tmp_path / "r"
    table.write_text("\n".join(["x,who", *lines]))
    words = ["fit", table, "--method", "kmeans", "--clusters", "2", "--label-column", "who"]
    assert main([*map(str, words), "--out", str(out), "--quiet"]) == 0
    assert main(["evaluate", str(out)]) == 0
    assert "1.0000" in capsys.readouterr().out
    table.write_text("\n".join(["x,who", *lines[1::2], *lines[::2]]))  # as many rows as before
    for command in ("evaluate", "report"):
        line = refused(capsys, command, out)
        assert "have changed since it began (20 rows, now 20; fingerprint" in line
        assert "fit again" in line


def test_data_without_labels_cannot_be_evaluated(finished, capsys):
    assert "no labels of its own" in refused(capsys, "evaluate", finished)


def test_a_half_written_run_does_not_load(finished, data, tmp_path, capsys):
    from coterie.storage import runs

    with pytest.raises(KeyboardInterrupt), runs.writing(tmp_path / "half", {}):
        raise KeyboardInterrupt
    assert "--resume" in refused(capsys, "predict", tmp_path / "half", data)
    path = Path(finished, "run.toml")
    path.write_text(path.read_text().replace("seed = 0", "seed = 1"))
    assert "run.toml is damaged" in refused(capsys, "predict", finished, data)


def test_a_folder_that_cannot_be_written(data, tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    out = tmp_path / "file" / "run"
    line = refused(capsys, "fit", data, "--method", "kmeans", "--clusters", 3, "--out", out)
    assert str(tmp_path / "file") in line
    if os.geteuid() == 0:
        return  # root may write everywhere
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    line = refused(
        capsys, "fit", data, "--method", "kmeans", "--clusters", 3, "--out", locked / "run"
    )
    assert str(locked) in line and "ermission" in line


def test_a_full_disk(data, tmp_path):
    """A limit on file sizes stands in for the full disk: the same failing write."""
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "coterie", "fit", data, "--method", "kmeans", "--clusters", "3"]
        + ["--out", str(out), "--quiet"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900)),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert str(out) in done.stderr and "Traceback" not in done.stderr
    assert not out.exists()


def test_an_unexpected_error_is_code_1_and_debug_raises(data, tmp_path, capsys, monkeypatch):
    from coterie.cli import fit

    def broken(*args, **kwargs):
        raise RuntimeError("the roof is on fire")

    monkeypatch.setattr(fit, "fit_run", broken)
    words = ["fit", data, "--method", "kmeans", "--clusters", "3", "--out", str(tmp_path / "r")]
    assert main(words) == 1
    assert "the roof is on fire" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="roof"):
        main([*words, "--debug"])


def test_config_mistakes(data, tmp_path, capsys):
    config = tmp_path / "fit.toml"
    config.write_text('methd = "kmeans"\n')
    line = refused(capsys, "fit", data, "--config", config, "--out", tmp_path / "r")
    assert "unknown key 'methd'" in line and "did you mean method?" in line
    config.write_text("clusters = = 3")
    assert "not valid TOML" in refused(capsys, "fit", data, "--config", config)
    with pytest.raises(UsageError, match="is a table"):
        config_flags({"method": {"key": 3}}, "fit.toml", {"--method"})


@pytest.mark.parametrize("text, seconds", [("90", 90), ("90s", 90), ("5m", 300), ("1.5h", 5400)])
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text, hint, value",
    [
        ("5", int | float, 5),
        ("1.0", int | float, 1.0),
        ("none", float | None, None),
        ("1e-3", float | None, 1e-3),
        ("500,500", tuple[int, ...], (500, 500)),
        ("16", tuple[int, ...], (16,)),
        ("auto", int | str, "auto"),
        ("7", int | str, 7),
    ],
)
def test_values(text, hint, value):
    found = read_value(text, simple_types(hint))
    assert found == value and type(found) is type(value)


def test_help_is_light():
    """`coterie --help` imports no numeric library; its time is printed, not judged."""
    code = (
        "import sys; from coterie.cli import main; code = main(['--help']);"
        "heavy = {'torch', 'numpy', 'sklearn', 'rich'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(f"coterie --help: {time.perf_counter() - begin:.2f} s")
    assert done.returncode == 0, done.stderr
    assert "cluster data and write a run folder" in done.stdout


def test_names_cannot_command_the_terminal(finished, data, tmp_path, capsys):
    """ESC, a line of its own, and characters that turn the direction of writing."""
    evil = "a\x1b[31m\ncoterie: all is well\u202e\x07.csv"
    line = refused(capsys, "predict", finished, tmp_path / evil.replace("coterie: ", ""))
    assert "\\x1b[31m" in line and "\x1b" not in line
    path = tmp_path / evil
    path.write_text('"x\x1b]0;mine\x07",b\n1,one\n2,two\n')
    words = ["fit", path, "--method", "kmeans", "--clusters", "2", "--out", tmp_path / "r"]
    assert main([*map(str, words)]) == 2
    told = capsys.readouterr().err
    assert main([*map(str, words), "--drop", "b"]) == 0
    captured = capsys.readouterr()
    for text in (told, captured.out, captured.err):
        assert not set(text) & set("\x1b\x07\u202e")
        assert "\ncoterie: all is well" not in text


def test_bad_labels_and_bad_config_are_named(finished, tmp_path, capsys):
    for name, content in {
        "y.npy": b"\x93NUMPY\x01\x00v\x00{'descr': (''",
        "cut.npy": b"\x93NUM",
        "y.csv": b"id,label\n0," + b'"' + b"x" * 200_000,
    }.items():
        (tmp_path / name).write_bytes(content)
        assert name in refused(capsys, "evaluate", finished, "--labels", tmp_path / name)
    for content in ("a = " + "[" * 9999, "a = " + "9" * 5000, "\xff"):
        (tmp_path / "c.toml").write_text(content, encoding="latin-1")
        assert "c.toml" in refused(capsys, "fit", "digits", "--config", tmp_path / "c.toml")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_never_costs_a_run(overwrite, finished, data, tmp_path):
    """A limit on file sizes, from less than run.toml to more than all products."""
    out = finished if overwrite else str(tmp_path / "fresh")
    before = snapshot(finished)
    words = ["fit", data, "--method", "dec", "--clusters", "2", "--out", out, "--quiet"]
    words += ["--hidden", "4", "--epochs", "1", "--pretrain-epochs", "1", "--overwrite"]
    codes = set()
    for limit in (200, 2500, 4000, 10**6):
        done = subprocess.run(
            [sys.executable, "-m", "coterie", *words],
            preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)),
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        codes.add(done.returncode)
        assert "Traceback" not in done.stderr and "unexpected" not in done.stderr, done.stderr
        if done.returncode:
            assert snapshot(finished) == before
            assert main(["predict", finished, data, "--out", str(tmp_path / f"{limit}.csv")]) == 0
    assert codes == {0, 2}
