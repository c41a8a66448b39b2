"""Does torch.compile pay on a CPU? A training step of a bare autoencoder with and without it.

    python benchmarks/compiled.py --columns 784 --hidden 500 500 2000

Steps with one thread, processor time, in turns; `first` is what the first step takes, in which the
code is made. Half is bfloat16 products, as precision="half" has them.
"""

import argparse
import time
from contextlib import nullcontext

import numpy as np
import torch

from coterie.nets import build
from coterie.nets.mlp import half_products
from coterie.runtime.rng import torch_rng


def stepper(columns: int, hidden: tuple, rows: int, half: bool, compiled: bool):
    net = build(
        "mlp", (columns,), embedding_dim=10, hidden=hidden, channels=(1, 1, 1),
        activation="relu", initializer="xavier", generator=torch_rng(0),
    )  # fmt: skip
    params, x = list(net.parameters()), torch.rand(rows, columns, generator=torch_rng(1))
    optimizer = torch.optim.Adam(params, fused=True)

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16) if half and compiled else nullcontext():
            rebuilt = net.decode(net.encode(x))
        return (rebuilt.float() - x).square().sum(1).mean()

    if compiled:
        loss = torch.compile(loss)

    def step() -> None:
        # a context variable is nothing that a compiler can look into
        with half_products(torch.device("cpu"), half and not compiled):
            grads = torch.autograd.grad(loss(), params)
        for p, g in zip(params, grads):
            p.grad = g
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--hidden", type=int, nargs="+", default=[500, 500, 2000])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    steps, took = {}, {}
    for half in (False, True):
        for compiled in (False, True):
            key = f"{'half' if half else 'single'}{', compiled' if compiled else ''}"
            steps[key] = stepper(args.columns, tuple(args.hidden), args.rows, half, compiled)
            begin = time.perf_counter()
            steps[key]()
            print(f"{key:17} first step {time.perf_counter() - begin:.1f} s", flush=True)
    for _ in range(args.rounds):
        for key, step in steps.items():
            begin = time.process_time()
            for _ in range(args.count):
                step()
            took.setdefault(key, []).append((time.process_time() - begin) / args.count)
    for key, times in took.items():
        ratio = np.median(times) / np.median(took["single"])
        print(f"{key:17} {1e3 * np.median(times):6.1f} ms  {ratio:.2f} of single")


if __name__ == "__main__":
    main()
