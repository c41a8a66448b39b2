"""Do methods use all the clusters that they were asked for, and do they say so where they do not?

    COTERIE_DATA=FOLDER python benchmarks/clusters_used.py --methods kith --rows 2000
    COTERIE_DATA=FOLDER python benchmarks/clusters_used.py --methods all --rows 1000 --budget 5s

One line for each set and method: clusters used, the smallest of them, and what the fit said.
"""

import argparse
import time
import warnings

import numpy as np

import coterie
from coterie.data import available


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", default="kith", help="keys, or all")
    parser.add_argument("--sets", help="default: every named set that is here")
    parser.add_argument("--rows", type=int, default=2000, help="drawn at random; 0: all")
    parser.add_argument("--budget", help="time budget of a fit, for those that train")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    here = [
        entry["name"] for entry in available() if entry["where"] not in ("not found", "to fetch")
    ]
    methods, silent, fits = coterie.list_methods(), 0, 0
    keys = list(methods) if args.methods == "all" else args.methods.split(",")
    for name in args.sets.split(",") if args.sets else here:
        data = coterie.load_data(name)
        rows = np.arange(len(data))
        if 0 < args.rows < len(rows):
            rows = np.sort(np.random.default_rng(args.seed).permutation(rows)[: args.rows])
        k = len(np.unique(data.labels[rows]))
        for key in keys:
            estimator = methods[key](k, random_state=args.seed)
            if args.budget and "time_budget" in estimator.get_params():
                estimator.set_params(time_budget=args.budget)
            begin = time.process_time()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    model = estimator.fit(data.X[rows])
                except (ValueError, TypeError, ImportError) as error:
                    print(f"{name:22} {key:10} refuses: {str(error)[:90]}", flush=True)
                    continue
            fits += 1
            sizes = np.bincount(model.labels_)
            used = int((sizes > 0).sum())
            said = any(f"uses {used} of {k} clusters" in str(w.message) for w in told)
            silent += used < k and not said
            print(
                f"{name:22} {key:10} {used:4} of {k:4}  smallest {sizes[sizes > 0].min():5} of "
                f"{len(rows)}  holes {int((sizes == 0).sum())}  "
                f"{'told' if said else ''}  {time.process_time() - begin:.0f} s",
                flush=True,
            )
    print(f"{silent} of {fits} fits used fewer clusters without a word")


if __name__ == "__main__":
    main()
