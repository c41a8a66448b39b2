"""What a run costs: memory, and time in a unit that carries over from machine to machine."""

import itertools
import math
import resource
import statistics
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

WIDTHS = (500, 500, 2000, 10)
BATCH = 256
WARM_UP, MEASURED = 3, 15  # steps; more would cost more than many a fit


def ae_epoch_seconds(X, seed: int = 0) -> float:
    """Seconds of one bare-PyTorch epoch of the d-500-500-2000-10 autoencoder on the rows of X.

    Batch 256, fused Adam, float32, the threads that are set. A bounded number of steps on real
    rows is timed after a warm-up; the median step, times the steps of an epoch, is the answer.
    Cutting a batch (and making sparse rows dense) is part of a step. A campaign measures before
    and after each run and keeps the smaller figure: a burst of other work on the machine then
    cannot make a method look cheaper than it is. (What was measured after one run is also what
    was measured before the next on the same rows.)
    """
    n, d = X.shape[0], math.prod(X.shape[1:])
    rng = np.random.default_rng(seed)
    batch = min(BATCH, n)
    network = autoencoder(d, torch.Generator().manual_seed(seed))
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    times = []
    for _ in range(WARM_UP + MEASURED):
        index = np.sort(rng.choice(n, batch, replace=False))
        begin = time.perf_counter()
        x = _rows(X, index)
        loss = (network(x) - x).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[WARM_UP:]) * n / batch


def autoencoder(d: int, generator: torch.Generator) -> nn.Sequential:  # (n, d) -> (n, d)
    """d-500-500-2000-10 and back; ReLU, linear code and output; PyTorch's starting weights."""
    sizes = [d, *WIDTHS, *WIDTHS[-2::-1], d]
    layers = []
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        layer = nn.utils.skip_init(nn.Linear, a, b)  # leaves the global generator alone
        for p in layer.parameters():
            nn.init.uniform_(p, -(a**-0.5), a**-0.5, generator=generator)
        layers.append(layer)
        if i not in (len(WIDTHS) - 1, len(sizes) - 2):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def _rows(X, index) -> torch.Tensor:  # (b,) -> (b, d) float32 of order one
    part = X[index].toarray() if sp.issparse(X) else np.asarray(X[index])
    scale = 1 / 255 if part.dtype == np.uint8 else 1
    return torch.from_numpy(part.reshape(len(index), -1).astype(np.float32) * np.float32(scale))


class PeakMemory:
    """Largest resident memory (MB) since it was made.

    Linux can forget the peak of earlier work in this process; elsewhere the peak of the whole
    process (ru_maxrss) stands in.
    """

    def __init__(self):
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.reset = True
        except OSError:
            self.reset = False

    def mb(self) -> float:
        if self.reset:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
