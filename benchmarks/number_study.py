"""How often does n_clusters="auto" find the number of classes?

    python benchmarks/number_study.py collect --data-dir FOLDER   # resumes where it ended
    python benchmarks/number_study.py rules                       # thresholds, on both halves
    python benchmarks/number_study.py report                      # the table of sets

`collect` finds the hills of each set (math/hills.py), in the features and, where the rule may ask
for it, in the embedding of over-heads, and appends them to results/number_study.jsonl: on at most
4,000 rows, with as many looks as the fits would take, and with --parts on random nine tenths of the
rows too. `rules` and `report` replay the rule on these hills. Sets whose name has an even digest
are those to choose thresholds on. Classes are looked at for scoring alone; where a set has several
labellings, the nearest counts.
"""

import argparse
import hashlib
import json
import math
import time
from itertools import chain, takewhile
from pathlib import Path
from types import SimpleNamespace

import judge_study
import numpy as np
import torch
from sklearn import datasets

from coterie import Kith, load_data
from coterie.data.chunks import pick
from coterie.math.hills import Hills, find_hills
from coterie.methods.kith import number
from coterie.methods.kith.row_features import find_kind
from coterie.train.rows import Rows
from coterie.train.scaling import fit_scaling

RESULTS = Path(__file__).parent.parent / "results"
NEAR = 0.2  # share of the number of classes by which an answer may be off
# the others have classes that no method comes near, or ten rows of each
CLEAR = ("digits", "pendigits", "coil20", "usps", "optdigits", "mnist")


def blobs():
    """Round clusters in 2 to 50 columns, 4 sizes, three rings, moons with a blob."""
    shapes = [(3, 2, 1.0), (5, 2, 0.8), (4, 10, 2.0), (8, 10, 2.0), (12, 20, 2.0)]
    for k, d, wide in [*shapes, (6, 50, 3.0), (20, 30, 2.0)]:
        X, y = datasets.make_blobs(
            100 * k, d, centers=k, cluster_std=wide, random_state=100 * k + d
        )
        yield f"made/blobs{k}d{d}", X, y
    corners = np.vstack([np.zeros(5), 6 * np.eye(5)[:3]])
    X, y = datasets.make_blobs([900, 300, 100, 50], 5, centers=corners, random_state=1)
    yield "made/sizes4", X, y
    rng = np.random.default_rng(7)
    y, turn = np.repeat([0, 1, 2], 250), 2 * np.pi * rng.uniform(size=750)
    X = (1 + 2 * y)[:, None] * np.stack([np.cos(turn), np.sin(turn)], 1)
    yield "made/rings3", X + 0.08 * rng.standard_normal(X.shape), y
    X, y = datasets.make_moons(600, noise=0.06, random_state=3)
    far = datasets.make_blobs(300, 2, centers=[[4, 4]], cluster_std=0.4, random_state=3)[0]
    yield "made/moons_blob", np.vstack([X, far]), np.append(y, np.full(300, 2))


def noise():
    """Ten draws each of uniform rows and of one stretched Gaussian, in 2 to 30 columns."""
    for i in range(10):
        rng, d, n = np.random.default_rng(100 + i), (2, 3, 5, 10, 30)[i % 5], (500, 1000)[i // 5]
        yield f"noise/uniform{i}d{d}", rng.uniform(size=(n, d)), np.zeros(n, int)
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2, d) @ turn
        yield f"noise/gauss{i}d{d}", X, np.zeros(n, int)


def problems(data_dir):
    """(name, rows, numbers of classes); all labellings of a set at once."""
    found = {}
    small = takewhile(
        lambda p: p[0].startswith(("shape", "table", "made")), judge_study.problems(data_dir)
    )
    for name, X, y in chain(noise(), blobs(), small, shared(data_dir)):
        family = "/".join(name.split("/")[:2])
        known = len(np.unique(y[y >= 0]))
        if family in found:
            found[family][1].append(known)
            continue
        found[family] = X if hasattr(X, "indptr") else np.asarray(X, np.float32), [known]
        if not family.startswith("shape"):
            yield family, *found[family]
    yield from ((name, *rest) for name, rest in found.items() if name.startswith("shape"))


def shared(data_dir):
    for name in CLEAR:
        data = load_data(name, data_dir=data_dir, words=Kith.words)
        yield f"shared/{name}", data.X, np.asarray(data.labels)


def hills_of(X, seed, part):
    """Hills in both spaces, as `find_number` would see them."""
    n = X.shape[0]
    rng = np.random.default_rng(seed)
    if part:
        X = pick(X, np.sort(rng.choice(n, min(int(0.9 * n), number.ROWS), replace=False)))
    elif n > number.ROWS:
        X = pick(X, np.sort(rng.choice(n, number.ROWS, replace=False)))
    kith = Kith("auto", random_state=seed)
    kith.seed_ = seed
    rows = Rows(X, fit_scaling(X, "auto"))
    kind, every = find_kind(rows, "auto"), np.arange(rows.n)
    found = {"kind": kind}
    if kind != "image":
        found["z"] = plain(find_hills(number.row_features(rows, kind, seed)(every)))
    wide = kind == "image" or found["z"]["dimension"] > number.MANY
    if wide and (kind == "image" or not answer(found).structure):
        found["h"] = plain(find_hills(number.embedding(kith, rows, every, kind, seed)))
    return found


def plain(hills):
    kept = hills.prominence > 1
    return {
        "prominence": np.round(hills.prominence[kept], 3).tolist(),
        "size": hills.size[kept].tolist(),
        "rows": hills.rows,
        "voters": hills.voters,
        "dimension": round(hills.dimension, 2),
    }


def collect(args):
    done = {(r["set"], r["seed"], r["part"]): r for r in judge_study.read(args.out)}
    for name, X, classes in problems(args.data_dir):
        if args.only not in name:
            continue
        for part in (False, True)[: 1 + (args.parts and X.ndim == 2)]:
            for look in range(args.seeds * number.LOOKS):
                record = done.get((name, look, part))
                if record is None:
                    begin = time.process_time()
                    record = {"set": name, "seed": look, "part": part, "classes": classes}
                    record |= hills_of(X, look, part)
                    with args.out.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                    took = time.process_time() - begin
                    print(f"{name} look {look} {answer(record).words()} ({classes}) {took:.1f} s")
                if not drawn(record) and look + 1 >= args.seeds:
                    break


def drawn(record):
    """Whether chance has a part in a look, so that a fit takes several."""
    return "h" in record or record["z"]["rows"] >= number.ROWS or record["part"]


def fits(records):
    """The answers of all fits, from their looks."""
    found = [answer(r) for r in sorted(records, key=lambda r: r["seed"])]
    size = number.LOOKS if drawn(records[0]) else 1
    return [number.middle(found[i : i + size]) for i in range(0, len(found) - size + 1, size)]


def answer(record, chance=None):
    """The rule of `find_number` on stored hills; `chance` is another threshold."""
    spaces = {s: Hills(**_arrays(record[s])) for s in "zh" if s in record}
    first = spaces.get("z", spaces.get("h"))
    found = _number(first, chance)
    if "z" in spaces and "h" in spaces and not found.structure:
        return _number(spaces["h"], chance)
    return found


def _number(hills, chance):
    if chance is None:
        return number.number_from(hills)
    least = chance(hills.rows / hills.voters)
    return SimpleNamespace(k=(k := hills.count(least, number.SHARE)), structure=k > 1)


def _arrays(stored):
    return stored | {n: np.array(stored[n]) for n in ("prominence", "size")}


def near(k, classes):
    return any(abs(k - c) <= NEAR * c for c in classes)


def half(name):
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2


def rules(args):
    records = [r for r in judge_study.read(args.out) if r["seed"] == 0 and not r["part"]]
    noisy = [r for r in records if r["set"].startswith("noise")]
    known = [r for r in records if not r["set"].startswith("noise")]
    print("| threshold | chosen on | kept back | noise without structure |\n|---|---:|---:|---:|")
    found = {f"{c:g} deviations": (lambda _, c=c: c) for c in (2.5, 3, 3.5, 4, 5, 6)}
    for c in (1.0, 1.2, 1.4, 1.6, 1.8, 2.0):
        found[f"{c:g} sqrt(2 log(n / K))"] = lambda m, c=c: c * math.sqrt(2 * math.log(max(2, m)))
    for name, rule in found.items():
        halves = [[r for r in known if half(r["set"]) == h] for h in (0, 1)]
        hits = [sum(near(answer(r, rule).k, r["classes"]) for r in part) for part in halves]
        none = sum(answer(r, rule).k == 1 for r in noisy)
        cells = [f"{hit} of {len(part)}" for hit, part in zip(hits, halves)]
        print(f"| {name} | {' | '.join(cells)} | {none} of {len(noisy)} |")


def report(args):
    records = judge_study.read(args.out)
    by_set = {}
    for r in records:
        by_set.setdefault(r["set"], []).append(r)
    total = {}
    print("| set | classes | found | interval | next best | five seeds |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, group in sorted(by_set.items()):
        if name.startswith("noise"):
            continue
        found = fits([r for r in group if not r["part"]])
        first, classes, spread = found[0], group[0]["classes"], sorted(f.k for f in found)
        shown = f"{spread[0]} to {spread[-1]}" if spread[0] < spread[-1] else str(spread[0])
        good = np.mean([near(f.k, classes) for f in found]) > 0.5
        steady = spread[-1] - spread[0] <= 1
        key = ("chosen on", "kept back")[half(name)]
        within = any(first.low <= c <= first.high for c in classes)
        for what, value in (("near", good), ("near and steady", good and steady), ("in", within)):
            total.setdefault((key, what), []).append(value)
        said = " or ".join(map(str, sorted(set(classes))))
        cells = (said, first.k, f"{first.low} to {first.high}", first.runner_up or "", shown)
        print(f"| {name}{'' if good else ' *'} | {' | '.join(map(str, cells))} |")
    for (key, what), values in total.items():
        print(f"{key}, {what}: {sum(values)} of {len(values)}")
    for kind in ("uniform", "gauss"):
        groups = [group for name, group in by_set.items() if f"noise/{kind}" in name]
        parts = [[r for r in group if r["part"] == part] for group in groups for part in (0, 1)]
        none = [not fit.structure for part in parts if part for fit in fits(part)]
        print(f"{kind} noise without structure: {sum(none)} of {len(none)} fits")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("collect", "rules", "report"))
    parser.add_argument("--data-dir", default="data")
    parser.add_argument("--out", type=Path, default=RESULTS / "number_study.jsonl")
    parser.add_argument("--seeds", type=int, default=5, help="fits of each set")
    parser.add_argument("--parts", action="store_true", help="nine tenths of the rows too")
    parser.add_argument("--only", default="", help="sets with this in their name")
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"collect": collect, "rules": rules, "report": report}[args.what](args)


if __name__ == "__main__":
    main()
