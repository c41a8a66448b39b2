"""One fit of peers.py in a process of its own: prints one line of JSON.

It runs under two interpreters: coterie's own, and the one that has ClustPy.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from memory import peak_mb

HIDDEN, CODE, BATCH = (500, 500, 2000), 10, 256
# ClustPy's weights in our convention (sum over features, mean over the batch): DCN halves its 0.1
WEIGHTS = {"idec": {"weight": 0.1}, "dcn": {"weight": 0.05}, "dkm": {"weight": 0.1}}

# of each progress bar of ClustPy's pre-training: its start and the end of each epoch
_PRETRAINING: list[list[np.ndarray]] = []


def clocks() -> np.ndarray:
    """Seconds by the clock on the wall and of this process; other work changes only the first."""
    return np.array([time.perf_counter(), time.process_time()])


def rows_of(job: dict) -> tuple[np.ndarray, np.ndarray]:  # (n, h, w) in 0..1, (n,)
    import coterie

    more = {"data_dir": job["data_dir"]} if job["data_dir"] else {}
    data = coterie.load_data(job["dataset"], **more)
    X = np.asarray(data.X[: job["rows"]], dtype=np.float32)
    return X / max(float(X.max()), 1.0), np.asarray(data.labels[: job["rows"]])


def clustpy(X: np.ndarray, k: int, job: dict) -> dict:
    import tqdm

    bars: list[list[np.ndarray]] = []
    start, postfix = tqdm.tqdm.__init__, tqdm.tqdm.set_postfix

    def begin(bar, *args, **kwargs):
        bar.seen = [clocks()]
        before = kwargs.get("desc") == "AE training"
        (_PRETRAINING if before else bars).append(bar.seen)
        start(bar, *args, **kwargs)

    def epoch(bar, *args, **kwargs):
        bar.seen.append(clocks())
        postfix(bar, *args, **kwargs)

    tqdm.tqdm.__init__, tqdm.tqdm.set_postfix = begin, epoch
    from clustpy import deep

    name = {"dec": "DEC", "idec": "IDEC", "dcn": "DCN", "dkm": "DKM", "acedec": "ACeDeC"}
    X = X.reshape(len(X), -1)
    network, weights = _clustpy_network(X, job)
    model = getattr(deep, name[job["method"]])(
        k,
        batch_size=BATCH,
        pretrain_epochs=job["pretrain_epochs"],
        clustering_epochs=job["epochs"],
        neural_network=network,
        neural_network_weights=weights,
        embedding_size=CODE,
        device=torch.device("cpu"),
        random_state=job["seed"],
    )
    begin_fit = clocks()
    with contextlib.redirect_stdout(sys.stderr):
        model.fit(X)
    first = np.array(json.loads(Path(weights).with_suffix(".json").read_text()))
    took = clocks() - begin_fit + first.sum(0)
    # ACeDeC has several: the network is part of the slowest one, the others search for a start
    lengths = [np.diff(bar, axis=0) for bar in bars if len(bar) > 1]
    lengths = max(lengths, key=lambda epochs: np.median(epochs[:, 1]))
    return {"labels": model.labels_, "fit": took, "epochs": lengths, "pretrain": first}


def _clustpy_network(X: np.ndarray, job: dict) -> tuple[tuple, str]:
    """ClustPy's autoencoder and the file of its weights after ClustPy's own pre-training.

    All five methods pre-train alike: one network for a data set and seed serves them, its epochs'
    seconds lie beside it and count in every fit.
    """
    from clustpy.deep._train_utils import get_trained_network
    from clustpy.deep.neural_networks import FeedforwardAutoencoder

    layers = [X.shape[1], *HIDDEN, CODE]
    network = FeedforwardAutoencoder, {"layers": layers, "activation_fn": torch.nn.ReLU}
    name = f"{job['dataset']}-{len(X)}-{job['pretrain_epochs']}-{job['seed']}.pt"
    weights = Path(job["cache"]) / name
    if not weights.exists():
        random = np.random.RandomState(job["seed"])
        torch.manual_seed(random.randint(np.iinfo("int").max))
        with contextlib.redirect_stdout(sys.stderr):
            trained = get_trained_network(
                data=X,
                n_epochs=job["pretrain_epochs"],
                batch_size=BATCH,
                device=torch.device("cpu"),
                embedding_size=CODE,
                neural_network=network,
                random_state=random,
            )
        epochs = np.diff(_PRETRAINING[-1], axis=0)
        weights.with_suffix(".json").write_text(json.dumps(epochs.tolist()))
        trained.save_parameters(weights)
    return network, str(weights)


class Reached(Exception):  # our fit has the NMI that was asked for
    pass


def ours(X: np.ndarray, y: np.ndarray, k: int, job: dict) -> dict:
    from coterie import metrics, registry
    from coterie.train.engine import Engine

    params: dict = {"random_state": job["seed"]}
    if job["side"] == "same":
        X = X.reshape(len(X), -1)
        params |= {"hidden": HIDDEN, "embedding_dim": CODE, "batch_size": BATCH, "scale": "none"}
        params |= {"pretrain_epochs": job["pretrain_epochs"], "pretrain_lr": 1e-3, "lr": 1e-4}
        params |= {"pretrain_schedule": "constant", "schedule": "constant", "augment": "none"}
        # ClustPy never looks at all rows; DEC's own interval of 140 steps is the nearest to that
        params |= {"epochs": job["epochs"], "tol": 0.0, "update_every": 140}
        params |= WEIGHTS.get(job["method"], {})
    else:
        params["cache_dir"] = job["cache"]
    model = registry.get(job["method"])(k, **params)
    course: list[list[float]] = []
    marks: list[np.ndarray] = []  # begin of the clustering phase and end of each epoch
    pretraining = Path(job["cache"]) / f"ours-{job['dataset']}-{len(X)}-{job['seed']}.json"
    paused = np.zeros(2)
    begin_fit = clocks()
    train, end_epoch = Engine._train, Engine._end_epoch

    def begun(engine, *args):
        if engine.head is not None:
            first = not marks
            marks[:] = [clocks()]
            if first and engine.cached_seconds:  # an earlier fit's: they count here too
                paused[:] -= json.loads(pretraining.read_text())
            elif first and job["side"] == "default":
                pretraining.write_text(json.dumps((marks[0] - begin_fit).tolist()))
        train(engine, *args)

    def scored(engine, steps):
        end_epoch(engine, steps)
        now = clocks()
        if engine.head is None:
            return
        marks.append(now)
        if job["side"] == "default":
            with torch.no_grad():
                found = engine.assign(engine.encode_all(), engine.head).argmax(1)
            course.append([*(now - begin_fit - paused), metrics.nmi(y, found.numpy())])
            if job["goal"] is not None and course[-1][2] >= job["goal"]:
                raise Reached
            paused[:] += clocks() - now

    Engine._train, Engine._end_epoch = begun, scored
    try:
        model.fit(X)
        labels, took = model.labels_, clocks() - begin_fit - paused
        course.append([*took, metrics.nmi(y, labels)])
    except Reached:
        labels, took = None, None
    same = job["side"] == "same"
    return {
        "labels": labels,
        "fit": took,
        "epochs": np.diff(marks, axis=0) if same else np.zeros((0, 2)),
        "course": [] if same else course,
    }


def main(job: dict) -> None:
    torch.set_num_threads(job["threads"])
    X, y = rows_of(job)
    k = len(np.unique(y))
    found = clustpy(X, k, job) if job["side"] == "clustpy" else ours(X, y, k, job)
    from coterie import metrics

    whole = found["labels"] is not None
    scores = metrics.scores(y, found["labels"]) if whole else {}
    epoch = np.mean(found["epochs"], axis=0) if len(found["epochs"]) else [None, None]
    before = found.get("pretrain", ())
    out = {
        "pretrain_cpu": float(np.mean(before, axis=0)[1]) if len(before) else None,
        **dict(zip(("epoch_seconds", "epoch_cpu"), epoch)),
        **dict(zip(("fit_seconds", "fit_cpu"), found["fit"] if whole else [None, None])),
        "peak_mb": peak_mb(),
        **{name: scores.get(name) for name in ("acc", "nmi", "ari")},
        "course": found.get("course", []),
    }
    print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
