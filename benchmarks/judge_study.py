"""Which label-free rule finds the best of Kith's candidates?

    python benchmarks/judge_study.py collect          # fits, kept on disk; resumes where it ended
    python benchmarks/judge_study.py judge            # rules on what was collected

`collect` fits Kith without refining on at most 2,000 rows of each set and keeps features, graph and
the labels of every candidate. `judge` asks each rule for its favourite and only then looks at the
classes: regret is the score (ARI for small tables, NMI for the shared sets) of the best candidate
less that of the favourite. Sets whose name has an even digest are those on which rules may be
chosen; the table shows both halves. A set with several labellings counts with its best one.
"""

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coterie import Kith, load_data
from coterie.methods.kith.rivals import rivals

RESULTS = Path(__file__).parent.parent / "results"
ROWS = 2000
SHARED = [
    "digits",
    "optdigits",
    "usps",
    "mnist",
    "fashion_mnist",
    "pendigits",
    "20newsgroups",
    "reuters_r8",
    "cifar10_10k",
    "coil20",
    "orl_faces",
    "gtsrb_test",
    "worm_neuron_cells",
    "wholesale",
]


def problems(data_dir):
    """(name, rows, classes, number of clusters); class -1 is left out of scores."""
    path = Path(data_dir) / "shape_suite" / "shape_suite.npz"
    with np.load(path) as suite:
        for name in sorted({key.rsplit(".", 1)[0] for key in suite}):
            at = 0
            while f"{name}.y{at}" in suite:
                y = suite[f"{name}.y{at}"].astype(np.int64) - 1
                yield f"shape/{name}/{at}", suite[f"{name}.X"].astype(np.float32), y
                at += 1
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield f"table/{name}", X.astype(np.float32), y
    yield from generated()
    for name in SHARED:
        data = load_data(name, data_dir=data_dir, words=Kith.words)
        yield f"shared/{name}", data.X, np.asarray(data.labels)


def generated():
    X, y = datasets.make_moons(600, noise=0.06, random_state=0)
    yield "made/moons", X, y
    X, y = datasets.make_circles(600, noise=0.05, factor=0.5, random_state=0)
    yield "made/circles", X, y
    X, y = datasets.make_blobs(600, random_state=170)
    yield "made/anisotropic", X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y
    X, y = datasets.make_blobs(600, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    yield "made/varied", X, y
    X, y = datasets.make_blobs([1000, 50], 2, centers=[[0, 0], [6, 0]], random_state=0)
    yield "made/unequal", X, y


def some(X, y, name):
    """At most 2,000 rows, the same ones each time."""
    if X.shape[0] <= ROWS:
        return X, y
    rng = np.random.default_rng(int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2**32)
    picked = np.sort(rng.choice(X.shape[0], ROWS, replace=False))
    return X[picked], y[picked]


class Recorded(Kith):
    """Kith that keeps features, graph and the labels of all candidates."""

    key = "kith_recorded"

    def _candidates(self, engine):
        found = super()._candidates(engine)
        self.heads = {f"{f}{i}": c for f, made in found.items() for i, c in enumerate(made)}
        return found


def collect(args):
    args.cache.mkdir(parents=True, exist_ok=True)
    for name, X, y in problems(args.data_dir):
        path = args.cache / (name.replace("/", "+") + ".npz")
        if path.exists() or (args.only and args.only not in name):
            continue
        X, y = some(X, y, name)
        k = len(np.unique(y[y >= 0]))
        begin = time.process_time()
        model = Recorded(k, random_state=args.seed, refine_epochs=0).fit(X)
        middle = time.process_time()
        z, graph = model.head_.z, model.head_.graph
        best = [min(made, key=lambda c: c["cut"]) for made in ([*model.heads.values()],)]
        others = rivals(z, graph, k, np.random.default_rng(args.seed), [c["labels"] for c in best])
        labels = {n: c["labels"].numpy() for n, c in model.heads.items()}
        labels |= {n: v.numpy() for n, v in others.items()}
        labels["kith"] = model.labels_
        kept = {f"labels.{n}": v.astype(np.int16) for n, v in labels.items()}
        np.savez_compressed(path, z=z.numpy(), graph=graph.numpy(), y=y, **kept)
        took = f"{middle - begin:.1f} + {time.process_time() - middle:.1f} s"
        print(
            name,
            X.shape,
            took,
            {n: round(score(name, y, v), 2) for n, v in labels.items()},
            model.chosen_,
            flush=True,
        )


def score(name, y, labels):
    known = y >= 0
    grade = normalized_mutual_info_score if name.startswith("shared") else adjusted_rand_score
    return float(grade(y[known], labels[known]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("collect", "judge"))
    parser.add_argument("--data-dir", default="data")
    parser.add_argument("--cache", type=Path, default=Path("judge_cache"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"collect": collect}[args.what](args)


if __name__ == "__main__":
    main()
