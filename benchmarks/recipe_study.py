"""Does each choice of the default profile pay? The defaults with it and without it, same seeds.

    python benchmarks/recipe_study.py            # runs what the ledger lacks, then prints
    python benchmarks/recipe_study.py --show     # prints what the ledger has
    python benchmarks/recipe_study.py --only augment,net --cache-dir DIR

augment   small affine changes of images while the network trains
schedule  pre-training under a one-cycle rate, against a constant 1e-3
net       two layers of 512, against the papers' 500-500-2000 for as many epochs
many      from 20,000 wide rows on the papers' network, unmoved images and a constant rate,
          against the pre-training of small data
length    30 epochs of that pre-training, against 10
heavy     DCN with up to three times the clustering weight on images, against once
pixels    DKM with a clustering weight that grows with the pixels, up to 3, against 1
stop      end when fewer than 0.1 % of labels change, against running all epochs
steps     lengths that grow for few rows, against 20 epochs for all
code      a number per cluster in the embedding of texts and tables, against ten
narrow    a wide pre-trained code is shrunk before centres are learned in it, against one as it is
weights   ACe/DeC's space is taught by the shared term, against codes that it also moves

None of them looks at labels. Scores are means over seeds; AEE are epochs of the bare autoencoder.
"""

import argparse

from coterie.data import load
from coterie.research.bench.campaign import Job, run_campaign
from coterie.research.bench.ledger import Ledger
from coterie.research.bench.tables import spread
from coterie.storage.runs import describe
from coterie.train.settings import FEW

WIDE = {"hidden": (500, 500, 2000)}
SMALL = {  # what FEW has, written out; its images are moved in pre-training
    **{"hidden": FEW.hidden, "pretrain_epochs": float(FEW.epochs[0]), "augment": "affine"},
    **{"pretrain_lr": FEW.lr, "pretrain_schedule": FEW.schedule},
}
CLUSTERS = {"20newsgroups": 20, "coil20": 20}  # ten otherwise
CHOICES = {  # name: data sets, methods with their variants, settings without the choice
    "augment": (["usps"], ["dec:p", "idec:p", "acedec:aug", "dcn:p", "dkm:p"], {"augment": "none"}),
    "schedule": (["usps"], ["dec:p"], {"pretrain_schedule": "constant", "pretrain_lr": 1e-3}),
    "net": (["usps"], ["dec:p"], WIDE),
    "many": (["mnist"], ["ae_kmeans", "dec:p", "idec:p"], SMALL),
    "length": (["mnist"], ["ae_kmeans", "dec:p", "idec:p"], {"pretrain_epochs": 10.0}),
    "heavy": (["usps", "coil20"], ["dcn:p"], {"weight": 1.0}),
    "pixels": (["coil20"], ["dkm:p"], {"weight": 1.0}),
    "stop": (["usps", "pendigits"], ["dec:p"], {"tol": 0.0}),
    "steps": (["digits"], ["dec:p"], {"pretrain_epochs": 20.0, "epochs": 20.0}),
    "code": (["20newsgroups"], ["ae_kmeans", "idec:p"], {"embedding_dim": 10}),
    "narrow": (["20newsgroups"], ["dkm:p", "dcn:p"], {"code_variance": 0.0}),
    "weights": (["usps"], ["acedec:plain"], {"shared_pull": True}),
}


def pairs(only: list[str], seeds: int):
    """(choice, data set, method, jobs with the choice, jobs without it)"""
    for choice in only:
        datasets, methods, without = CHOICES[choice]
        for dataset in datasets:
            for method in methods:
                sides = [
                    [
                        Job(dataset, *method.split(":"), seed=s, settings=change)
                        for s in range(seeds)
                    ]
                    for change in ({}, without)
                ]
                yield choice, dataset, method, *sides


def figures(jobs: list[Job], ledger: Ledger) -> str:
    k = CLUSTERS.get(jobs[0].dataset, 10)
    found = [ledger.find(job.record(describe(job.estimator(k)))) for job in jobs]
    found = [run for run in found if run and run["status"] == "ok"]
    if not found:
        return f"{'-':>24}"
    acc, nmi, aee = (spread([run[m] for run in found])["mean"] for m in ("acc", "nmi", "aee"))
    return f"{100 * acc:6.1f} /{100 * nmi:5.1f}{aee:7.1f} ({len(found)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(CHOICES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ledger", default="results/ledger.jsonl")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache-dir")
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    parser.add_argument("--show", action="store_true", help="run nothing")
    args = parser.parse_args()
    only, ledger = args.only.split(","), Ledger(args.ledger)
    study = list(pairs(only, args.seeds))
    if not args.show:
        jobs = [job for *_, kept, left in study for job in [*kept, *left]]
        fields = {"cache_dir": args.cache_dir} if args.cache_dir else None
        run_campaign(
            jobs,
            ledger,
            lambda name, **how: load(name, data_dir=args.data_dir, **how),
            threads=args.threads,
            run_fields=fields,
        )
    print(f"{'choice':10}{'data set':14}{'method':14}{'with: ACC / NMI, AEE':>24}{'without':>24}")
    for choice, dataset, method, kept, left in study:
        sides = "".join(f"{figures(jobs, ledger):>24}" for jobs in (kept, left))
        print(f"{choice:10}{dataset:14}{method:14}{sides}")


if __name__ == "__main__":
    main()
