"""The papers' runs at published settings, most informative first; stop and start it at will.

    python benchmarks/campaign.py --out runs/campaign --dry      # what is missing, in order
    python benchmarks/campaign.py --out runs/campaign            # run it, one run after the other
    python benchmarks/campaign.py --out runs/campaign --cheapest # every table, by time per figure
    python benchmarks/campaign.py --out runs/campaign --cheapest --seeds 1  # breadth alone

New lines are appended to OUT/ledger.jsonl, with their predictions beside it; to take them over,
append that file to results/ledger.jsonl and copy OUT/predictions into results/predictions. The
models are kept in OUT/models: `coterie paper cnet:fig3 --show --models OUT/models` draws them. What
either ledger holds is not run again. A run that was interrupted goes on from its checkpoint.
"""

import argparse
import hashlib
import shutil
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import coterie
from coterie.registry import get
from coterie.research.bench.campaign import run_campaign
from coterie.research.bench.ledger import Ledger
from coterie.research.papers import find, read_all
from coterie.research.papers.cells import Book
from coterie.research.papers.jobs import known, loader, slots
from coterie.research.papers.state import Clock

HALF = {"precision": "half"}
DEEP = ("AE+KM", "CNET r", "CNET p", "DKM r", "DKM p", "DEC p", "IDEC p", "DCN p")
RANDOM = ("DEC r", "IDEC r", "DCN r")
DKM = ("AE-KM", "DKM a", "DKM p", "DCN p", "IDEC p", "DCN np", "IDEC np")
ACE = ("ACe/DeC+DCN", "+Aug ACe/DeC+DCN")
ACE_OTHERS = (
    "AE + k-means", "AE + SubKmeans", "DCN (λ = 0.1)", "DCN (λ = 1)", "DCN (λ = 10)",
    "+Aug DCN (λ = 0.1)", "+Aug DCN (λ = 1)", "+Aug DCN (λ = 10)",
)  # fmt: skip
DEKM = ("DEKM", "AE+K-means", "DEKM_F", "DCEC")
GMM, CM, KM = ("GMM p", "GMM r"), ("CM r", "CM p"), ("KM r", "KM p")

# table or figure, data sets, rows (none: all), seeds
PLAN: list[tuple[str, str, tuple[str, ...], range]] = [
    ("dekm:table3", "usps", ("DEKM",), range(1)),
    ("cnet:table6", "pendigits usps", GMM, range(3)),
    ("cnet:table3", "usps", ("AE+KM", "CNET p", "CNET r"), range(1)),
    ("cnet:table3", "pendigits", ("AE+KM", "CNET p", "CNET r"), range(1)),
    ("dekm:readings", "usps coil20", (), range(1)),
    ("dekm:table3", "usps coil20", DEKM, range(1)),
    ("cnet:table6", "pendigits usps", (*GMM, *CM), range(10)),
    ("dkm:table1", "20newsgroups", ("KM", "AE-KM", "DKM p", "DKM a"), range(1)),
    ("dkm:table5", "20newsgroups", (), range(1)),
    ("cnet:table3", "usps pendigits", DEEP, range(1)),
    ("cnet:table3", "20newsgroups", ("AE+KM", "CNET r", "CNET p"), range(1)),
    ("dkm:table1", "usps", DKM, range(1)),
    ("acedec:table1", "usps", ACE, range(1)),
    ("acedec:table1", "synth-25", (*ACE, *ACE_OTHERS), range(3)),
    ("cnet:table6", "20newsgroups", (*KM, *CM, "CM-EM r", "CM-EM p"), range(10)),
    ("precise_feature:figS2", "blobs8", (), range(1)),
    # MNIST: a run takes one to five hours of a core
    ("dekm:table3", "mnist", ("DEKM", "AE+K-means"), range(1)),
    ("cnet:table3", "mnist", ("AE+KM", "CNET p", "CNET r"), range(1)),
    ("dkm:table1", "mnist", ("AE-KM", "DKM p", "DKM a"), range(1)),
    ("acedec:table1", "mnist", ACE, range(1)),
    # the other seeds
    ("dekm:table3", "usps coil20", DEKM, range(3)),
    ("dekm:readings", "usps coil20", (), range(3)),
    ("cnet:table3", "usps pendigits", ("AE+KM", "CNET p", "CNET r"), range(3)),
    ("acedec:table1", "usps", (*ACE, *ACE_OTHERS), range(3)),
    ("dkm:table1", "usps", DKM, range(3)),
    ("cnet:table3", "usps pendigits", DEEP, range(3)),
    ("dkm:table1", "20newsgroups", (), range(3)),
    ("dkm:table5", "20newsgroups", (), range(3)),
    ("dekm:fig4", "usps", (), range(3)),
    ("cnet:table3", "20newsgroups", DEEP, range(3)),
    ("cnet:table3", "fashion_mnist", ("AE+KM", "CNET r"), range(1)),
    ("acedec:table1", "fashion_mnist mnist_test gtsrb objects", ACE, range(1)),
    ("cnet:table3", "usps pendigits 20newsgroups", RANDOM, range(3)),
    ("dekm:table3", "20newsgroups", (), range(3)),
    ("cnet:fig6", "pendigits", (), range(1)),
    ("cnet:fig7a", "10x73k", (), range(1)),
    ("cnet:fig7b", "10x73k", (), range(1)),
    ("cnet:fig7c", "pendigits", (), range(1)),
    ("precise_feature:figS2", "blobs8", (), range(3)),
    ("cnet:table6", "cifar10 reuters10k 10x73k", (*KM, *CM, "CM-EM r", "CM-EM p"), range(10)),
    ("acedec:table3", "usps", (), range(3)),
    ("dkm:table1", "mnist", DKM, range(1)),
    ("cnet:table3", "mnist", DEEP, range(1)),
    ("dekm:table3", "mnist", DEKM, range(1)),
    ("acedec:table1", "mnist_test gtsrb objects", (*ACE, *ACE_OTHERS), range(3)),
    ("dekm:readings", "mnist", (), range(1)),
    ("cnet:table6", "mnist fashion_mnist", (*GMM, *CM), range(3)),
]


def planned(papers, known: list[dict], path) -> list:
    """Jobs of the plan that no ledger has, in order, each once; all in the row's main profile."""
    book, jobs, seen = Book(known, path), [], set()
    for name, sets, rows, seeds in PLAN:
        paper, (item,) = find(name, papers)
        wanted, found = sets.split(), []
        for slot in slots(paper, item):
            if slot.data.key not in wanted or (rows and slot.row.label not in rows):
                continue
            here = {run["seed"] for run in book.cell(slot, slot.main, exact=True).runs}
            found += [
                (seed, wanted.index(slot.data.key), slot) for seed in seeds if seed not in here
            ]
        found.sort(key=lambda entry: entry[:2])
        for seed, _, slot in found:
            job = slot.job(slot.main, seed)
            key = f"{job} {job.preset} {job.base} {job.baseline}"
            if key not in seen:
                seen.add(key)
                jobs.append(job)
    return jobs


def cheapest(papers, known: list[dict], path, most: int = 10) -> list:
    """Jobs of all tables that no ledger has, by their time for each published figure they fill.

    Methods without a network get 10 seeds, the others 3, and none more than `most`; a further seed
    counts as three times as long, so that breadth comes before depth. Stand-ins for missing data
    are left out.
    """
    book, clock, found = Book(known, path), Clock(known), {}
    for paper in papers:
        for item in paper.items:
            if item.kind != "table":
                continue
            for slot in slots(paper, item):
                if slot.data.stand_in:
                    continue
                job, params = slot.jobs[slot.main]
                here = {run["seed"] for run in book.cell(slot, slot.main, exact=True).runs}
                asked = 3 if "hidden" in params or "channels" in params else 10
                seconds = clock.seconds(job, params, slot.data.source)
                for seed in set(range(min(asked, slot.seeds, most))) - here:
                    made = slot.job(slot.main, seed)
                    key = f"{made} {made.preset} {made.base} {made.baseline}"
                    entry = found.setdefault(key, [made, seconds * (3 if seed else 1), 0])
                    entry[2] += len(item.metrics)
    return [made for made, *_ in sorted(found.values(), key=lambda e: (e[1] / e[2], str(e[0])))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the new lines")
    parser.add_argument("--ledger", type=Path, default=Path("results/ledger.jsonl"))
    parser.add_argument("--cache-dir", help="pre-trained networks (default: OUT/cache)")
    parser.add_argument("--skip", default="", help="no runs whose text holds one of A,B,...")
    parser.add_argument(
        "--only", default="", help="only runs whose text begins with one of A,B,..."
    )
    parser.add_argument(
        "--precision",
        choices=("single", "half"),
        default="single",
        help="half: products in bfloat16, told in the ledger and marked in tables",
    )
    parser.add_argument(
        "--cheapest", action="store_true", help="all tables, the cheapest figures first"
    )
    parser.add_argument("--seeds", type=int, default=10, help="with --cheapest: at most so many")
    parser.add_argument("--dry", action="store_true", help="print the list and stop")
    args = parser.parse_args()
    papers, new = read_all(), Ledger(args.out / "ledger.jsonl")
    known_runs = Ledger(args.ledger).read() + new.read()
    if args.cheapest:
        jobs = cheapest(papers, known_runs, args.ledger, args.seeds)
    else:
        jobs = planned(papers, known_runs, args.ledger)
    skip, only = ([w for w in text.split(",") if w] for text in (args.skip, args.only))
    jobs = [job for job in jobs if not any(word in str(job) for word in skip)]
    jobs = [job for job in jobs if not only or str(job).startswith(tuple(only))]
    if args.precision == "half":
        jobs = [replace(job, settings=job.settings | known(get(job.method), HALF)) for job in jobs]
    if args.dry:
        print(*jobs, sep="\n")
        return
    read = lru_cache(maxsize=1)(
        loader(papers, lambda name, given: coterie.load_data(name, **given))
    )
    fields = {"cache_dir": args.cache_dir or str(args.out / "cache"), "checkpoint_seconds": 300.0}
    for i, job in enumerate(jobs):
        print(time.strftime("%d %H:%M"), f"{i + 1}/{len(jobs)} begins: {job}", flush=True)
        key = hashlib.blake2b(repr(job).encode(), digest_size=8).hexdigest()
        folder = args.out / "checkpoints" / key
        own = fields | {"checkpoint_dir": str(folder)}
        models = args.out / "models"
        run_campaign([job], new, read, run_fields=own, models=models, threads=1, tell=tell)
        shutil.rmtree(folder, ignore_errors=True)


def tell(text: str) -> None:
    print(time.strftime("%d %H:%M"), text, flush=True)


if __name__ == "__main__":
    main()
