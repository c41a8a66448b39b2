"""Run by test_distributed in each of two processes: fit every method on the same rows."""

import json
import os
import sys

import numpy as np
import torch

torch.set_num_threads(1)


def main(job: dict) -> None:
    from conftest import quick

    X = np.load(job["root"] + "/x.npy")
    unseeded = quick("dec", batch_size=20, random_state=None).fit(X)
    np.save(f"{job['root']}/unseeded-{os.environ['RANK']}.npy", unseeded.transform(X))
    for case, (key, changes) in job["cases"].items():
        model = quick(key, batch_size=20, **changes).fit(X)
        if os.environ["RANK"] == "0":
            folder = f"{job['root']}/{case}"
            model.save(folder)
            np.savez(
                folder + "/made.npz",
                labels=model.labels_,
                z=model.transform(X),
                history=json.dumps(model.history_),
            )


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main(json.loads(sys.argv[1]))
