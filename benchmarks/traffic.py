"""What two processes send each other: bytes per step, per update and per fit, by measurement.

    python benchmarks/traffic.py --method dec --rows 20000

Starts two gloo processes on this machine and counts what each hands to a collective operation
(an all-reduce then moves 2 (p - 1) / p times that on a ring of p processes).
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from collections import Counter

import numpy as np
import speedfile
import torch
import torch.distributed as dist


def worker(job: dict) -> None:
    from coterie import registry
    from coterie.runtime.shared_sum import SharedSum
    from coterie.train.engine import Engine
    from coterie.train.shards import Ahead

    sent: Counter = Counter()
    place = ["rest"]

    def counted(operation):
        def call(tensor, *args, **kwargs):
            sent[place[0]] += tensor.nbytes
            return operation(tensor, *args, **kwargs)

        return call

    def at(name, method):
        def call(self, *args):
            before, place[0] = place[0], name
            sent[f"{name} count"] += 1
            try:
                return method(self, *args)
            finally:
                place[0] = before

        return call

    dist.all_reduce, dist.broadcast = counted(dist.all_reduce), counted(dist.broadcast)
    Engine._one_step, Engine._update = at("step", Engine._one_step), at("update", Engine._update)
    Ahead.turn_to = at("ahead", Ahead.turn_to)
    SharedSum.open = lambda *args: None  # as between machines
    X = np.random.default_rng(0).normal(size=(job["rows"], job["columns"])).astype(np.float32)
    cls = registry.get(job["method"])
    own = (
        {"pretrain_epochs": 1, "epochs": 2, "n_init": 1}
        if "pretrain" in cls(2).get_params()
        else {}
    )
    model = cls(10, random_state=0, tol=0.0, **own) if own else cls(10, random_state=0)
    model.fit(X)
    if os.environ["RANK"] == "0":
        found = {
            "bytes_per_step": sent["step"] / max(sent["step count"], 1),
            "bytes_per_update": sent["update"] / max(sent["update count"], 1),
            "bytes_ahead_per_step": sent["ahead"] / max(sent["ahead count"], 1),
            "bytes_besides": sent["rest"],
            "parameters": sum(p.numel() for p in model.network_.parameters()),
            "rows": job["rows"],
        }
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", default="dec")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        torch.set_num_threads(1)
        worker(json.loads(args.worker))
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    job = json.dumps({"method": args.method, "rows": args.rows, "columns": args.columns})
    runs = []
    for rank in range(2):
        env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, __file__, "--worker", job]
        runs.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    text, _ = (run.communicate()[0] for run in runs)
    found = json.loads(text.strip().splitlines()[-1])
    print(f"{args.method}: {found['parameters']:,} parameters, {args.rows:,} rows")
    print(f"  {found['bytes_per_step']:,.0f} bytes per step")
    print(f"  {found['bytes_ahead_per_step']:,.0f} bytes per step of per-row tensors, sent ahead")
    print(f"  {found['bytes_per_update']:,.0f} bytes per full-data update")
    print(f"  {found['bytes_besides']:,} bytes in the rest of the fit (start, k-means, labels)")
    speedfile.put("traffic", f"{args.method}/{args.rows}", found)


if __name__ == "__main__":
    main()
