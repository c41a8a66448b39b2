"""The default against its rivals on tables that played no part in its making.

    apt-get download r-cran-mlbench r-cran-mclust r-cran-mass r-cran-kernlab r-cran-modeldata \\
        r-cran-rrcov r-cran-caret r-cran-th.data r-bioc-multtest
    for package in *.deb; do dpkg -x $package unpacked; done
    pip install rdata
    python benchmarks/strangers.py prepare unpacked --out tables    # one CSV file for each set
    python benchmarks/strangers.py fit tables                       # resumes where it ended
    python benchmarks/strangers.py report

The sets are those with classes in packages for R. Each becomes a CSV file with a column `class`,
and is read as a user's file would be: texts become columns of zeros and ones, rows with missing
cells are filled. All methods get the same numbers and the number of classes, nothing is scaled by
hand. Sets whose name has an even digest may be used to look for causes; the others are for the
report alone. `fit` appends to results/strangers.jsonl.
"""

import argparse
import hashlib
import itertools
import json
import lzma
import time
import warnings
import zlib
from bz2 import decompress as bunzip
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coterie import load_data
from coterie.registry import get

OUT = Path(__file__).parent.parent / "results" / "strangers.jsonl"
METHODS = ("kith", "feature_kmeans", "feature_gmm", "kmeans", "spectral", "leiden", "umap_gmm")
SIMPLE = METHODS[1:]

# package and object: column of the class, columns that only name a row or repeat the class
SETS: dict[str, tuple[str, str]] = {
    "mlbench/Zoo": ("type", ""),
    "mlbench/Satellite": ("classes", ""),
    "mlbench/DNA": ("Class", ""),
    "mlbench/Sonar": ("Class", ""),
    "mlbench/PimaIndiansDiabetes": ("diabetes", ""),
    "mlbench/Vowel": ("Class", "V1"),
    "mlbench/Ionosphere": ("Class", ""),
    "mlbench/HouseVotes84": ("Class", ""),
    "mlbench/Vehicle": ("Class", ""),
    "mlbench/LetterRecognition": ("lettr", ""),
    "mlbench/BreastCancer": ("Class", "Id"),
    "mlbench/Glass": ("Type", ""),
    "mlbench/Shuttle": ("Class", ""),
    "mlbench/Soybean": ("Class", ""),
    "mclust/banknote": ("Status", ""),
    "mclust/diabetes": ("class", ""),
    "mclust/thyroid": ("Diagnosis", ""),
    "MASS/crabs": ("sp,sex", "index"),
    "MASS/painters": ("School", ""),
    "kernlab/spam": ("type", ""),
    "kernlab/musk": ("Class", ""),
    "modeldata/penguins": ("species", "island,sex"),
    "modeldata/cells": ("class", "case"),
    "modeldata/oils": ("class", ""),
    "modeldata/scat": ("Species", "Month,Year,Site,Location"),
    "modeldata/hpc_data": ("class", ""),
    "rrcov/salmon": ("Origin", "Gender"),
    "rrcov/fish": ("Species", ""),
    "rrcov/olitos": ("grp", ""),
    "rrcov/fruit": ("cultivar", ""),
    "rrcov/hemophilia": ("gr", ""),
    "caret/dhfr": ("Y", ""),
    "TH.data/GlaucomaM": ("Class", ""),
    "TH.data/wpbc": ("status", "time"),
    "multtest/golub": ("golub.cl", ""),
}


def objects(folder: Path) -> dict:
    """All data frames of an R package, by name."""
    import rdata

    found = {}
    for path in sorted((*folder.glob("data/*.rda"), *folder.glob("data/*.RData"))):
        try:
            found |= rdata.read_rda(path)
        except Exception as error:  # a class of R that the reader does not know
            print(f"{path.name}: {error}")
    index = folder / "data" / "Rdata.rdx"
    if index.exists():
        body = index.with_suffix(".rdb").read_bytes()
        for name, (start, length) in _r(index.read_bytes())["variables"].items():
            try:
                found[name] = _r(_unpacked(body[int(start) : int(start) + int(length)]))
            except Exception as error:
                print(f"{folder.name}/{name}: {error}")
    return found


def _r(data: bytes):
    import rdata

    return rdata.conversion.convert(rdata.parser.parse_data(data))


def _unpacked(part: bytes) -> bytes:
    """R's lazy-load files: a length, perhaps a letter for the way of packing, then the bytes."""
    if part[4:5] == b"2":
        return bunzip(part[5:])
    if part[4:5] == b"Z":
        raw = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
        return lzma.decompress(part[5:], format=lzma.FORMAT_RAW, filters=raw)
    return zlib.decompress(part[4:])


def prepare(args):
    import pandas as pd

    args.out.mkdir(parents=True, exist_ok=True)
    for package, group in itertools.groupby(SETS, lambda name: name.split("/")[0]):
        (folder,) = {path.parent for path in args.source.rglob(f"{package}/data")}
        found = objects(folder)
        for name in group:
            column, dropped = SETS[name]
            frame = found[name.split("/")[1]]
            if package == "multtest":
                frame = pd.DataFrame(np.asarray(frame).T).assign(**{column: found[column]})
            classes = frame[column.split(",")].astype(str).agg(" ".join, axis=1)
            names = [c for c in (*column.split(","), *dropped.split(",")) if c]
            frame = frame.drop(columns=names).assign(**{"class": classes})
            frame.to_csv(args.out / f"{name.replace('/', '.')}.csv", index=False)
            print(name, frame.shape, classes.nunique())


def fit(args):
    done = {(r["set"], r["method"], r["seed"]) for r in read(args.results)}
    for path in sorted(args.source.glob("*.csv"), key=lambda path: path.stat().st_size):
        ask = list(itertools.product(args.methods, range(args.seeds)))
        if args.half and half(path.stem) != args.half:
            continue
        if all((path.stem, *key) in done for key in ask):
            continue
        data = load_data(path, label_column="class", categorical="one-hot", missing="median")
        y, k = np.asarray(data.labels), len(set(np.asarray(data.labels).tolist()))
        for method, seed in ask:
            if (path.stem, method, seed) in done:
                continue
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = get(method)(k, random_state=seed)
                labels = model.fit_predict(data.X)
            record = {"set": path.stem, "rows": len(y), "columns": data.X.shape[1], "k": k}
            record |= {"method": method, "seed": seed}
            record["ari"] = round(adjusted_rand_score(y, labels), 4)
            record["nmi"] = round(normalized_mutual_info_score(y, labels), 4)
            record["seconds"] = round(time.process_time() - begin, 2)
            if method == "kith":
                record["chosen"], record["kind"] = model.chosen_, model.kind_
                record["candidates"] = {
                    name: round(adjusted_rand_score(y, found), 4)
                    for name, found in model.candidates_.items()
                }
            with args.results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)


def half(name: str) -> str:
    """Where a set belongs: `open` ones may be looked at, `kept` ones are for the report."""
    even = hashlib.sha256(name.encode()).digest()[0] % 2 == 0
    return "open" if even else "kept"


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(args):
    scores: dict[tuple, list] = {}
    for record in read(args.results):
        scores.setdefault((record["set"], record["method"]), []).append(record[args.score])
    names = sorted({name for name, _ in scores})
    methods = [m for m in METHODS if all((name, m) in scores for name in names)]
    for part in ("open", "kept"):
        chosen = [name for name in names if half(name) == part]
        if not chosen:
            continue
        print(f"\n{part}: {len(chosen)} sets, {args.score.upper()}\n")
        print("| set | " + " | ".join(methods) + " |")
        print("|---|" + "---:|" * len(methods))
        table = np.array([[np.mean(scores[name, m]) for m in methods] for name in chosen])
        for name, row in zip(chosen, table):
            cells = (f"**{v:.2f}**" if v >= row.max() - 0.005 else f"{v:.2f}" for v in row)
            print(f"| {name} | " + " | ".join(cells) + " |")
        ranks = (table[:, :, None] < table[:, None] - 0.005).sum(2).mean(0) + 1
        behind = (table < table.max(1, keepdims=True) - 0.1).sum(0)
        print("| mean | " + " | ".join(f"{v:.3f}" for v in table.mean(0)) + " |")
        print("| mean rank | " + " | ".join(f"{v:.2f}" for v in ranks) + " |")
        print("| .1 or more below the best | " + " | ".join(map(str, behind)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    first = what.add_parser("prepare")
    first.add_argument("source", type=Path, help="folder of unpacked packages")
    first.add_argument("--out", type=Path, default=Path("tables"))
    second = what.add_parser("fit")
    second.add_argument("source", type=Path, help="folder of CSV files")
    second.add_argument("--methods", nargs="*", default=METHODS)
    second.add_argument("--seeds", type=int, default=1)
    second.add_argument("--half", choices=("open", "kept"))
    third = what.add_parser("report")
    third.add_argument("--score", choices=("ari", "nmi"), default="ari")
    for command in (second, third):
        command.add_argument("--results", type=Path, default=OUT)
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"prepare": prepare, "fit": fit, "report": report}[args.what](args)


if __name__ == "__main__":
    main()
