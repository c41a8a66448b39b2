"""Which label-free measure finds Kith's best clustering, and what does each of its steps give?

    python benchmarks/kith_study.py select usps pendigits reuters_r8 --seeds 2
    python benchmarks/kith_study.py ablate usps pendigits reuters_r8 coil20 --seeds 3
    python benchmarks/kith_study.py large --rows 1000000 --columns 32

`select` fits Kith, keeps every candidate (direct heads, over-heads merged in three ways) and asks
each measure to pick one; labels only grade the picks. `ablate` leaves out or changes one step at a
time. Both append one JSON line per fit to --out and print tables of means; fits that are in the
file already are not made again, so a study may be stopped and started as one likes. `large` prints
peak memory, seconds and the share of the neighbour graph on made-up rows.
"""

import argparse
import itertools
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from coterie import Kith, load_data
from coterie.math.graph import smooth
from coterie.math.merge import (
    agreement,
    greedy_merge,
    joint,
    normalised_cut,
    one_hot,
    spectral_merge,
)
from coterie.metrics import scores
from coterie.research.bench.cost import PeakMemory, ae_epoch_seconds

RESULTS = Path(__file__).parent.parent / "results"
ABLATIONS = {
    "kith": {},
    "features: raw columns": {"kind": "table"},
    "graph: 3 neighbours": {"n_neighbors": 3},
    "graph: 20 neighbours": {"n_neighbors": 20},
    "views: none": {"mix": 0.0, "noise": 0.0, "dropout": 0.0, "moved": False},
    "views: nothing moved": {"moved": False},
    "views: noise only": {"mix": 0.0},
    "heads: direct only": {"sizes": "equal"},
    "heads: merged only": {"sizes": "free"},
    "heads: one over-head": {"over_heads": 1},
    "merge: spectral only": {"ways": ("spectral",)},
    "merge: mod only": {"ways": ("mod",)},
    "merge: ncut only": {"ways": ("ncut",)},
    "selection: lowest cut of all": {"blind": True},
    "outputs: 2 per cluster": {"outputs": 2},
    "outputs: 8 per cluster": {"outputs": 8},
    "balance 1.3": {"balance": 1.3},
    "balance 4": {"balance": 4.0},
    "no refine": {"refine_epochs": 0},
}

GRADES = ("rule", "acc", "nmi", "nmi_geo", "ari")


class Changed(Kith):
    """Kith that merges in some ways only, or takes the lowest cut without asking further.

    Plain attributes, not parameters: they exist for this study.
    """

    key = "kith_changed"
    ways: ClassVar[tuple] = ("spectral", "mod", "ncut")
    blind: ClassVar[bool] = False

    def candidates(self, h, head, judged, rng):
        found = super().candidates(h, head, judged, rng)
        if self.blind:
            every = [c for made in found.values() for c in made]
            best = min(every, key=lambda c: c["cut"])
            return {"direct": [best], "blind": [best]}
        return {f: made for f, made in found.items() if f == "direct" or f in self.ways}


class Recorded(Kith):
    """Kith that remembers all candidates and what each measure says about them."""

    def candidates(self, h, head, judged, rng):
        found = super().candidates(h, head, judged, rng)
        k = self.n_clusters
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


def labelled(name, args):
    return load_data(name, data_dir=args.data_dir, words=Kith.words)


def study(args):
    done = {(r["set"], r["seed"]): r for r in read(args.out) if "candidates" in r}
    regret = defaultdict(list)
    for name in args.sets:
        data = None
        for seed in range(args.seeds):
            record = done.get((name, seed))
            if record is None:
                data = data or labelled(name, args)
                record = {"set": name, "seed": seed, **select(data, seed)}
                write(args.out, record)
            seen = record["candidates"]
            best = max(c["nmi"] for c in seen)
            for measure in [m for m in seen[0] if m not in GRADES]:
                for pool in ("all", "no ncut merge"):
                    allowed = [c for c in seen if pool == "all" or c["rule"] != "ncut"]
                    picked = max(allowed, key=lambda c: c[measure])
                    regret[measure, pool].append((name, best - picked["nmi"]))
            regret["Kith's rule (refined)", ""].append((name, best - record["final"]["nmi"]))
            print(name, seed, "best NMI", round(best, 3), "final", record["final"], flush=True)
    print("\nNMI below the best candidate, mean and worst over fits")
    for (measure, pool), rows in sorted(
        regret.items(), key=lambda kv: np.mean([r[1] for r in kv[1]])
    ):
        lost, worst = [r[1] for r in rows], max(rows, key=lambda r: r[1])
        print(f"{measure:28s}{pool:15s}{np.mean(lost):.4f}  {max(lost):.3f} ({worst[0]})")


def select(data, seed):
    model = Recorded(len(np.unique(data.labels)), random_state=seed).fit(data.X)
    table = agreement([c["labels"] for c in model.seen])
    for c, row in zip(model.seen, table):
        c["agreement"] = float((row.sum() - 1) / (len(row) - 1))
        c |= scores(data.labels, c.pop("labels"))
    return {"candidates": model.seen, "final": scores(data.labels, model.labels_)}


def ablate(args):
    done = {(r["set"], r["what"], r["seed"]): r for r in read(args.out) if "what" in r}
    for name, seed in itertools.product(args.sets, range(args.seeds)):
        left = [what for what in ABLATIONS if (name, what, seed) not in done]
        data = labelled(name, args) if left else None
        unit = ae_epoch_seconds(data.X) if left else 0.0
        for what in left:
            begin = time.perf_counter()
            labels = changed(data, ABLATIONS[what], seed)
            aee = (time.perf_counter() - begin) / unit
            found = scores(data.labels, labels)
            record = {"set": name, "what": what, "seed": seed, "aee": aee, **found}
            done[name, what, seed] = record
            write(args.out, record)
            print(name, what, seed, f"{found['acc']:.3f} {found['nmi']:.3f}", flush=True)
    print(table_of(done.values(), args.sets))


def changed(data, changes, seed):  # -> (n,) labels
    """Labels of Kith with one step changed."""
    k, X, changes = len(np.unique(data.labels)), data.X, dict(changes)
    own = {name: changes.pop(name) for name in ("ways", "blind") if name in changes}
    cls = type("Changed", (Changed,), own) if own else Kith
    if "outputs" in changes:
        changes["outputs"] *= k
    if changes.get("kind") == "table":
        X = (X.toarray() if hasattr(X, "toarray") else X).reshape(X.shape[0], -1)
    return cls(k, random_state=seed, **changes).fit(X).labels_


def table_of(records, sets):
    """Markdown: mean NMI (ACC) over seeds, a row for each change, a column for each set."""
    means = defaultdict(list)
    for r in records:
        means[r["what"], r["set"]].append((r["nmi"], r["acc"]))
    lines = ["| NMI (ACC) | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
    for what in ABLATIONS:
        found = [np.mean(means[what, s], 0) if means[what, s] else None for s in sets]
        cells = ["" if f is None else f"{f[0]:.3f} ({f[1]:.3f})" for f in found]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def large(args):
    """Blobs in float32; the peak counts everything that the process holds, data included."""
    rng = np.random.default_rng(0)
    centers = 4 * rng.standard_normal((20, args.columns), dtype=np.float32)
    X = rng.standard_normal((args.rows, args.columns), dtype=np.float32)
    X += centers[rng.integers(20, size=args.rows)]
    memory, begin = PeakMemory(), time.perf_counter()
    model = Kith(20, random_state=0).fit(X)
    seconds = time.perf_counter() - begin
    share = model.seconds_["graph"] / seconds
    print(
        f"{args.rows} x {args.columns}: {seconds:.0f} s, graph {100 * share:.0f} % of it, "
        f"peak {memory.mb() / 1024:.2f} GB"
    )


def read(path):
    if not path or not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line]


def write(path, record):
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps(record) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("select", "ablate", "large"))
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    parser.add_argument("--out", help="JSON lines (default: results/kith_ablate.jsonl, ...)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=32)
    args = parser.parse_args()
    args.out = args.out or RESULTS / f"kith_{args.what}.jsonl"
    torch.set_num_threads(args.threads)
    {"select": study, "ablate": ablate, "large": large}[args.what](args)


if __name__ == "__main__":
    main()
