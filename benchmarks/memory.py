"""Peak memory of fit and predict on a memory-mapped file, and cost per row against rows.

python benchmarks/memory.py --gigabytes 5        # one file, peak memory of fit and of predict
python benchmarks/memory.py --rows 10000 1000000 # seconds per row at two sizes, in turns
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

CHUNK = 1 << 16


def write_file(path: Path, n: int, d: int) -> None:
    """Eight blobs in d dimensions, written block by block."""
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 3, (8, d)).astype(np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
    for start in range(0, n, CHUNK):
        stop = min(start + CHUNK, n)
        noise = rng.standard_normal((stop - start, d), dtype=np.float32)
        out[start:stop] = centers[rng.integers(0, 8, stop - start)] + noise
    out.flush()


def peak_mb() -> float:
    """Peak of this process; ru_maxrss would start at that of the process which started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Private(threading.Thread):
    """Peak of this process's own memory: pages of a mapped file, which others can use or the
    system take away, are not counted. The kernel keeps no such peak, so a thread looks."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.mb = 0.0

    def run(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            self.mb = max(self.mb, int(status.split("RssAnon:")[1].split()[0]) / 1024)
            time.sleep(0.02)


def measure(path: str, method: str, k: int, pretrain_epochs: float, epochs: float) -> dict:
    """Seconds and peaks of fit and predict of this process: give it one of its own (`child`)."""
    from coterie import registry

    X = np.load(path, mmap_mode="r")
    cls = registry.get(method)
    params = {"random_state": 0}
    if method != "kmeans":
        params |= {"pretrain_epochs": pretrain_epochs, "epochs": epochs, "tol": 0.0}
    begin = time.perf_counter()
    model = cls(k, **params).fit(X)
    out = {"rows": len(X), "k": k, "fit_seconds": time.perf_counter() - begin}
    out |= {"phases": model.seconds_, "fit_mb": peak_mb()}
    begin = time.perf_counter()
    model.predict(X)
    rate = len(X) / (time.perf_counter() - begin)
    return out | {"predict_rows_per_second": rate, "predict_mb": peak_mb()}


def child(path: Path, method: str, k: int, pretrain_epochs: float, epochs: float) -> dict:
    """`measure` in a fresh process, so that the peak is that of the fit."""
    job = json.dumps([str(path), method, k, pretrain_epochs, epochs])
    command = [sys.executable, __file__, "--child", job]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def cost_per_row(
    sizes: list[int], d: int, repeats: int = 3, epochs: float = 2.0
) -> dict[int, float]:
    """As many epochs of pre-training as of clustering at every size, the sizes in turns.

    Seconds of the processor for a whole fit, per row; little changed by other work.
    """
    from coterie import DEC

    seconds: dict[int, list[float]] = {n: [] for n in sizes}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            write_file(Path(folder) / f"{n}.npy", n, d)
        for turn in range(repeats):
            for n in sizes:
                X = np.load(Path(folder) / f"{n}.npy", mmap_mode="r")
                both = {"pretrain_epochs": epochs, "epochs": epochs, "update_every": epochs / 2}
                # the same network and rate at every size, whatever the default does for many rows
                own = {"hidden": (512, 512), "pretrain_lr": 3e-3, "pretrain_schedule": "onecycle"}
                model = DEC(8, random_state=turn, **both, **own, tol=0)
                begin = time.process_time()
                model.fit(X)
                seconds[n].append((time.process_time() - begin) / n)
    for n in sizes:
        print(f"{n:>10,} rows: {1e6 * min(seconds[n]):.2f} microseconds per row", flush=True)
    print(f"ratio of the last to the first: {min(seconds[sizes[-1]]) / min(seconds[sizes[0]]):.3f}")
    return {n: min(seconds[n]) for n in sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float)
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--columns", type=int, help="784; 32 with --rows")
    parser.add_argument("--methods", default="kmeans,dec")
    parser.add_argument("--pretrain-epochs", type=float, default=0.2)
    parser.add_argument("--epochs", type=float, default=0.2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measure(*json.loads(args.child))))
        return
    if args.rows:
        cost_per_row(args.rows, args.columns or 32)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        columns = args.columns or 784
        n = int((args.gigabytes or 5) * 1e9 / 4 / columns)
        write_file(path, n, columns)
        for method in args.methods.split(","):
            found = child(path, method, 8, args.pretrain_epochs, args.epochs)
            print(
                f"{method:8} fit: {n:,} rows, {found['fit_seconds']:.1f} s, peak "
                f"{found['fit_mb']:.0f} MB; predict: {found['predict_rows_per_second']:,.0f} "
                f"rows/s, peak {found['predict_mb']:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
