"""Counts for autoencoders: all columns as they are, or logarithms of the most variable ones.

    python benchmarks/counts.py counts.npz labels.npy --methods dec idec --seeds 3

Each method is fitted with counts="log" and counts="raw", in turns, with one thread; times are those
of the processor. k-means on Kith's features of the same counts comes first, as something to beat.
"""

import argparse
import json
import time
import warnings

import numpy as np
import scipy.sparse as sp
import torch

import coterie
from coterie.metrics import accuracy, nmi


def measure(model, X, y) -> list[float]:
    begin = time.process_time()
    model.fit(X)
    return [accuracy(y, model.labels_), nmi(y, model.labels_), time.process_time() - begin]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("counts", help="a CSR matrix, as scipy.sparse.save_npz writes it")
    parser.add_argument("labels", help="a .npy file")
    parser.add_argument("--methods", nargs="+", default=["dec", "idec"])
    parser.add_argument("--kinds", nargs="+", default=["log", "raw"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--settings", default="{}", help="parameters of all methods, as JSON")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y = sp.csr_matrix(sp.load_npz(args.counts)), np.load(args.labels)
    k, methods, changes = len(np.unique(y)), coterie.list_methods(), json.loads(args.settings)
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {k} clusters")
    jobs = [("feature_kmeans", {})]
    jobs += [(key, {"counts": kind, **changes}) for key in args.methods for kind in args.kinds]
    for key, given in jobs:
        found = [measure(methods[key](k, random_state=s, **given), X, y) for s in range(args.seeds)]
        acc, score, took = np.mean(found, 0)
        what = given.get("counts", "")
        print(f"{key:12} {what:4} ACC {acc:.3f} NMI {score:.3f} in {took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
