"""Twenty runs of CM for the price of a few: restarts of one batched model, a ledger line each.

    python benchmarks/cm_restarts.py usps,pendigits --variants r,p --restarts 20

The restarts start from weights of their own and see the same rows in the same order. Their lines
carry `restart` and `restarts` among the parameters, and their share of the cost; L_sp of each
restart is kept, so that the label-free choice (Tables 2 and 4 of the C-Net paper) can be drawn.
"""

import argparse

from coterie import registry
from coterie.data import load
from coterie.metrics import label_free, scores
from coterie.research.bench.campaign import run_one
from coterie.research.bench.ledger import Ledger
from coterie.storage.runs import describe


def run(name: str, variant: str, args) -> None:
    model = registry.get("cm").paper(name, variant=variant, restarts=args.restarts, random_state=0)
    key = {"method": "cm", "variant": variant, "profile": "paper", "dataset": name}
    data = load(name, data_dir=args.data_dir)
    told = record(model, key, data, Ledger(args.ledger), args.threads)
    print(f"{name} cm:{variant}: {told}", flush=True)


def record(model, key: dict, data, ledger: Ledger, threads: int) -> str:
    """Fit all restarts at once and write a line for each, unless they are there."""
    params, many = describe(model), model.restarts
    if ledger.find(key | {"seed": 0, "params": params | {"restart": 0}}):
        return "in the ledger"
    result, _ = run_one(model, data, threads)
    if result["status"] != "ok":
        raise SystemExit(result["status"])
    z = model.transform(data.X)
    for i, labels in enumerate(model.restart_labels(data.X)):
        own = label_free(z, labels, n_clusters=model.n_clusters)
        own["l_sp"] = float(model.restart_scores_[i])
        line = key | {"seed": i, "params": params | {"restart": i}} | result
        line |= scores(data.labels, labels) | {"label_free": own}
        line["aee"] = result["aee"] / many
        line["seconds"] = {k: v / many for k, v in result["seconds"].items()}
        ledger.append(line)
    return f"{many} lines"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("datasets")
    parser.add_argument("--variants", default="r,p")
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--ledger", default="results/ledger.jsonl")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    args = parser.parse_args()
    for name in args.datasets.split(","):
        for variant in args.variants.split(","):
            run(name, variant, args)


if __name__ == "__main__":
    main()
