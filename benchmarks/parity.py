"""What the engine costs over a loop written by hand: same network, batches, optimiser, weights.

    python benchmarks/parity.py

Both loops run in turns in one process on the same rows in the same order, on one thread. The ratio
of the medians of their processor time is printed, which other work on the machine hardly changes,
and the largest difference of the weights after equal steps.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from coterie.nets import build
from coterie.runtime.processes import World
from coterie.runtime.progress import Progress
from coterie.runtime.rng import torch_rng
from coterie.train.engine import Engine
from coterie.train.optim import Optim
from coterie.train.plan import Phase
from coterie.train.pretrain import reconstruction
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling

SIZES = {"mnist": (8192, 784, 1.05), "pendigits": (8192, 16, 1.15)}  # rows, columns, goal


def network(d: int) -> torch.nn.Module:
    return build(
        "mlp",
        (d,),
        embedding_dim=10,
        hidden=(500, 500, 2000),
        channels=(1, 1, 1),
        activation="relu",
        initializer="xavier",
        generator=torch_rng(0),
    )


class ByHand:
    """The loop that a person would write."""

    def __init__(self, x: torch.Tensor):
        self.x, self.net = x, network(x.shape[1])
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)

    def epoch(self, epoch: int) -> None:
        order = torch.randperm(len(self.x), generator=torch_rng(0, "pretrain", epoch))
        for start in range(0, len(order), 256):
            x = self.x[order[start : start + 256]]
            loss = (x - self.net.decode(self.net.encode(x))).square().sum(1).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


class ByEngine:
    """The engine, held at the end of each epoch so that the two can take turns."""

    def __init__(self, rows: Rows, d: int):
        self.net = network(d)
        self.engine = Engine(
            rows, self.net, lambda z, h: z, seed=0, world=World(), progress=Progress(0)
        )
        self.marks: list[float] = []

    def run(self, epochs: int, between) -> list[float]:
        begin = [time.process_time()]
        end_epoch = self.engine._end_epoch

        def hold(steps):
            end_epoch(steps)
            self.marks.append(time.process_time() - begin[0])
            between(self.engine.epoch)
            begin[0] = time.process_time()

        self.engine._end_epoch = hold
        self.engine.run([Phase("pretrain", epochs, reconstruction, optim=Optim(lr=1e-3))])
        return self.marks


def compare(n: int, d: int, epochs: int) -> tuple[float, float]:
    x = np.random.default_rng(0).random((n, d), dtype=np.float32)
    rows = Rows(x, fit_scaling(x, "none"))
    hand, engine, seconds = ByHand(torch.from_numpy(x)), ByEngine(rows, d), []

    def turn(epoch: int) -> None:
        begin = time.process_time()
        hand.epoch(epoch)
        seconds.append(time.process_time() - begin)

    marks = engine.run(epochs, turn)
    pairs = zip(hand.net.state_dict().values(), engine.net.state_dict().values())
    gap = max(float((a - b).abs().max()) for a, b in pairs)
    return statistics.median(marks[1:]) / statistics.median(seconds[1:]), gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=9)
    epochs = parser.parse_args().epochs
    torch.set_num_threads(1)
    for name, (n, d, goal) in SIZES.items():
        ratio, gap = compare(n, d, epochs)
        print(
            f"{name:10} engine / by hand = {ratio:.3f} (goal {goal})   weights differ by {gap:.1e}"
        )


if __name__ == "__main__":
    main()
