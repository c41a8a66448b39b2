"""coterie against ClustPy 0.0.3: same rows, same network, same seeds, in turns on one machine.

    python benchmarks/peers.py --cache ~/.cache/coterie-peers                     # the whole study
    python benchmarks/peers.py --cache DIR --datasets usps --methods dec --seeds 1 --epochs 2

Three sides for each method, each fit in a process of its own:

clustpy   its estimator; 500-500-2000-10 autoencoder with ReLU, Adam, its rates and weights
same      ours with the same network, batch size, optimiser, rates, weights and epochs
default   ours as `fit` uses it, only with the rows as images: its scores after every epoch give the
          seconds to the NMI at which ClustPy ended (scoring does not count); with --to-goal it
          stops there and has no scores of its own

Pre-trained networks of `clustpy` and `default` are kept under --cache for all five methods of a
data set and seed; their seconds count in each fit.
Seconds are those of the processor with one thread (those of the clock are stored too), so that
other work on the machine does not decide. Epochs count for clustpy and same alone. Finished fits
are found in results/speed.json and skipped.
ClustPy gets a venv of its own under --cache, which sees this one's torch and numpy, and a package
named torchvision with just the names that ClustPy imports: the real one may not import here, and
feed-forward networks use none of it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import speedfile

METHODS = ("dec", "idec", "dcn", "dkm", "acedec")
SIDES = ("clustpy", "same", "default")
WHOLE = 100, 150  # epochs of pre-training and clustering of a fit of ClustPy with its defaults
WORKER = Path(__file__).with_name("peers_worker.py")
STUB = {
    "__init__.py": "from . import datasets, models, transforms\n",
    "datasets.py": "class VisionDataset: ...\n",
    "transforms.py": "class Compose: ...\n\n\nclass Normalize: ...\n",
    "models/__init__.py": "from . import _api\n",
    "models/_api.py": "class Weights: ...\n\n\nclass WeightsEnum: ...\n",
}


def clustpy_python(cache: Path) -> Path:
    """The interpreter of a venv that has ClustPy; made when it is not there."""
    home = cache / "clustpy-0.0.3"
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    venv.create(home, with_pip=True, clear=True)
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip())
    # a path alone would not follow the .pth files of an editable install
    own = sysconfig.get_path("purelib")
    (site / "shared.pth").write_text(f"import site; site.addsitedir({own!r})\n")
    for name, text in STUB.items():
        path = site / "torchvision" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "clustpy==0.0.3"], check=True)
    (home / "ready").touch()
    return python


def measure(python: Path, job: dict) -> dict:
    env = {**os.environ, "OMP_NUM_THREADS": str(job["threads"])}
    done = subprocess.run(
        [python, WORKER, json.dumps(job)],
        env=env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{job['side']} {job['method']} failed; its message is above")
    return json.loads(done.stdout.strip().splitlines()[-1])


def key_of(job: dict) -> str:
    length = "" if job["side"] == "default" else f"/{job['pretrain_epochs']}+{job['epochs']}"
    threads = f"/{job['threads']} threads" if job["threads"] > 1 else ""
    return f"{job['dataset']}/{job['method']}/{job['side']}{length}{threads}/{job['seed']}"


def show(jobs: list[dict], rows: dict, ends: dict[str, float]) -> None:
    """Means over seeds, one line for each data set, method and side.

    `ratio` is our epoch over ClustPy's. `whole` is what a fit of ClustPy with its default 100 + 150
    epochs takes at the pace of those that were measured. `to NMI` are the seconds of our default
    until the NMI at which ClustPy's own fit of that length ends, given by `ends` or measured, and
    their share of the whole.
    """
    groups: dict[str, list[dict]] = {}
    for job in jobs:
        if key_of(job) in rows:
            groups.setdefault(key_of({**job, "seed": "*"}), []).append(job)
    print(
        f"{'data':7}{'method':8}{'side':9}seeds  s/epoch  ratio   fit s   whole   ACC   NMI   ARI"
        "    MB  to NMI"
    )
    for group in groups.values():
        job, side = group[0], group[0]["side"]
        found, rival = [rows[key_of(job)] for job in group], rivals(job, rows)
        line = f"{job['dataset']:7}{job['method']:8}{side:9}{len(found):5}"
        ratio = _mean(found, "epoch_cpu") / _mean(rival, "epoch_cpu")
        line += f"{_mean(found, 'epoch_cpu'):9.3f}{ratio if side == 'same' else float('nan'):7.2f}"
        line += f"{_mean(found, 'fit_cpu'):8.0f}"
        line += f"{_whole(found) if side == 'clustpy' else float('nan'):8.0f}"
        line += "".join(f"{_mean(found, name):6.3f}" for name in ("acc", "nmi", "ari"))
        line += f"{_mean(found, 'peak_mb'):6.0f}"
        goal = goal_of(job, rows, ends) if side == "default" else None
        if goal is not None:
            times = [_reaches(row["course"], goal) for row in found]
            if None in times:
                line += f"  {goal:.3f} not reached in {times.count(None)} of {len(times)}"
            else:
                took = statistics.fmean(times)
                line += f"  {goal:.3f}: {took:.1f} s, {took / _whole(rival):.3f} of the whole"
        print(line.replace("nan", "  -"))


def rivals(job: dict, rows: dict) -> list[dict]:
    """ClustPy's fits, of any seed, on the job's rows with the job's method and epochs."""
    like = key_of({**job, "side": "clustpy"}).rpartition("/")[0]
    return [row for key, row in rows.items() if key.rpartition("/")[0] == like]


def goal_of(job: dict, rows: dict, ends: dict[str, float]) -> float | None:
    """The NMI at which ClustPy's fit of its default length ends, given or measured."""
    if job["method"] in ends:
        return ends[job["method"]]
    measured = (job["pretrain_epochs"], job["epochs"]) == WHOLE and rivals(job, rows)
    return _mean(measured, "nmi") if measured else None


def _mean(found: list[dict], name: str) -> float:
    values = [row[name] for row in found if row.get(name) is not None]
    return statistics.fmean(values) if values else float("nan")


def _whole(found: list[dict]) -> float:
    """Seconds of a fit of ClustPy with its defaults, from the pace of its epochs."""
    return WHOLE[0] * _mean(found, "pretrain_cpu") + WHOLE[1] * _mean(found, "epoch_cpu")


def _reaches(course: list[list[float]], goal: float) -> float | None:
    """Seconds after which the NMI is at least `goal`; the course has (clock, processor, NMI)."""
    return next((cpu for _, cpu, nmi in course if nmi >= goal), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    where = "folder for ClustPy's venv and for pre-trained networks"
    parser.add_argument("--cache", type=Path, required=True, help=where)
    parser.add_argument("--datasets", default="usps,mnist")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretrain-epochs", type=int, default=WHOLE[0], help="ClustPy's default")
    parser.add_argument("--epochs", type=int, default=WHOLE[1], help="ClustPy's default")
    parser.add_argument("--rows", type=int, help="use the first rows only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data-dir", help="folder of the named data sets (or set COTERIE_DATA)")
    parser.add_argument(
        "--ends", default="", help="NMI at which ClustPy ends, if known: dec=.75,idec=.65"
    )
    parser.add_argument(
        "--to-goal", action="store_true", help="our default stops at the NMI where ClustPy ends"
    )
    parser.add_argument("--again", action="store_true", help="measure what is there once more")
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    args = parser.parse_args()
    if args.rows:
        print("note: --rows is for trying the script; nothing is written to results/speed.json")
    names = ("pretrain_epochs", "epochs", "rows", "threads", "data_dir")
    given = {name: getattr(args, name) for name in names}
    cache = str(args.cache.expanduser().resolve())
    jobs = [
        {"dataset": dataset, "seed": seed, "method": method, "side": side, "cache": cache, **given}
        for dataset in args.datasets.split(",")
        for seed in range(args.seeds)
        for method in args.methods.split(",")
        for side in args.sides.split(",")
    ]
    rows = {} if args.rows else speedfile.read().get("peers", {})
    parts = (part.split("=") for part in args.ends.split(",") if part)
    ends = {method: float(nmi) for method, nmi in parts}
    if not args.show:
        python = clustpy_python(Path(cache))
        for job in jobs:
            if key_of(job) in rows and not args.again:
                continue
            interpreter = python if job["side"] == "clustpy" else Path(sys.executable)
            goal = goal_of(job, rows, ends) if args.to_goal else None
            found = measure(interpreter, {**job, "goal": goal})
            print(key_of(job), {k: v for k, v in found.items() if k != "course"}, flush=True)
            rows[key_of(job)] = found
            if not args.rows:
                speedfile.put("peers", key_of(job), found)
    show(jobs, rows, ends)


if __name__ == "__main__":
    main()
