"""Try to lose a run, to change a result unseen, or to get an error without a name.

    python benchmarks/chaos.py --minutes 30 --state chaos.json

Seeded: trial i of a campaign is the same in every run. Resumable: the state file knows how far
each campaign came, and the same command goes on. Prints, for each campaign, how many trials there
were, in how many something was lost or changed unseen (wrong), and in how many an error had no
name: a crash, a hang, a traceback (unnamed).

kills     kill -9, SIGTERM or Ctrl-C by the clock, kill -9 before an operation on files, fresh and
          overwriting, then go on
ranks     kill -9 of one of two processes that share a fit; both start again
full      a disk that is full from some moment on, fresh and overwriting
races     two processes that write one folder at once
flips     damaged bytes in runs, checkpoints and cached networks
forged    checkpoints with a correct digest and tensors of other shapes and types
fuzz      damaged files of every format that is read
extremes  absurd arrays in fits
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from chaos_files import full, kills, races, ranks
from chaos_inputs import extremes, flips, forged, fuzz, samples, targets
from chaos_tools import Child, Workshop, warm_up
from threadpoolctl import threadpool_limits

from coterie.storage.atomic import write_atomic

CAMPAIGNS = {f.__name__: f for f in (kills, full, races, flips, forged, fuzz, extremes, ranks)}
SHARES = {"kills": 0.4, "full": 0.12, "races": 0.08, "flips": 0.25, "forged": 0.05, "fuzz": 0.05}
UNASKED = [name for name in CAMPAIGNS if name != "ranks"]  # which starts four interpreters a trial
BATCH = {"kills": 1, "full": 1, "races": 1, "ranks": 1}  # have children of their own
FIRST = {"flips": targets, "forged": targets, "fuzz": samples}  # made once, for all children
SHOWN = 20  # findings of each campaign that are kept word for word


def rng_of(seed: int, name: str, trial: int) -> np.random.Generator:
    return np.random.default_rng([seed, list(CAMPAIGNS).index(name), trial])


def run_batch(shop: Workshop, name: str, seed: int, start: int, size: int) -> list[str]:
    """The findings of some trials, "" where all was well. A child that dies takes none along."""
    function = CAMPAIGNS[name]

    def trials(first: int, last: int) -> list[str]:
        return [function(shop, rng_of(seed, name, i), i) for i in range(first, last)]

    if name in BATCH:
        return trials(start, start + size)
    state, value = Child(lambda: trials(start, start + size)).wait()
    if state == "done":
        return list(value)
    if size > 1:
        parts = [run_batch(shop, name, seed, i, 1) for i in range(start, start + size)]
        return [finding for part in parts for finding in part]
    return [f"unnamed: trial {start}: {state}: {value}"]


def campaign(shop: Workshop, name: str, seed: int, record: dict, until: float, most: int) -> None:
    """Trials of one campaign until the time is over, or as many as asked for."""
    if name in FIRST:
        FIRST[name](shop)
    while time.monotonic() < until and record["tried"] < most:
        size = min(BATCH.get(name, 20), most - record["tried"])
        for finding in run_batch(shop, name, seed, record["next"], size):
            record["next"] += 1
            if finding == "skipped":
                continue
            record["tried"] += 1
            kind, _, said = finding.partition(":")
            if kind == "events":  # kills that met a process which was still at work
                record["events"] = record.get("events", 0) + int(said)
            if kind in ("wrong", "unnamed"):
                record[kind] += 1
                record["findings"] = [*record["findings"], f"{record['next'] - 1}: {finding}"][
                    :SHOWN
                ]


def table(state: dict) -> str:
    lines = ["| campaign | tried | wrong | unnamed | killed |", "|---|---:|---:|---:|---:|"]
    for name, record in state.items():
        killed = f"{record['events']:,}" if "events" in record else ""
        counts = f"{record['tried']:,} | {record['wrong']} | {record['unnamed']} | {killed} |"
        lines.append(f"| {name} | {counts}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="for all campaigns together")
    parser.add_argument("--trials", type=int, default=10**9, help="most of each campaign")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", help="file that knows how far the campaigns came")
    parser.add_argument("--only", default=",".join(UNASKED), help="by commas; there is ranks too")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # forks and thread pools do not mix
    names = args.only.split(",")
    begin = {"tried": 0, "wrong": 0, "unnamed": 0, "next": 0, "findings": []}
    state = {name: dict(begin) for name in names}
    if args.state and Path(args.state).exists():
        state |= json.loads(Path(args.state).read_text())
    total = sum(SHARES.get(name, 0.05) for name in names)
    warm_up()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, threadpool_limits(1):
        shop = Workshop(Path(folder))
        rounds = max(1, round(args.minutes / 5))
        for _ in range(rounds):
            for name in names:
                seconds = 60 * args.minutes / rounds * (SHARES.get(name, 0.05)) / total
                campaign(
                    shop, name, args.seed, state[name], time.monotonic() + seconds, args.trials
                )
                if args.state:
                    write_atomic(args.state, json.dumps(state, indent=1).encode())
    print(table(state))
    for name, record in state.items():
        for finding in record["findings"]:
            print(f"{name} {finding}")
    return int(any(record["wrong"] or record["unnamed"] for record in state.values()))


if __name__ == "__main__":
    sys.exit(main())
