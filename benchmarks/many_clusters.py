"""K-means with many clusters: ours beside the plain rule and scikit-learn, in one run.

    python benchmarks/many_clusters.py --rows 100000 --columns 10 --clusters 1000

Three sides on the same rows, with one thread; times are those of the processor:

full      ten restarts of Lloyd's iterations, each seeded on up to 100,000 rows
ours      `coterie.math.kmeans`: fewer restarts, a sample for the seeding, a stop by the gain
sklearn   scikit-learn's KMeans with one restart

The rows are drawn from 300 normal distributions (`mixture`) or from one (`flat`).
"""

import argparse
import time
from unittest import mock

import numpy as np
import torch
from sklearn.cluster import KMeans

from coterie.math import kmeans as ours


def made_up(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, columns))
    if kind == "mixture":
        noise += 3 * rng.normal(size=(300, columns))[rng.integers(300, size=rows)]
    return noise.astype(np.float32)


def full(x: torch.Tensor, k: int, seed: int) -> float:
    with mock.patch.object(ours, "MANY_CLUSTERS", k + 1):
        return ours.kmeans(x, k, rng=np.random.default_rng(seed), n_init=10).inertia


def short(x: torch.Tensor, k: int, seed: int) -> float:
    return ours.kmeans(x, k, rng=np.random.default_rng(seed), n_init=10).inertia


def sklearn(x: torch.Tensor, k: int, seed: int) -> float:
    return KMeans(k, n_init=1, random_state=seed).fit(x.numpy()).inertia_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[10])
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000])
    parser.add_argument("--kinds", nargs="+", default=["mixture", "flat"])
    parser.add_argument("--sides", nargs="+", default=["full", "ours", "sklearn"])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    sides = {"full": full, "ours": short, "sklearn": sklearn}
    print(f"{'rows':8}{'columns':>8}{'k':>6} side     seconds  inertia over the first side's")
    for kind in args.kinds:
        for columns in args.columns:
            for k in args.clusters:
                first = None
                for side in args.sides:
                    took, inertia = [], []
                    for seed in range(args.seeds):
                        x = torch.from_numpy(made_up(kind, args.rows, columns, seed))
                        begin = time.process_time()
                        inertia.append(sides[side](x, k, seed))
                        took.append(time.process_time() - begin)
                    first = first or np.mean(inertia)
                    ratio = np.mean(inertia) / first
                    line = f"{kind:8}{columns:8}{k:6} {side:8}{np.mean(took):8.1f}{ratio:9.4f}"
                    print(line, flush=True)


if __name__ == "__main__":
    main()
