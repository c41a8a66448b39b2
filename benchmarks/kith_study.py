"""Which label-free measure finds Kith's best clustering, and what does each of its steps give?

    python benchmarks/kith_study.py select usps pendigits reuters_r8 --seeds 2
    python benchmarks/kith_study.py ablate usps pendigits reuters_r8 coil20 --seeds 3

`select` fits Kith, keeps every candidate (direct heads, over-heads merged in three ways) and asks
each measure to pick one; labels only grade the picks. `ablate` leaves out or changes one step at a
time. Both append one JSON line per fit to --out and print tables of means.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from coterie import Kith, load_data
from coterie.bench.cost import ae_epoch_seconds
from coterie.metrics import scores
from coterie.parts.graph import smooth
from coterie.parts.merge import (
    agreement,
    greedy_merge,
    joint,
    normalised_cut,
    one_hot,
    spectral_merge,
)

ABLATIONS = {
    "kith": {},
    "features: raw columns": {"kind": "table"},
    "graph: 3 neighbours": {"n_neighbors": 3},
    "graph: 20 neighbours": {"n_neighbors": 20},
    "views: none": {"mix": 0.0, "noise": 0.0, "dropout": 0.0},
    "views: noise only": {"mix": 0.0},
    "heads: direct only": {"sizes": "equal"},
    "heads: merged only": {"sizes": "free"},
    "heads: one over-head": {"over_heads": 1},
    "outputs: 2 per cluster": {"outputs": 2},
    "outputs: 8 per cluster": {"outputs": 8},
    "balance 1.3": {"balance": 1.3},
    "balance 4": {"balance": 4.0},
    "no refine": {"refine_epochs": 0},
}

GRADES = ("rule", "acc", "nmi", "nmi_geo", "ari")


class Recorded(Kith):
    """Kith that remembers all candidates and what each measure says about them."""

    def _candidates(self, engine):
        found = super()._candidates(engine)
        head, k = engine.head, self.n_clusters
        h = torch.cat([engine.network.body(part) for part in head.z.split(4096)])
        self.seen = []

        def see(rule, p):
            labels = p.argmax(1)
            told = measures(p, labels, head.graph, k)
            self.seen.append({"rule": rule, **told, "labels": labels.numpy()})

        for made in found["direct"]:
            see("direct", (h @ made["weight"] + made["bias"]).softmax(1))
        for made in found["spectral"]:  # one for each over-head
            p = (h @ made["weight"] + made["bias"]).softmax(1)
            j = joint(p, head.graph)
            see("spectral", p @ one_hot(spectral_merge(j, k, np.random.default_rng(0)), k))
            see("mod", p @ one_hot(greedy_merge(j, k), k))
            see("ncut", p @ one_hot(greedy_merge(j, k, "ncut"), k))
        return found


def measures(p, labels, graph, k):  # (n, k), (n,), (n, neighbours) -> dict, larger is better
    """What can be said of a clustering without labels."""
    j = joint(one_hot(labels, k), graph)
    d = j.sum(1)
    soft = joint(p, graph)
    inform = float((j * (j / (d[:, None] * d).clamp_min(1e-300)).clamp_min(1e-300).log()).sum())
    entropy = float(-(d * d.clamp_min(1e-300).log()).sum())
    near = (p * smooth(p, graph)).sum(1).clamp_min(1e-12).log().mean()
    mean = p.mean(0)
    spread = -(mean * mean.clamp_min(1e-12).log()).sum()
    return {
        "normalised cut": -normalised_cut(j),
        "soft normalised cut": -normalised_cut(soft),
        "worst cluster's cut": float((j.diagonal() / d.clamp_min(1e-12)).min()),
        "cut": float(j.diagonal().sum()),
        "modularity": float((j.diagonal() - d * d).sum()),
        "edge information": inform,
        "edge information / entropy": inform / max(entropy, 1e-12),
        "training loss": float(near + 2 * spread),
        "confidence": float(p.amax(1).mean()),
    }


def study(args):
    regret = defaultdict(list)
    for name in args.sets:
        data = load_data(name, data_dir=args.data_dir)
        for seed in range(args.seeds):
            k = len(np.unique(data.labels))
            model = Recorded(k, random_state=seed).fit(data.X)
            table = agreement([c["labels"] for c in model.seen])
            for c, row in zip(model.seen, table):
                c["agreement"] = float((row.sum() - 1) / (len(row) - 1))
                c |= scores(data.labels, c.pop("labels"))
            best = max(c["nmi"] for c in model.seen)
            record = {"set": name, "seed": seed, "candidates": model.seen}
            record["final"] = scores(data.labels, model.labels_)
            write(args.out, record)
            for measure in [
                m for m in model.seen[0] if m not in ("rule", "acc", "nmi", "nmi_geo", "ari")
            ]:
                for pool in ("all", "no ncut merge"):
                    allowed = [c for c in model.seen if pool == "all" or c["rule"] != "ncut"]
                    picked = max(allowed, key=lambda c: c[measure])
                    regret[measure, pool].append((name, best - picked["nmi"], picked["acc"]))
            print(name, seed, "best NMI", round(best, 3), "final", record["final"], flush=True)
    print("\nNMI below the best candidate, mean and worst over fits")
    for (measure, pool), rows in sorted(
        regret.items(), key=lambda kv: np.mean([r[1] for r in kv[1]])
    ):
        lost = [r[1] for r in rows]
        worst = max(rows, key=lambda r: r[1])
        print(f"{measure:28s}{pool:15s}{np.mean(lost):.4f}  {max(lost):.3f} ({worst[0]})")


def ablate(args):
    means = defaultdict(list)
    for name in args.sets:
        data = load_data(name, data_dir=args.data_dir)
        k, unit = len(np.unique(data.labels)), ae_epoch_seconds(data.X)
        for what, changes in ABLATIONS.items():
            changes = dict(changes)
            if "outputs" in changes:
                changes["outputs"] *= k
            X = data.X
            if changes.get("kind") == "table" and X.ndim > 2:
                X = X.reshape(len(X), -1)
            for seed in range(args.seeds):
                begin = time.perf_counter()
                model = Kith(k, random_state=seed, **changes).fit(X)
                seconds = time.perf_counter() - begin
                found = scores(data.labels, model.labels_)
                write(
                    args.out,
                    {"set": name, "what": what, "seed": seed, "aee": seconds / unit, **found},
                )
                means[what, name].append((found["acc"], found["nmi"], found["ari"], seconds / unit))
            acc, nmi, ari, aee = np.mean(means[what, name], 0)
            line = f"{name:20s}{what:25s}{acc:.3f} {nmi:.3f} {ari:.3f}  {aee:.1f} AEE"
            print(line, flush=True)


def write(path, record):
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps(record) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("select", "ablate"))
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--out", default=None, help="JSON lines are added to this file")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    (study if args.what == "select" else ablate)(args)


if __name__ == "__main__":
    main()
