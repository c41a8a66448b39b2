"""How far a training step and a row walk.

Files of the package that one step runs through; and how often, from a .csv to its report, the file
is read and rows are scaled: once for each model that is fitted (the method, k-means beside it, and
k-means on features, with which the report compares).

python benchmarks/trace.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import coterie
from coterie.estimator.base import Clusterer
from coterie.registry import get
from coterie.train.engine import Engine
from coterie.train.rows import Rows

ROOT = Path(coterie.__file__).parent


def files_of_a_step(key: str) -> list[str]:
    """Files whose code runs during the second training step of a method."""
    seen: set[str] = set()

    def tracer(frame, event, arg):
        path = frame.f_code.co_filename
        if path.startswith(str(ROOT)):
            seen.add(str(Path(path).relative_to(ROOT)))

    one_step = Engine._one_step

    def watched(engine, index):
        if engine.phase.name == "train" and engine.step == 1:
            sys.setprofile(tracer)
            try:
                one_step(engine, index)
            finally:
                sys.setprofile(None)
        else:
            one_step(engine, index)

    Engine._one_step = watched
    try:
        cls = get(key)
        X = np.random.default_rng(0).normal(size=(120, 6)).astype(np.float32)
        cls(3, random_state=0, **{**cls.tiny, "batch_size": 40}).fit(X)
    finally:
        Engine._one_step = one_step
    return sorted(seen)


def rows_of_a_run() -> dict[str, int]:
    """How often rows are wrapped and a file is read, from a .csv to its report."""
    from coterie.cli import main
    from coterie.data import csvfile

    counts = {"models fitted": 0, "Rows built": 0, "file read": 0}
    fit, build, read = Clusterer.fit, Rows.__init__, csvfile.read_csv

    def counted_fit(self, *args, **options):
        counts["models fitted"] += 1
        return fit(self, *args, **options)

    def counted(self, *args, **options):
        counts["Rows built"] += 1
        build(self, *args, **options)

    def counted_read(*args, **options):
        counts["file read"] += 1
        return read(*args, **options)

    Clusterer.fit, Rows.__init__, csvfile.read_csv = counted_fit, counted, counted_read
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            X = np.random.default_rng(0).normal(size=(120, 6))
            np.savetxt(path, X, delimiter=",", header="a,b,c,d,e,f", comments="")
            quick = ["--hidden", "16", "--epochs", "2", "--pretrain-epochs", "2"]
            out = ["--out", f"{folder}/run", "--report", "--quiet"]
            main(["fit", str(path), "--method", "dec", "--clusters", "3", *quick, *out])
    finally:
        Clusterer.fit, Rows.__init__, csvfile.read_csv = fit, build, read
    return counts


if __name__ == "__main__":
    for key in ("dec", "acedec"):
        found = files_of_a_step(key)
        print(f"{key}: a step runs through {len(found)} files: {', '.join(found)}")
    print(", ".join(f"{name}: {count}" for name, count in rows_of_a_run().items()))
