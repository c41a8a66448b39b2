"""How much of DEKM's time goes into k-means, with warm starts and with restarts at each update.

    python benchmarks/dekm_kmeans_share.py [DATASET] [--epochs E] [--data-dir DIR]

The network is not pre-trained: the share is about time, not about quality.
"""

import argparse

from coterie import DEKM, load_data

SEARCHES = {
    "warm start, challenged every 5th update": {},
    "warm start only": {"fresh_runs": 0},
    "20 fresh runs at each update": {"fresh_runs": 20, "fresh_every": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset", nargs="?", default="usps")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    args = parser.parse_args()
    data = load_data(args.dataset, data_dir=args.data_dir)
    k = len(set(data.labels))
    print(f"{data.name}: {len(data.X)} rows, {k} clusters, {args.epochs:g} epochs of clustering")
    for name, options in SEARCHES.items():
        model = DEKM(k, init="random", epochs=args.epochs, tol=0.0, random_state=0, **options)
        model.fit(data.X)
        total = sum(model.seconds_.values())
        print(f"{name:42s} {model.kmeans_share_:6.1%} of {total:.1f} s")


if __name__ == "__main__":
    main()
