"""Trials behind sentences of results/README.md that say why a figure falls short.

    python benchmarks/findings.py acedec   # weight of the reconstruction, size of turns, DCN beside
    python benchmarks/findings.py coil20   # restarts of k-means on one autoencoder's code
    python benchmarks/findings.py dcn      # DCN p of C-Net's tables: centres that stay, its weight

Each line that is printed is one fit; pre-trained networks are kept in --cache-dir. The first takes
about two and a half hours of a core, the others ten minutes each.
"""

import argparse
from functools import partial
from unittest.mock import patch

import numpy as np
from sklearn.cluster import KMeans

import coterie
from coterie import metrics
from coterie.math.assign import squared_error
from coterie.math.augment import affine
from coterie.methods.acedec import method, start
from coterie.registry import get
from coterie.research.papers import find, read_all
from coterie.research.papers.jobs import known, slots

SHORT = {"lr": 5e-4, "epochs": 50}
SPACE = SHORT | {"space_epochs": 20}
WIDE = {"rotate": 30.0, "shift": 0.12}
PULL = {"code_variance": 0.0, "augment": "rigid"}

# variant, weight of the reconstruction, settings, size of the changes
ACEDEC = [
    ("plain", 1 / 256, {}, {}),
    ("plain", 1 / 16, SPACE, {}),
    ("plain", 1 / 4, SPACE, {}),
    ("aug", 1 / 16, SPACE, {}),
    ("aug", 1.0, SPACE, {}),
    ("aug", 1.0, SPACE, WIDE),
]
DCN = [
    {"weight": 0.05, **SHORT},
    {"weight": 12.8, **SHORT},
    {"weight": 0.5, "lr": 1e-3, "epochs": 150},
    # as if lambda (.1, 1, 10) stood beside a reconstruction that is a mean over the 256 pixels
    {"weight": 25.6, "lr": 1e-4, "epochs": 150},
    *({"weight": w, "lr": 1e-4, "epochs": 150, "augment": "none"} for w in (12.8, 128.0, 1280.0)),
]


def acedec(cache_dir: str) -> None:
    """USPS, seed 0: eq. 5 with another weight of its last term, wider changes, and DCN."""
    data = coterie.load_data("usps")
    run = {"random_state": 0, "cache_dir": cache_dir}
    for variant, weight, settings, sizes in ACEDEC:
        model = get("acedec").paper("usps", variant=variant, n_clusters=10, **run, **settings)
        lighter = partial(weighted_error, weight=weight)
        with (
            patch.object(method, "squared_error", lighter),
            patch.object(start, "squared_error", lighter),
            patch("coterie.methods.autoencoder.affine", partial(affine, **sizes)),
        ):
            model.fit(data.X)
        tell(f"acedec:{variant} reconstruction x {weight:g} {settings} {sizes}", model, data)
    shared = known(get("dcn"), get("acedec").paper("usps", n_clusters=10).get_params())
    for settings in DCN:
        model = get("dcn")(**{**shared, **PULL, **run, **settings})
        tell(f"dcn {PULL | settings}", model.fit(data.X), data)


def weighted_error(x, rebuilt, weight: float):
    return weight * squared_error(x, rebuilt)


def coil20(cache_dir: str) -> None:
    """AE+K-means of DEKM's Table III: ten fits of k-means by number of restarts."""
    model, data = cell("dekm:table3", "AE+K-means", "coil20")
    code = model.set_params(cache_dir=cache_dir).fit(data.X).transform(data.X)
    for n_init in (1, 10, 100):
        found = [KMeans(20, n_init=n_init, random_state=s).fit_predict(code) for s in range(10)]
        acc = [metrics.scores(data.labels, labels)["acc"] for labels in found]
        print(f"{n_init} restarts: ACC {np.mean(acc):.3f} +- {np.std(acc):.3f}", flush=True)


def dcn(cache_dir: str) -> None:
    """USPS, seed 0: as in the table, with centres that stay, and 256 times as heavy."""
    for settings in ({}, {"start_count": 1e9}, {"weight": 25.6}):
        model, data = cell("cnet:table3", "DCN p", "usps")
        model.set_params(cache_dir=cache_dir, **settings)
        tell(f"DCN p {settings}", model.fit(data.X), data)


def cell(item: str, row: str, key: str):
    """The estimator of a table's cell with seed 0, and its data."""
    paper, (table,) = find(item, read_all())
    (slot,) = (s for s in slots(paper, table) if (s.row.label, s.data.key) == (row, key))
    data = coterie.load_data(slot.data.source, **slot.data.options)
    return slot.job(slot.main, 0).estimator(len(np.unique(data.labels))), data


def tell(what: str, model, data) -> None:
    found = metrics.scores(data.labels, model.labels_)
    dims = getattr(model, "cluster_dims_", None)
    print(f"{what}: NMI {found['nmi']:.3f}  ACC {found['acc']:.3f}  dimensions {dims}", flush=True)


STUDIES = {"acedec": acedec, "coil20": coil20, "dcn": dcn}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--cache-dir", default="runs/findings")
    args = parser.parse_args()
    STUDIES[args.study](args.cache_dir)
