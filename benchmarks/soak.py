"""Fits, predictions and reports of all methods in one process, for hours: does anything grow?

    python benchmarks/soak.py --minutes 360 --state soak.jsonl
    python benchmarks/soak.py --state soak.jsonl --show

Each round fits one method on one kind of data through the command line, predicts, reads the model
back, and now and then writes a report, replaces the run, stops and resumes it, or gives it a file
that is refused. The labels of a method on the same data must be those of its first round. Memory
(resident, and what of it is the process's own), file handles, threads, Python's objects and files
left behind are written to the state file after each round. Several runs of the script add up:
each appends a piece of its own.
"""

import argparse
import contextlib
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from chaos_inputs import WORDS
from chaos_tools import quiet

from coterie import load, registry

RUNS = 6  # folders in use at a time: the next fit replaces the oldest run
SETTLED = 0.25  # of a piece: what happens before is caches that fill


# -- what is fitted -------------------------------------------------------------------------
def made_data(folder: Path) -> dict[str, Path]:
    """A table, vectors, sparse rows, texts and pictures: small, in three groups each."""
    import scipy.sparse as sp
    from PIL import Image

    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), 60)
    X = (rng.normal(size=(180, 12)) + 5 * group[:, None]).astype(np.float32)
    found = {kind: folder / kind for kind in ("x.csv", "x.npy", "s.npz", "t.txt", "pictures")}
    header = ",".join(f"c{i}" for i in range(X.shape[1]))
    np.savetxt(found["x.csv"], X, "%.4f", ",", header=header, comments="")
    np.save(found["x.npy"], X)
    sp.save_npz(found["s.npz"], sp.csr_matrix(X * (X > 4)))
    lines = [" ".join(rng.choice(WORDS[3 * (i % 3) :][:3], 9)) for i in range(120)]
    found["t.txt"].write_text("\n".join(lines) + "\n")
    found["pictures"].mkdir()
    for i in range(90):
        pixels = rng.integers(0, 60, (12, 12, 3)) + 80 * (i % 3) * np.eye(3, dtype=int)[i % 3]
        Image.fromarray(pixels.astype(np.uint8)).save(found["pictures"] / f"{i:03}.png")
    (folder / "broken.npz").write_bytes(found["s.npz"].read_bytes()[:-40])
    return found


def command(words: list, expected: int = 0) -> None:
    """A coterie command in this process; another exit code than expected ends the campaign."""
    from coterie.cli import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code != expected:
        raise RuntimeError(f"{words}: exit code {code}: {said.getvalue()[-500:]}")


def stopped(words: list) -> bool:
    """Press Ctrl-C in the middle of a fit; False if it was over before."""
    timer = threading.Timer(0.25, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        command(words, 130)
        return True
    except (KeyboardInterrupt, RuntimeError):
        return False
    finally:
        timer.cancel()
        with contextlib.suppress(KeyboardInterrupt):
            timer.join()


class Soak:
    """The rounds, and what is counted over them."""

    def __init__(self, folder: Path):
        self.folder, self.data = folder, made_data(folder)
        pairs = [(key, kind) for key in registry.METHODS for kind in self.data]
        np.random.default_rng(1).shuffle(pairs)
        self.pairs = [(str(key), str(kind)) for key, kind in pairs]
        self.first, self.skipped = {}, {}
        self.count = dict.fromkeys(("fits", "predicts", "reports", "stops", "refusals"), 0)
        self.wrong = []

    def fit_words(self, key: str, kind: str, out: Path, *more) -> list:
        from coterie.storage.atomic import write_toml

        cls = registry.get(key)
        config = self.folder / f"{key}.toml"
        if not config.exists():
            known = {"checkpoint_seconds": 0.0} if hasattr(cls, "checkpoint_seconds") else {}
            write_toml(config, {**cls.tiny, **known})
        words = ["fit", self.data[kind], "--method", key, "--clusters", "3", "--config", config]
        return [*words, "--quiet", "--threads", "1", "--out", out, *more]

    def round(self, i: int) -> None:
        key, kind = self.pairs[i % len(self.pairs)]
        lap = i // len(self.pairs)
        if (key, kind) in self.skipped:
            return
        out = self.folder / f"run{i % RUNS}"
        stop = lap and (i + lap) % 5 == 0
        if stop:  # a fresh folder: an early Ctrl-C would leave the old run as it was
            shutil.rmtree(out, ignore_errors=True)
        words = self.fit_words(key, kind, out, "--resume" if stop else "--overwrite")
        try:
            if stop:
                self.count["stops"] += stopped(words)
            command(words)
        except RuntimeError as error:
            if lap:
                raise
            self.skipped[key, kind] = str(error)  # a method that does not take such data
            return
        self.count["fits"] += 1
        self.predict(key, kind, out)
        if (i + lap) % 3 == 0:
            command(["report", out])
            self.count["reports"] += 1
        if i % 4 == 0:
            command(["fit", self.folder / "broken.npz", "--clusters", "3"], 2)
            self.count["refusals"] += 1

    def predict(self, key: str, kind: str, out: Path) -> None:
        table = self.folder / "predicted.csv"
        command(["predict", out, self.data[kind], "--out", table, "--overwrite"])
        model = load(out)
        if kind == "x.npy":
            model.transform(np.load(self.data[kind]))
        self.count["predicts"] += 1
        digest = hashlib.sha256(table.read_bytes()).hexdigest()
        if self.first.setdefault((key, kind), digest) != digest:
            self.wrong.append(f"{key} on {kind}: other labels than in the first round")


# -- what is watched ------------------------------------------------------------------------
def watched(folder: Path) -> dict:
    """Memory in MB, handles, threads, objects, and files that should be gone."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    left = [p.name for p in folder.rglob(".coterie*")] + os.listdir(tempfile.gettempdir())
    return {
        "rss": int(status["VmRSS"].split()[0]) / 1024,
        "own": int(status["RssAnon"].split()[0]) / 1024,
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": int(status["Threads"]),
        "objects": len(gc.get_objects()),
        "left": len(left),
        "names": left[:5],
    }


def soak(minutes: float, state: Path, duty: float) -> int:
    piece = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    begin, used = time.monotonic(), 0.0
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        tempfile.tempdir = str(folder / "tmp")
        work, i = Soak(folder), 0
        while time.monotonic() - begin < 60 * minutes:
            at = time.monotonic()
            with quiet():
                work.round(i)
            i += 1
            used = time.monotonic() - at
            record = {"piece": piece, "hours": (time.monotonic() - begin) / 3600, "round": i}
            record |= watched(folder) | work.count | {"lap": len(work.pairs)}
            record |= {"wrong": work.wrong[:20], "skipped": len(work.skipped)}
            with open(state, "a") as file:
                file.write(json.dumps(record) + "\n")
            time.sleep(used * (1 / duty - 1))
        for pair, said in work.skipped.items():
            print(*pair, "skipped:", said[-200:], file=sys.stderr)
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()  # for the context to remove
    return int(bool(work.wrong))


# -- what is told ---------------------------------------------------------------------------
def slope(hours: np.ndarray, values: np.ndarray) -> float:
    """Growth per hour, by least squares."""
    return float(np.polyfit(hours, values, 1)[0]) if len(hours) > 2 else float("nan")


def table(state: Path) -> str:
    """A line for each piece: its length, its work, and each number when settled and at the end."""
    pieces: dict[str, list[dict]] = {}
    for line in state.read_text().splitlines():
        record = json.loads(line)
        pieces.setdefault(record["piece"], []).append(record)
    head = (
        "| begun | hours | fits | predicts | reports | stops | memory MB | MB per hour | handles "
    )
    lines = [head + "| threads | objects | left | wrong |"]
    lines.append("|---" + "|---:" * 12 + "|")
    total = 0.0
    for name, records in pieces.items():
        last = records[-1]
        total += last["hours"]
        late = [r for r in records if r["hours"] >= SETTLED * last["hours"]]
        hours, own = (np.array([r[k] for r in late]) for k in ("hours", "own"))
        part = max(1, len(late) // 5)  # medians: a round with a report is larger than one without

        def ends(key: str, late=late, part=part) -> str:
            first, final = (
                np.median([r[key] for r in some]) for some in (late[:part], late[-part:])
            )
            return f"{first:,.0f} -> {final:,.0f}"

        cells = [name, f"{last['hours']:.2f}"]
        cells += [f"{last[k]:,}" for k in ("fits", "predicts", "reports", "stops")]
        cells += [ends("own"), f"{slope(hours, own):+.2f}"]
        cells += [ends(k) for k in ("handles", "threads", "objects", "left")]
        lines.append("| " + " | ".join([*cells, str(len(last["wrong"]))]) + " |")
    return "\n".join([*lines, f"\n{total:.2f} hours in all"])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--state", type=Path, default=Path("soak.jsonl"))
    parser.add_argument("--duty", type=float, default=1.0, help="share of the time at work")
    parser.add_argument("--show", action="store_true", help="only the table of what was run")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    code = 0 if args.show else soak(args.minutes, args.state, args.duty)
    print(table(args.state))
    return code


if __name__ == "__main__":
    sys.exit(main())
