"""Does half precision pay, and does it cost quality? Both settings side by side, fit by fit.

    COTERIE_DATA=FOLDER python benchmarks/precision.py --steps
    COTERIE_DATA=FOLDER python benchmarks/precision.py --datasets usps reuters_r8 --seeds 3
    COTERIE_DATA=FOLDER python benchmarks/precision.py --paper --methods dekm cnet:r dkm:p

--steps times training steps of bare autoencoders of several sizes. Otherwise each method is fitted
in single and in half precision, in turns, with one thread; times are those of the processor. Fits
that --out has already are not made again.
--paper fits with the published settings of the data set.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import coterie
from coterie.metrics import accuracy, nmi
from coterie.nets import build
from coterie.nets.mlp import half_products
from coterie.runtime.precision import quick_bfloat16
from coterie.runtime.rng import torch_rng

METHODS = ("dec", "idec", "dcn", "dkm", "acedec")
PAPER = (500, 500, 2000)
SIZES = [  # columns, hidden layers, rows of a batch
    (784, PAPER, 256),
    (256, PAPER, 256),
    (784, (512, 512), 256),
    (256, (512, 512), 256),
    (256, (512, 512), 64),
    (2000, (512, 512), 256),
    (64, (512, 512), 256),
    (16, (512, 512), 256),
]


def step_seconds(columns: int, hidden: tuple, rows: int, half: bool, steps: int) -> float:
    """Processor time of a step of the autoencoder's pre-training."""
    net = build(
        "mlp",
        (columns,),
        embedding_dim=10,
        hidden=hidden,
        channels=(1, 1, 1),
        activation="relu",
        initializer="xavier",
        generator=torch_rng(0),
    )
    optimizer = torch.optim.Adam(net.parameters(), fused=True)
    x = torch.rand(rows, columns, generator=torch_rng(1))

    def step():
        loss = (net.decode(net.encode(x)) - x).square().sum(1).mean()
        for p, g in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
            p.grad = g
        optimizer.step()

    def run(n: int):
        for _ in range(n):
            step()

    took = []
    for timed in (2, steps):
        begin = time.process_time()
        if half:
            with half_products(torch.device("cpu")):
                run(timed)
        else:
            run(timed)
        took.append((time.process_time() - begin) / timed)
    return took[-1]


def show_steps(steps: int, rounds: int) -> list[dict]:
    found = []
    for columns, hidden, rows in SIZES:
        pairs = [
            [step_seconds(columns, hidden, rows, half, steps) for half in (False, True)]
            for _ in range(rounds)
        ]
        single, half = np.median(pairs, 0)
        encoder = sum(a * b for a, b in zip((columns, *hidden), hidden))
        layers = "-".join(map(str, (columns, *hidden, 10)))
        told = {"layers": layers, "rows": rows, "encoder": encoder}
        told |= {"ms_single": 1e3 * single, "ratio": half / single}
        print(f"{layers:22} batch {rows:4}  {1e3 * single:6.1f} ms  half {half / single:.2f}")
        found.append(told)
    return found


def fit(key: str, data, seed: int, precision: str, changes: dict, paper: bool) -> dict:
    name, _, variant = key.partition(":")
    cls, y = coterie.list_methods()[name], data.labels
    given = {"random_state": seed, "precision": precision, "device": "cpu"} | changes
    if paper:
        model = cls.paper(data.name, variant=variant or None, **given)
        model.set_params(n_clusters=len(np.unique(y)))
    else:
        model = cls(len(np.unique(y)), **given)
    begin = time.process_time()
    model.fit(data.X)
    took = time.process_time() - begin
    epochs = sum(r["phase"] in ("pretrain", "train") for r in model.history_)
    scores = {"acc": accuracy(y, model.labels_), "nmi": nmi(y, model.labels_)}
    return {"seconds": took, "epochs": epochs, **scores}


def show_fits(args) -> list[dict]:
    found = json.loads(Path(args.out).read_text()) if args.out and Path(args.out).exists() else []
    known = {(r["data"], r["method"], r["seed"], r["precision"]): r for r in found}
    changes = json.loads(args.settings)
    for name in args.datasets:
        data = coterie.load_data(name)
        for key in args.methods:
            runs = {"single": [], "half": []}
            for seed in range(args.seeds):
                for precision, done in runs.items():
                    told = known.get((name, key, seed, precision))
                    if told is None:
                        told = {"data": name, "method": key, "seed": seed, "precision": precision}
                        told |= fit(key, data, seed, precision, changes, args.paper)
                        found.append(told)
                    done.append(told)
            line = f"{name:12} {key:8}"
            for precision, done in runs.items():
                acc, score = ([100 * r[m] for r in done] for m in ("acc", "nmi"))
                line += f"  {precision} ACC {np.mean(acc):.1f} +- {np.std(acc):.1f}"
                line += f" NMI {np.mean(score):.1f} +- {np.std(score):.1f}"
            pace = [np.mean([r["seconds"] / r["epochs"] for r in runs[p]]) for p in runs]
            print(f"{line}  time of an epoch {pace[1] / pace[0]:.2f}", flush=True)
            keep(found, args.out)
    return found


def keep(found: list[dict], path: str | None) -> None:
    if path:
        Path(path).write_text(json.dumps(found, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", action="store_true", help="time single steps")
    parser.add_argument("--count", type=int, default=20, help="steps of a measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each size")
    parser.add_argument("--datasets", nargs="+", default=["usps"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", default="{}", help="parameters of all methods, as JSON")
    parser.add_argument("--paper", action="store_true", help="published settings")
    parser.add_argument("--out", help="write all figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"bfloat16 in the processor: {'yes' if quick_bfloat16() else 'no'}")
    found = show_steps(args.count, args.rounds) if args.steps else show_fits(args)
    keep(found, args.out)


if __name__ == "__main__":
    main()
