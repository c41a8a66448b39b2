"""Heat map of CM over batch size and concentration (Fig. 6 of the C-Net paper) on a small set.

    python benchmarks/cm_grid.py digits --restarts 5 --figure cm_grid.png

Every point of the grid is one batched model; each of its restarts becomes a line of the ledger.
Points that are there are not run again, and the map is drawn from the ledger. The map over beta
and lambda (Fig. 9) needs no script:

    coterie bench digits --methods cnet:p --seeds 1 \\
        --grid recon_weight=0.01,0.1,1 --grid orthonormal_weight=0,0.02,0.2
    python benchmarks/cm_grid.py digits --method cnet:p --figure cnet_grid.png
"""

import argparse

from cm_restarts import record

from coterie.data import load
from coterie.methods.cm import CM
from coterie.research.bench.grid import grid_map
from coterie.research.bench.ledger import Ledger
from coterie.research.bench.tables import select
from coterie.research.papers.figures import canvas, save
from coterie.research.papers.jobs import DERIVE


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def concentration(params: dict) -> float:
    """The paper's alpha: ours counts the prior for each row, the paper's for each batch."""
    return round(1 + params["prior_strength"] * params["batch_size"], 6)


def run(data, name: str, B: int, alpha: float, args) -> None:
    variant = args.method.partition(":")[2]
    model = CM(
        len(set(data.labels)), random_state=0, scale="unit", restarts=args.restarts,
        epochs=args.epochs, **CM.variants[variant], **DERIVE["cm"](B, alpha),
    )  # fmt: skip
    key = {"method": "cm", "variant": variant, "profile": "default", "dataset": name}
    told = record(model, key, data, Ledger(args.ledger), 1)
    print(f"{name} {args.method} B={B} alpha={alpha}: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--method", default="cm:r", choices=("cm:r", "cm:p", "cnet:r", "cnet:p"))
    parser.add_argument("--batches", type=numbers, default=[20, 40, 80, 160, 320])
    parser.add_argument("--alphas", type=numbers, default=[2, 5, 13, 40, 100, 300])
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--epochs", type=float, default=60)
    parser.add_argument("--ledger", default="results/ledger.jsonl")
    parser.add_argument("--figure")
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    args = parser.parse_args()
    if args.method.startswith("cm:"):
        data = load(args.dataset, data_dir=args.data_dir)
        for B in args.batches:
            for alpha in args.alphas:
                run(data, args.dataset, B, alpha, args)
        axes = ("batch_size", concentration)
    else:
        axes = ("recon_weight", "orthonormal_weight")
    if args.figure:
        runs = select(Ledger(args.ledger).read(), [args.dataset], [args.method], "default")
        if args.method.startswith("cm:"):
            wanted = {"restarts": args.restarts, "epochs": args.epochs, "scale": "unit"}
            runs = [r for r in runs if wanted.items() <= r["params"].items()]
        figure, panel = canvas(size=(5, 4))
        ax = grid_map(runs, *axes, ax=panel[0][0])
        ax.set_title(f"ARI, {args.method}, {args.dataset}")
        if args.method.startswith("cm:"):
            ax.set_ylabel("alpha")
        save(figure, args.figure)


if __name__ == "__main__":
    main()
