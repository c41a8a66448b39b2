"""Run by test_distributed in each of two processes: fit every method on the same rows."""

import json
import os
import sys

import numpy as np
import torch

torch.set_num_threads(1)


def watch_rows() -> dict:
    """Names and lengths of what the engine holds for each row, at every step."""
    from coterie.train.engine import Engine

    held, one_step = {}, Engine._one_step

    def step(engine, index):
        if engine.head is not None:
            held.update({n: len(getattr(engine.head, n)) for n in engine.head.kinds["rows"]})
        for name in ("labels", "latents"):
            if getattr(engine, name) is not None:
                held[f"engine.{name}"] = len(getattr(engine, name))
        one_step(engine, index)

    Engine._one_step = step
    return held


def count_sums() -> list:
    """Lengths of the sums that were made in shared memory."""
    from coterie.runtime.shared_sum import SharedSum

    lengths, call = [], SharedSum.__call__

    def counted(self, parts):
        total = call(self, parts)
        lengths.append(len(total))
        return total

    SharedSum.__call__ = counted
    return lengths


def main(job: dict) -> None:
    from conftest import quick

    X = np.load(job["root"] + "/x.npy")
    held, sums = watch_rows(), count_sums()
    unseeded = quick("dec", batch_size=20, random_state=None).fit(X)
    np.save(f"{job['root']}/unseeded-{os.environ['RANK']}.npy", unseeded.transform(X))
    for case, (key, changes) in job["cases"].items():
        held.clear()
        model = quick(key, batch_size=20, **changes).fit(X)
        with open(f"{job['root']}/{case}-held-{os.environ['RANK']}.json", "w") as f:
            json.dump(held, f)
        if os.environ["RANK"] == "0":
            folder = f"{job['root']}/{case}"
            model.save(folder)
            np.savez(
                folder + "/made.npz",
                labels=model.labels_,
                z=model.transform(X),
                history=json.dumps(model.history_),
            )
    np.save(f"{job['root']}/sums-{os.environ['RANK']}.npy", sums)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main(json.loads(sys.argv[1]))
