"""Run by the resume and two-process tests: fit a method once and leave everything it made."""

import json
import os
import signal
import sys

import numpy as np
import torch

torch.set_num_threads(1)


def main(job: dict) -> None:
    from conftest import quick

    X = np.load(job["data"])
    model = quick(job["key"], **job["params"])
    if job.get("kill"):
        _die_after(job["kill"])
    if job.get("kill_step"):
        _die_in(*job["kill_step"])
    model.fit(X)
    rank = int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))
    if rank == 0:
        model.save(job["out"])
        made = {"labels": model.labels_, "z": model.transform(X)}
        np.savez(job["out"] + "/made.npz", **made, history=_told(model.history_))


def _told(history: list[dict]) -> str:
    return json.dumps([{k: v for k, v in record.items() if k != "seconds"} for record in history])


def _die_after(checkpoints: int) -> None:
    """A real SIGKILL right after a given checkpoint was written."""
    from coterie.storage.tensors import Checkpoint

    save, count = Checkpoint.save, [0]

    def save_and_die(self, tensors, position):
        save(self, tensors, position)
        count[0] += 1
        if count[0] == checkpoints:
            os.kill(os.getpid(), signal.SIGKILL)

    Checkpoint.save = save_and_die


def _die_in(rank: int, step: int) -> None:
    """A real SIGKILL of one of several processes, in the middle of the training."""
    from coterie.train.engine import Engine

    one_step, count = Engine._one_step, [0]

    def step_or_die(self, index):
        count[0] += 1
        if self.world.rank == rank and count[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)
        one_step(self, index)

    Engine._one_step = step_or_die


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main(json.loads(sys.argv[1]))
