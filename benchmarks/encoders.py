"""What a pretrained encoder adds: NMI and ACC on images and texts, with it and without.

    COTERIE_DATA=... python benchmarks/encoders.py cifar10_10k reuters_r8 --seeds 3

Needs the extras `image` and `text`. Rows are embedded once (see COTERIE_CACHE); the first run of
20 Newsgroups takes an hour of a core, all later ones seconds. One JSON object a line.
"""

import argparse
import json
import time
import warnings

import numpy as np
import torch

import coterie
from coterie import metrics, registry

ENCODERS = {"cifar10_10k": "image@96", "20newsgroups": "text", "reuters_r8": "text"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", choices=list(ENCODERS))
    parser.add_argument("--methods", default="kith,leiden,feature_kmeans")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="also without the encoder")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in args.data:
        data = coterie.load_data(name, data_dir=args.data_dir, words=5000)
        for encoder in (ENCODERS[name], None) if args.plain else (ENCODERS[name],):
            for method in args.methods.split(","):
                rows = [fit(data, method, encoder, seed) for seed in range(args.seeds)]
                print(json.dumps(summary(name, method, encoder, rows)), flush=True)


def fit(data, method: str, encoder: str | None, seed: int) -> dict:
    k, begin = len(np.unique(data.labels)), time.perf_counter()
    model = registry.get(method)(k, random_state=seed, encoder=encoder).fit(data)
    about = {"seconds": time.perf_counter() - begin}
    for attribute in ("agreement_", "chosen_", "cuts_"):
        if hasattr(model, attribute):
            about[attribute.rstrip("_")] = getattr(model, attribute)
    score = metrics.scores(data.labels, model.labels_)
    return about | {"nmi": score["nmi"], "acc": score["acc"]}


def summary(name: str, method: str, encoder: str | None, rows: list[dict]) -> dict:
    means = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in ("nmi", "acc")}
    about = {"data": name, "method": method, "encoder": encoder, "seeds": len(rows)}
    return about | means | {"runs": rows}


if __name__ == "__main__":
    main()
