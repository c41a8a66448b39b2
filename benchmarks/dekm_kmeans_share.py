"""How much of DEKM's time goes into k-means, with warm starts and with restarts at each update.

    python benchmarks/dekm_kmeans_share.py [dataset] [epochs]

The network is not pre-trained: the share is about time, not about quality.
"""

import sys

from coterie import DEKM, load_data

SEARCHES = {
    "warm start, challenged every 5th update": {},
    "warm start only": {"fresh_runs": 0},
    "20 fresh runs at each update": {"fresh_runs": 20, "fresh_every": 1},
}


def main(dataset: str = "usps", epochs: float = 2) -> None:
    data = load_data(dataset)
    k = len(set(data.labels))
    print(f"{dataset}: {data.X.shape[0]} rows, {k} clusters, {epochs:g} epochs of clustering")
    for name, options in SEARCHES.items():
        model = DEKM(k, init="random", epochs=epochs, tol=0.0, random_state=0, **options)
        model.fit(data.X)
        total = sum(model.seconds_.values())
        print(f"{name:42s} {model.kmeans_share_:6.1%} of {total:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(float, sys.argv[2:3]))
