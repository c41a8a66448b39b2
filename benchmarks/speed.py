"""All figures about speed and scale in one command, into results/speed.json and a plot.

    python benchmarks/speed.py                     # everything up to 10 million rows
    python benchmarks/speed.py --max-rows 100000 --max-k 100   # a few minutes
    python benchmarks/speed.py --only parity,predict
    python benchmarks/speed.py --only kith --sets digits "18,846 x 256"

parity   the engine against a loop written by hand (parity.py)
predict  `predict` against the bare encoder
rows     cost of a fit per row, from 10 thousand to 10 million rows of a memory map (memory.py)
k        cost of a clustering epoch and memory from 10 to 1,000 clusters on 100 thousand rows
memory   fit and predict on the largest memory map (memory.py)
kith     whole fits of Kith in processor time, beside its heads alone and scikit-learn's k-means (10
         restarts): a small table, digits, vectors, and sets that COTERIE_DATA has

ClustPy beside coterie is peers.py, which needs a venv for it; what it has measured is printed too.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib
import memory
import numpy as np
import parity
import scipy.sparse as sp
import speedfile
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

import coterie
from coterie.data import available

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = 32
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
CLUSTERS = (10, 30, 100, 300, 1000)
CLUSTER_ROWS = 100_000
NOT_HERE = ("not found", "to fetch")


def measure_parity(args) -> None:
    for name, (n, d, goal) in parity.SIZES.items():
        ratio, gap = parity.compare(n, d, args.epochs)
        print(f"parity   {name:10} engine / by hand = {ratio:.3f} (goal {goal})")
        speedfile.put("parity", name, {"ratio": ratio, "goal": goal, "largest_gap": gap})


def measure_predict(args) -> None:
    """In turns on the same rows in memory; both in chunks of the same size."""
    from coterie import DEC
    from coterie.train.rows import ENCODE_ROWS

    rng = np.random.default_rng(0)
    for d in (COLUMNS, 784):
        X = rng.random((min(args.max_rows, 20_000), d), dtype=np.float32)
        small = {"pretrain_epochs": 0.1, "epochs": 0.1, "n_init": 1}
        model = DEC(10, random_state=0, scale="none", **small).fit(X)
        x, seconds = torch.from_numpy(X), {"predict": [], "encoder": []}
        for _ in range(5):
            begin = time.perf_counter()
            model.predict(X)
            middle = time.perf_counter()
            with torch.inference_mode():
                for part in x.split(ENCODE_ROWS):
                    model.network_.encode(part)
            seconds["predict"].append(middle - begin)
            seconds["encoder"].append(time.perf_counter() - middle)
        best = {side: min(times) for side, times in seconds.items()}
        rate, ratio = len(X) / best["predict"], best["predict"] / best["encoder"]
        print(f"predict  {d:4} columns: {rate:,.0f} rows/s, {ratio:.2f} times the bare encoder")
        widths = [p.shape[0] for p in model.network_.encoder.parameters() if p.ndim == 2]
        found = {"rows_per_second": rate, "ratio_to_encoder": ratio}
        found["network"] = "-".join(map(str, widths))
        speedfile.put("predict", f"{d} columns", found)


def measure_rows(args) -> None:
    sizes = [n for n in ROWS if n <= args.max_rows]
    costs = memory.cost_per_row(sizes, COLUMNS, args.repeats, args.row_epochs)
    for n, seconds in costs.items():
        found = {"microseconds_per_row": 1e6 * seconds, "epochs": args.row_epochs}
        speedfile.put("rows", str(n), {"rows": n, **found})


def measure_k(args) -> None:
    with tempfile.TemporaryDirectory() as folder:
        n = min(CLUSTER_ROWS, args.max_rows)
        path = Path(folder) / "x.npy"
        memory.write_file(path, n, COLUMNS)
        for k in (k for k in CLUSTERS if k <= args.max_k):
            found = memory.child(path, "dec", k, 1, 1)
            print(
                f"k        {k:5}: {found['phases']['train']:.1f} s per clustering epoch, "
                f"{found['phases']['init']:.1f} s for k-means, peak {found['fit_mb']:.0f} MB"
            )
            speedfile.put("k", f"{n}/{k}", found)


def measure_memory(args) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        memory.write_file(path, args.max_rows, COLUMNS)
        for method in ("kmeans", "dec"):
            found = memory.child(path, method, 8, 0.2, 0.2)
            print(
                f"memory   {method}: {args.max_rows:,} rows x {COLUMNS} "
                f"({path.stat().st_size / 1e9:.1f} GB): fit {found['fit_mb']:.0f} MB, "
                f"predict {found['predict_mb']:.0f} MB"
            )
            speedfile.put("memory", f"{method}/{args.max_rows}", found)


def kith_rows() -> dict[str, tuple[Any, int]]:
    """Rows and clusters by name."""
    rng, found = np.random.default_rng(0), {}
    found["200 x 2"] = make_blobs(200, 2, centers=3, random_state=0)[0], 3
    found["digits"] = load_digits().data, 10
    centers = rng.normal(size=(20, 256))
    vectors = centers[rng.integers(20, size=18_846)] + 1.5 * rng.normal(size=(18_846, 256))
    found["18,846 x 256"] = vectors.astype(np.float32), 20
    here = {entry["name"] for entry in available() if entry["where"] not in NOT_HERE}
    for name in ("worm_neuron_cells", "pendigits", "usps", "cifar10_10k", "gtsrb_test", "mnist"):
        if name in here:
            data = coterie.load_data(name)
            found[name] = data.X, len(np.unique(data.labels))
    return found


def measure_kith(args) -> None:
    coterie.Kith(3, random_state=0).fit(make_blobs(200, 2, centers=3)[0])  # imports, first calls
    for name, (X, k) in kith_rows().items():
        if args.sets and name not in args.sets:
            continue
        begin = time.process_time()
        coterie.Kith(k, random_state=0).fit(X)
        took = time.process_time() - begin
        coterie.Kith(k, random_state=0, sizes="free").fit(X)  # heads alone, no other candidates
        middle = time.process_time()
        heads = middle - begin - took
        flat = X if sp.issparse(X) else np.asarray(X, np.float32).reshape(len(X), -1)
        with threadpool_limits(1):
            KMeans(k, n_init=10, random_state=0).fit(flat)
        beside = time.process_time() - middle
        print(
            f"kith     {name:18} {took:6.2f} s, {took / heads:.2f} times its heads alone, "
            f"{took / beside:5.1f} times k-means"
        )
        found = {"processor_seconds": took, "times_heads": took / heads}
        found["times_kmeans"] = took / beside
        speedfile.put(
            "kith", name, {"rows": len(flat) if not sp.issparse(X) else X.shape[0], **found}
        )


def plot(path: Path) -> None:
    """Cost against rows and against k, as far as they were measured."""
    found = speedfile.read()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    rows = sorted(found.get("rows", {}).values(), key=lambda r: r["rows"])
    costs = [r["microseconds_per_row"] for r in rows]
    left.plot([r["rows"] for r in rows], costs, "o-")
    left.set(xscale="log", xlabel="rows", ylabel="microseconds per row", ylim=(0, None))
    clusters = sorted(found.get("k", {}).values(), key=lambda r: r["k"])
    right.plot([r["k"] for r in clusters], [r["phases"]["train"] for r in clusters], "o-")
    right.set(xscale="log", xlabel="clusters", ylabel="seconds per epoch", ylim=(0, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def show_peers() -> None:
    groups: dict[str, list[dict]] = {}
    for key, row in speedfile.read().get("peers", {}).items():
        groups.setdefault(key.rpartition("/")[0], []).append(row)  # all seeds
    for key, found in sorted(groups.items()):
        # a fit that stopped at its goal has no scores of its own, but the course that led there
        nmi = statistics.fmean(r["course"][-1][2] if r["nmi"] is None else r["nmi"] for r in found)
        seconds = statistics.fmean(r["fit_cpu"] or r["course"][-1][1] for r in found)
        print(f"peers    {key:28} NMI {nmi:.3f} in {seconds:.0f} s ({len(found)} seeds)")


PARTS = {
    "parity": measure_parity,
    "predict": measure_predict,
    "rows": measure_rows,
    "k": measure_k,
    "memory": measure_memory,
    "kith": measure_kith,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--max-rows", type=int, default=ROWS[-1])
    parser.add_argument("--max-k", type=int, default=CLUSTERS[-1])
    parser.add_argument("--repeats", type=int, default=3, help="of the cost per row")
    parser.add_argument("--row-epochs", type=float, default=0.25, help="of both phases, for rows")
    parser.add_argument("--epochs", type=int, default=9, help="of parity")
    parser.add_argument("--sets", nargs="*", help="of part kith, by name; all unless given")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in args.only.split(","):
        PARTS[name](args)
    show_peers()
    plot(speedfile.PATH.parent / "speed.svg")


if __name__ == "__main__":
    main()
