"""Does L_sp choose a good run without labels? Tables 2 and 4 of the C-Net paper, from the ledger.

    python benchmarks/sparsity_choice.py

For every data set and setting of CM and C-Net with several runs: ARI of the run with the lowest
L_sp = E2 - E3, beside the mean and the best of all of them.
"""

import argparse
import json
from collections import defaultdict
from statistics import fmean

from coterie.research.bench.ledger import Ledger


def families(runs: list[dict], least: int) -> dict[tuple, list[dict]]:
    """Runs that differ in their seed (or restart) alone and know their L_sp."""
    found: dict[tuple, dict] = defaultdict(dict)
    for run in runs:
        if run["method"] not in ("cm", "cnet") or run["status"] != "ok":
            continue
        if (run["label_free"] or {}).get("l_sp") is None:
            continue
        params = {k: v for k, v in (run["params"] or {}).items() if k != "restart"}
        name = f"{run['method']}:{run['variant']}"
        key = (name, run["profile"], run["dataset"], json.dumps(params, sort_keys=True))
        found[key][run["seed"]] = run
    return {key: list(seeds.values()) for key, seeds in found.items() if len(seeds) >= least}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ledger", default="results/ledger.jsonl")
    parser.add_argument("--least", type=int, default=5, help="runs that a row must have")
    args = parser.parse_args()
    better = total = 0
    print(f"{'method':8}{'profile':9}{'data set':16}{'runs':>5}{'L_sp':>7}{'mean':>7}{'best':>7}")
    for (name, profile, dataset, _), runs in sorted(
        families(Ledger(args.ledger).read(), args.least).items()
    ):
        chosen = min(runs, key=lambda run: run["label_free"]["l_sp"])["ari"]
        scores = [run["ari"] for run in runs]
        figures = "".join(f"{100 * v:7.1f}" for v in (chosen, fmean(scores), max(scores)))
        above = chosen > fmean(scores)
        better, total = better + above, total + 1
        print(f"{name:8}{profile:9}{dataset:16}{len(runs):5}{figures}{'' if above else '  below'}")
    print(f"above the mean in {better} of {total}")


if __name__ == "__main__":
    main()
