"""Which label-free rule finds the best of Kith's candidates?

    python benchmarks/judge_study.py collect          # fits; resumes where it ended
    python benchmarks/judge_study.py judge            # the table of rules
    python benchmarks/judge_study.py score            # Kith as it is, on all rows; resumes too

`collect` fits Kith without its last phase on at most 2,000 rows of each set, and appends a line to
results/judge_study.jsonl: for each candidate what every measure says of it, and its score against
the classes (ARI; NMI for the shared sets), which no measure has seen. `judge` asks each rule for
its favourite: regret is the score of the best candidate less that of the favourite. Rules may be
chosen on the sets whose name has an even digest; the others show how they do elsewhere. A set with
several labellings is a problem for each of them; the best one counts. `score` appends whole fits to
results/kith_scores.jsonl and prints the mean of each family of sets.
"""

import argparse
import hashlib
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    silhouette_score,
)

from coterie import Kith, load_data
from coterie.math.merge import (
    agreement,
    edge_information,
    joint,
    modularity,
    normalised_cut,
    one_hot,
)
from coterie.methods.kith.density import describe
from coterie.methods.kith.judge import ADEQUATE

RESULTS = Path(__file__).parent.parent / "results"
ROWS = 2000
SHARED = ("digits", "optdigits", "usps", "mnist", "fashion_mnist", "pendigits", "20newsgroups")
SHARED += ("reuters_r8", "cifar10_10k", "coil20", "orl_faces", "gtsrb_test", "worm_neuron_cells")
SHARED += ("wholesale",)


def problems(data_dir):
    """(name, rows, classes); class -1 is left out of scores."""
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
    yield from strangers()
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


def strangers():
    """Rows of kinds that the shared sets lack: mixed tables, embeddings, short texts."""
    for seed, (n, k) in enumerate(((300, 3), (800, 4), (1500, 6))):
        g = np.random.default_rng(10 + seed)
        y = g.integers(k, size=n)
        numbers = (1.6 * g.normal(size=(k, 5)))[y] + g.normal(size=(n, 5))
        coins = g.random((n, 6)) < g.uniform(0.1, 0.9, (k, 6))[y]
        skewed = 100 * np.exp(g.normal(size=(n, 2)) + 0.8 * (y[:, None] % 2))
        scaled = numbers * g.uniform(0.1, 50, 5)
        yield f"mixed/{seed}", np.c_[scaled, coins, skewed, g.normal(size=(n, 3))], y
    for seed, (n, d, k) in enumerate(((1500, 384, 10), (2000, 256, 30), (2000, 128, 5))):
        g = np.random.default_rng(20 + seed)
        top = g.normal(size=(max(2, k // 4), d))
        centers = top[g.integers(len(top), size=k)] + 0.8 * g.normal(size=(k, d))
        centers /= np.linalg.norm(centers, axis=1, keepdims=True)
        y = g.choice(k, size=n, p=g.dirichlet(np.full(k, 3.0)))
        noise = g.normal(size=(n, d)) / np.sqrt(np.arange(1, d + 1))
        X = centers[y] + noise / np.sqrt((1 / np.arange(1, d + 1)).sum())
        yield f"vector/{seed}", X / np.linalg.norm(X, axis=1, keepdims=True), y
    for seed, (n, k, length) in enumerate(((1500, 4, 6), (2000, 8, 8), (800, 5, 25))):
        yield f"short/{seed}", *short_texts(np.random.default_rng(seed), n, k, length)


def short_texts(g, n, k, length, words=4000, own=60):
    """Texts of a few words, half of them from the words of a topic."""
    common = 1 / np.arange(1, words + 1)
    common /= common.sum()
    topics = np.zeros((k, words))
    for topic in topics:
        topic[g.choice(words, own, replace=False)] = g.dirichlet(np.full(own, 0.5))
    y = g.choice(k, size=n, p=g.dirichlet(np.full(k, 5.0)))
    texts = []
    for c in y:
        count = max(3, g.poisson(length))
        about = g.random(count) < 0.5
        said = np.where(
            about, g.choice(words, count, p=topics[c]), g.choice(words, count, p=common)
        )
        texts.append(" ".join(f"w{w:04d}x" for w in said))
    return np.array(texts, object), y


def some(X, y, name):
    """At most 2,000 rows, the same ones each time."""
    if X.shape[0] <= ROWS:
        return X, y
    rng = np.random.default_rng(int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2**32)
    picked = np.sort(rng.choice(X.shape[0], ROWS, replace=False))
    return X[picked], y[picked]


def collect(args):
    done = {record["set"] for record in read(args.out)}
    for name, X, y in problems(args.data_dir):
        if name in done or args.only not in name:
            continue
        X, y = some(X, y, name)
        k, begin = len(np.unique(y[y >= 0])), time.process_time()
        given = list(X) if X.dtype == object else X
        model = Kith(k, random_state=args.seed, refine_epochs=0).fit(given)
        labels = {n: torch.from_numpy(v) for n, v in model.candidates_.items()}
        z, graph, rng = model.head_.z, model.head_.graph, np.random.default_rng(args.seed)
        record = {"set": name, "rows": len(z), "columns": z.shape[1], "k": k}
        record |= {"kind": model.kind_, "chosen": model.chosen_, "half": half(name)}
        record["gap"] = (
            describe(z, k, list(labels.values()), rng).gap if "mixture" in labels else None
        )
        table = agreement([v.numpy() for v in labels.values()])
        record["candidates"] = {
            n: {
                **measures(z, graph, v, k),
                "agreement": float((row.sum() - 1) / (len(row) - 1)),
                "score": score(name, y, v.numpy()),
            }
            for (n, v), row in zip(labels.items(), table)
        }
        with args.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        shown = {n: round(c["score"], 2) for n, c in record["candidates"].items()}
        print(name, f"{time.process_time() - begin:.1f} s", model.chosen_, shown, flush=True)


def score_fits(args):
    path = args.out.with_name("kith_scores.jsonl")
    done = {record["set"] for record in read(path)}
    for name, X, y in problems(args.data_dir):
        if name in done or args.only not in name:
            continue
        k, begin = len(np.unique(y[y >= 0])), time.process_time()
        model = Kith(k, random_state=args.seed).fit(list(X) if X.dtype == object else X)
        record = {"set": name, "rows": len(y), "k": k, "chosen": model.chosen_}
        record |= {"score": round(score(name, y, model.labels_), 4)}
        record |= {"stability": round(model.stability_.overall, 3)}
        record |= {"seconds": round(time.process_time() - begin, 2)}
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(record, flush=True)
    best = defaultdict(dict)
    for record in read(path):
        family, name = record["set"].split("/")[:2]
        best[family][name] = max(record["score"], best[family].get(name, -1))
    for family, scores in best.items():
        print(f"{family}: mean {np.mean(list(scores.values())):.3f} of {len(scores)} sets", scores)


def measures(z, graph, labels, k):
    """What can be said of a clustering without classes; larger is better."""
    j = joint(one_hot(labels, k), graph)
    used = len(labels.unique())
    return {
        "normalised cut": -normalised_cut(j),
        "worst cluster's cut": float((j.diagonal() / j.sum(1).clamp_min(1e-12)).min()),
        "modularity": modularity(j),
        "edge information": edge_information(j),
        "information and modularity": edge_information(j) + modularity(j),
        "silhouette": float(silhouette_score(z, labels)) if used > 1 else -1.0,
    }


def half(name):
    """0: rules may be chosen on this set; 1: they are only shown on it."""
    family = "/".join(name.split("/")[:2])  # all labellings of a set are in one half
    return int(hashlib.sha256(family.encode()).hexdigest(), 16) % 2


def score(name, y, labels):
    known = y >= 0
    grade = normalized_mutual_info_score if name.startswith("shared") else adjusted_rand_score
    return float(grade(y[known], labels[known]))


def favourites(record):
    """The candidate that each rule takes."""
    seen = record["candidates"]
    own = {n: c for n, c in seen.items() if n in ("direct", "merged")}

    def top(measure, among=seen):
        return max(among, key=lambda n: among[n][measure])

    adequate = record["gap"] is not None and record["gap"] < ADEQUATE
    found = {
        f"highest {m}" if m != "normalised cut" else "lowest normalised cut": top(m)
        for m in seen["direct"]
        if m != "score"
    }
    for m in ("normalised cut", "edge information", "information and modularity"):
        found[f"Gaussians if adequate, else {m}"] = "mixture" if adequate else top(m)
    found["Kith's heads by the lower cut"] = top("normalised cut", own)
    found["Kith"] = record["chosen"]
    return found | {f"always {n}": n for n in seen}


def judge(args):
    regret = defaultdict(lambda: defaultdict(dict))
    for record in read(args.out):
        kind = "tables" if record["kind"] == "table" else "other kinds"
        best = max(c["score"] for c in record["candidates"].values())
        for rule, name in favourites(record).items():
            got = record["candidates"][name]["score"]
            family = "/".join(record["set"].split("/")[:2])
            kept = regret[kind, record["half"]][rule]
            kept[family] = max(kept.get(family, (-1, 0)), (got, best - got))
    for (kind, part), rules in sorted(regret.items()):
        count = len(next(iter(rules.values())))
        print(f"\n{kind}, {('rules chosen here', 'kept back')[part]}: {count} sets")
        rows = {
            r: (np.mean([v[0] for v in s.values()]), [v[1] for v in s.values()])
            for r, s in rules.items()
        }
        for rule, (mean, lost) in sorted(rows.items(), key=lambda kv: -kv[1][0]):
            print(f"| {rule} | {mean:.3f} | {np.mean(lost):.3f} | {max(lost):.3f} |")


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("collect", "judge", "score"))
    parser.add_argument("--data-dir", default="data")
    parser.add_argument("--out", type=Path, default=RESULTS / "judge_study.jsonl")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="sets with this in their name")
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"collect": collect, "judge": judge, "score": score_fits}[args.what](args)


if __name__ == "__main__":
    main()
