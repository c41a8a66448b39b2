"""Do two seeds of Kith give one answer, and where do they part?

    python benchmarks/seeds_study.py collect --data-dir FOLDER    # fits; resumes where it ended
    python benchmarks/seeds_study.py report

`collect` fits Kith without its last phase on at most 2,500 rows of each shared set, with several
seeds, and appends a line to results/seeds_study.jsonl: the share of equal neighbours in the seeds'
graphs, and for each candidate and for the choice the mean NMI with the classes and the mean
adjusted Rand index of all pairs of seeds. Classes are only looked at for the NMI.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
import torch
from judge_study import SHARED, read
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coterie import Kith, load_data

OUT = Path(__file__).parent.parent / "results" / "seeds_study.jsonl"


def collect(args):
    done = {record["set"] for record in read(args.out)}
    for name in args.sets or SHARED:
        if name in done:
            continue
        data = load_data(name, data_dir=args.data_dir, words=Kith.words)
        X, y = data.X, np.unique(np.asarray(data.labels), return_inverse=True)[1]
        if len(y) > args.rows:
            picked = np.sort(np.random.default_rng(1).choice(len(y), args.rows, replace=False))
            X, y = X[picked], y[picked]
        begin, k = time.process_time(), len(np.unique(y))
        fits = [Kith(k, random_state=s, refine_epochs=0).fit(X) for s in range(args.seeds)]
        found = {n: [m.candidates_[n] for m in fits] for n in fits[0].candidates_}
        found["choice"] = [m.candidates_[m.chosen_] for m in fits]
        record = {"set": name, "rows": len(y), "k": k, "kind": fits[0].kind_}
        record["chosen"] = [m.chosen_ for m in fits]
        record["same_graph"] = pairs(fits, lambda a, b: (a.neighbours_ == b.neighbours_).mean())
        record["nmi"] = {
            n: round(np.mean([normalized_mutual_info_score(y, v) for v in some]), 4)
            for n, some in found.items()
        }
        record["agreement"] = {n: pairs(some, adjusted_rand_score) for n, some in found.items()}
        record["seconds"] = round((time.process_time() - begin) / len(fits), 2)
        with args.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)


def pairs(items, measure):
    """Mean of a measure over all pairs."""
    return round(float(np.mean([measure(a, b) for a, b in itertools.combinations(items, 2)])), 4)


def report(args):
    records = read(args.out)
    print("| set | chosen | NMI | seeds agree | heads agree | consensus agrees | same graph |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for r in records:
        nmi, agree = r["nmi"], r["agreement"]
        heads = max(agree["direct"], agree["merged"])
        print(
            f"| {r['set']} | {', '.join(sorted(set(r['chosen'])))} | {nmi['choice']:.3f} | "
            f"{agree['choice']:.3f} | {heads:.3f} | {agree['consensus']:.3f} | "
            f"{r['same_graph']:.3f} |"
        )
    for name in ("choice", "consensus", "merged", "direct", "embedding", "kmeans"):
        means = [np.mean([r[what][name] for r in records]) for what in ("nmi", "agreement")]
        print(f"{name}: mean NMI {means[0]:.3f}, mean agreement of seeds {means[1]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("collect", "report"))
    parser.add_argument("--data-dir", default="data")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="*", help="some of the shared sets")
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"collect": collect, "report": report}[args.what](args)


if __name__ == "__main__":
    main()
