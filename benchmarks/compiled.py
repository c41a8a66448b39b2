"""Does torch.compile pay for a training step on this processor?

    python benchmarks/compiled.py

Two copies of the papers' autoencoder (784-500-500-2000-10, batches of 256, fused Adam), one of them
compiled, take steps in turns with one thread; the ratio of processor times is that of the medians.
Compiling itself is timed apart.
"""

import statistics
import time
from copy import deepcopy

import torch

from coterie.research.bench.cost import BATCH, autoencoder

COLUMNS, STEPS, WARM_UP = 784, 40, 5


def stepper(network, half: bool, compiled: bool):
    optimizer = torch.optim.Adam(network.parameters(), fused=True)

    def loss(x):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            return (network(x) - x).square().sum(1).mean()

    found = torch.compile(loss) if compiled else loss

    def step(x) -> float:
        begin = time.process_time()
        optimizer.zero_grad()
        found(x).backward()
        optimizer.step()
        return time.process_time() - begin

    return step


def main():
    torch.set_num_threads(1)
    x = torch.rand(BATCH, COLUMNS, generator=torch.Generator().manual_seed(0))
    for half in (False, True):
        network = autoencoder(COLUMNS, torch.Generator().manual_seed(0))
        plain, compiled = stepper(deepcopy(network), half, False), stepper(network, half, True)
        begin = time.perf_counter()
        for _ in range(WARM_UP):
            compiled(x), plain(x)
        waited = time.perf_counter() - begin
        times = [(plain(x), compiled(x)) for _ in range(STEPS)]
        a, b = (statistics.median(column) for column in zip(*times))
        name = "half" if half else "single"
        print(
            f"{name}: plain {1e3 * a:.1f} ms, compiled {1e3 * b:.1f} ms, ratio {b / a:.2f}; ",
            end="",
        )
        print(f"first {WARM_UP} steps of both {waited:.0f} s", flush=True)


if __name__ == "__main__":
    main()
