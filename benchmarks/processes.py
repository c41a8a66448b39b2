"""One process, two, four: what an epoch costs each of them, and the memory that each needs.

    python benchmarks/processes.py --rows 70000 --columns 784 --hidden 500 500 2000
    python benchmarks/processes.py --rows 70000 --columns 784 --hidden 500 500 2000 --alone
    python benchmarks/processes.py --rows 10000000 --columns 32 --epochs 0.1 --processes 1 2 4

DEC on rows from a memory map, each process with one thread; all processes are on this machine and
exchange gradients through shared memory. With --alone they are also measured without any exchange,
which is the least that their part of a batch can cost. `seconds` and `processor` are those of an
epoch of clustering, by the clock and by the processor (the slowest process counts); on a machine
with fewer free cores than processes only the second says something. `mb` is the peak memory of the
largest process, with the pages of the mapped file it has touched; `private_mb` is without them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import memory
import numpy as np


def child(job: dict) -> None:
    import torch

    from coterie import DEC
    from coterie.runtime.processes import World
    from coterie.train.engine import Engine

    torch.set_num_threads(1)
    if job["alone"]:
        World.sum_gradients = lambda *args, **how: None
    private = memory.Private()
    private.start()
    marks: list[tuple[float, float]] = []
    train, end_epoch = Engine._train, Engine._end_epoch

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time()))

    def begun(engine, *args):
        marks.clear()
        mark()
        train(engine, *args)

    def ended(engine, steps):
        end_epoch(engine, steps)
        mark()

    Engine._train, Engine._end_epoch = begun, ended
    X = np.load(job["path"], mmap_mode="r")
    own = {"hidden": tuple(job["hidden"]), "precision": job["precision"], "tol": 0.0}
    own |= {"pretrain_epochs": job["epochs"], "epochs": job["epochs"], "n_init": 1}
    own |= {"batch_size": job["batch"], "update_every": max(1.0, job["epochs"])}
    DEC(8, random_state=0, device="cpu", **own).fit(X)
    seconds, processor = np.diff(marks, axis=0).mean(0)
    told = {"seconds": seconds, "processor": processor, "mb": memory.peak_mb()}
    told["private_mb"] = private.mb
    rank = os.environ.get("RANK", "0")
    Path(job["path"]).with_name(f"told-{rank}.json").write_text(json.dumps(told))


def measure(processes: int, job: dict) -> dict:
    command = [sys.executable]
    if processes > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, __file__, "--child", json.dumps(job)], check=True, env=env)
    folder = Path(job["path"]).parent
    told = [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(processes)]
    return {name: max(t[name] for t in told) for name in told[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=70_000)
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 512])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--alone", action="store_true", help="also without exchange")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(json.loads(args.child))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        memory.write_file(path, args.rows, args.columns)
        job = {"path": str(path), **{k: v for k, v in vars(args).items() if k != "child"}}
        first: dict = {}
        cases = [(p, a) for p in args.processes for a in (False, True) if not a or args.alone]
        for processes, alone in cases:
            if alone and processes == 1:
                continue
            found = measure(processes, {**job, "alone": alone})
            first = first or found
            line = f"{processes} processes{', nothing exchanged' if alone else ''}:"
            for name, value in found.items():
                line += f"  {name} {value:.2f} ({value / first[name]:.2f})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
