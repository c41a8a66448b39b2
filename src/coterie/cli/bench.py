"""``coterie bench``: run a campaign, or show what earlier ones have found."""

import re
import sys
from argparse import ArgumentTypeError
from pathlib import Path

from coterie.runtime.hints import did_you_mean

from .method_args import Parser, UsageError, duration, method_fields, names, read_value, whole
from .source import load
from .summary import console

PROFILES = ("default", "paper")
PROJECT_LEDGER = "results/ledger.jsonl"  # the committed one: only --ledger adds to it
OWN_LEDGER = "runs/ledger.jsonl"
DESCRIPTION = """Run methods on named data sets and append one line per run to a ledger of your own.
Runs that are in the ledger are skipped: stop a campaign whenever you like and start it again.

  coterie bench usps,pendigits --methods kmeans:r,kmeans:p,ae_kmeans --seeds 5
  coterie bench usps --methods dec --grid lr=1e-3,1e-4 --set dec.epochs=50
  coterie bench --show --methods kmeans"""


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie bench",
        usage="coterie bench DATASETS --methods M[:VARIANT],... [options]\n"
        "       coterie bench --show|--rank [DATASETS] [--methods ...]",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "datasets", type=names, nargs="?", metavar="DATASETS", help="named data sets: A,B,..."
    )
    parser.add_argument(
        "--datasets",
        type=names,
        dest="datasets_flag",
        metavar="A,B,...",
        help="the same as DATASETS",
    )
    parser.add_argument(
        "--methods", type=names, default=[], metavar="M[:V],...", help="methods to run"
    )
    parser.add_argument("--profile", metavar="default|paper", help="settings to start from")
    parser.add_argument(
        "--seeds",
        type=seeds,
        default=list(range(5)),
        metavar="N|A-B|A,B",
        help="number or list of seeds (default: 5)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[M.]KEY=VALUE",
        help="a parameter, of all methods or of M",
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="[M.]KEY=V1,V2,...",
        help="several values of a parameter, each in runs of its own",
    )
    parser.add_argument("--budget", type=duration, metavar="T", help="start no run after this time")
    parser.add_argument("--threads", type=whole, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--ledger",
        metavar="FILE",
        help=f"file of results (default: {OWN_LEDGER}; to show, {PROJECT_LEDGER} if it exists)",
    )
    parser.add_argument(
        "--cache-dir", metavar="DIR", help="folder in which runs share pre-trained networks"
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of the named data sets (or set COTERIE_DATA)"
    )
    parser.add_argument("--retry", action="store_true", help="repeat runs that failed")
    parser.add_argument("--show", action="store_true", help="print mean ± std (best) and stop")
    parser.add_argument(
        "--part", type=share, metavar="S", help="with --show: score this share of the rows"
    )
    parser.add_argument("--rank", action="store_true", help="print the mean rank of each method")
    args = parser.parse_strictly(argv)
    datasets = [_dataset_name(n) for n in (args.datasets or []) + (args.datasets_flag or [])]
    if args.profile not in (None, *PROFILES):
        close = did_you_mean(args.profile, PROFILES)
        raise UsageError(f"--profile is default or paper, not {args.profile}{close}")

    from coterie.research.bench.ledger import Ledger

    looking = args.show or args.rank
    ledger = Ledger(args.ledger or _usual_ledger(looking))
    if looking and not ledger.path.exists():
        raise UsageError(
            f"{ledger.path} is not there; a clone of the project has its ledger in "
            f"{PROJECT_LEDGER} (--ledger FILE), or measure your own: coterie bench DATASETS "
            "--methods M,..."
        )
    if args.show:
        return _show(ledger, datasets, args)
    if args.rank:
        return _rank(ledger, datasets, args)
    if not datasets or not args.methods:
        raise UsageError("which runs? give DATASETS and --methods (see coterie bench --help)")
    return _campaign(ledger, datasets, args)


def _usual_ledger(looking: bool) -> str:
    """Where runs are looked up, and where new ones go, when nothing is said."""
    return PROJECT_LEDGER if looking and Path(PROJECT_LEDGER).exists() else OWN_LEDGER


def seeds(text: str) -> list[int]:
    """``5`` is 0 to 4, ``3-7`` is 3 to 7, ``0,4`` is those two."""
    if re.fullmatch(r"\d+", text):
        found = list(range(int(text)))
    elif match := re.fullmatch(r"(\d+)-(\d+)", text):
        found = list(range(int(match[1]), int(match[2]) + 1))
    else:
        found = [int(part) for part in names(text) if part.isdigit()]
        found = found if len(found) == len(names(text)) else []
    if not found:
        raise ArgumentTypeError(
            f"'{text}' names no seeds: 5 means 0 to 4, 3-7 means 3 to 7, 0,4 means these two"
        )
    return found


def share(text: str) -> float:
    """A share of the rows, such as 0.9."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"'{text}' is not a share of the rows; give a number such as 0.9")
    return value


def read_methods(words: list[str]) -> list[tuple[str, str]]:
    """``kmeans:r`` is one row of a table, ``kmeans:*`` all of them, ``kmeans`` the default."""
    from coterie.registry import get

    found = []
    for word in words:
        key, _, variant = word.partition(":")
        known = get(key).variants
        if variant == "*":
            found += [(key, name) for name in known]
        elif variant in ("", *known):
            found.append((key, variant))
        else:
            listed = ", ".join(known) or "none"
            close = did_you_mean(variant, known)
            raise UsageError(f"{key} has no variant {variant} (it has: {listed}){close}")
    return found


def read_method(word: str) -> tuple[type, str]:
    """``kmeans:r`` -> class and variant, where only one method can be meant."""
    from coterie.registry import get

    found = read_methods([word])
    if len(found) != 1:
        listed = ", ".join(f"{key}:{variant}" for key, variant in found)
        raise UsageError(f"{word} is more than one method; choose one of {listed or 'none'}")
    return get(found[0][0]), found[0][1]


def read_settings(words: list[str], methods: list[str], *, several: bool = False) -> dict:
    """``KEY=VALUE`` for every method, ``M.KEY=VALUE`` for one.

    Returns
    -------
    dict method -> dict of name -> value, or list of values when `several`
    """
    from coterie.registry import get

    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        owner, dot, key = name.rpartition(".")
        key = key.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"'{word}' is not of the form KEY=VALUE")
        if dot and owner not in methods:
            raise UsageError(f"'{word}': {owner} is not among --methods {', '.join(methods)}")
        for method in [owner] if dot else methods:
            fields = method_fields(get(method))
            kinds = [int] if key == "n_clusters" else fields[key][1] if key in fields else None
            if kinds is None:
                close = did_you_mean(key, fields)
                raise UsageError(f"{method} has no parameter {key}{close}")
            # commas inside brackets belong to one value: hidden=(500,500),(100,)
            parts = re.findall(r"\([^)]*\)|[^,]+", text) if several else [text]
            values = [read_value(part.strip(), kinds) for part in parts]
            found.setdefault(method, {})[key] = values if several else values[0]
    return found


def _campaign(ledger, datasets: list[str], args) -> int:
    from coterie.research.bench.campaign import plan

    methods = read_methods(args.methods)
    keys = list(dict.fromkeys(key for key, _ in methods))
    jobs = plan(
        datasets,
        methods,
        args.profile or "default",
        args.seeds,
        read_settings(args.set, keys),
        read_settings(args.grid, keys, several=True),
    )
    options = {"data_dir": args.data_dir} if args.data_dir else {}

    def labelled(name, **more):
        dataset = load(name, options | more)
        if dataset.labels is None:
            raise UsageError(f"{name} has no known classes, so there is nothing to score")
        return dataset

    return conduct(jobs, ledger, labelled, args, retry=args.retry)


def conduct(jobs, ledger, load, args, retry: bool = False) -> int:
    """Run a campaign, tell of each run, and sum up; also the way of `coterie paper --run`."""
    from coterie.research.bench.campaign import run_campaign

    try:
        counts = run_campaign(
            jobs,
            ledger,
            load,
            budget=args.budget,
            threads=args.threads,
            retry=retry,
            run_fields={"cache_dir": args.cache_dir} if args.cache_dir else None,
            tell=lambda text: print(text, flush=True),
        )
    except KeyboardInterrupt:
        print("\nstopped; repeat the command to continue", file=sys.stderr)
        raise
    told = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    print(f"{told or 'nothing to do'}; ledger {ledger.path}")
    return 1 if counts["failed"] else 0


def _dataset_name(name: str) -> str:
    """The catalogue's name; a wrong one is found now, not after an hour of other work."""
    from coterie.data.sets import named

    if (known := named.canonical(name)) is not None:
        return known
    close = did_you_mean(name, named.names())
    raise UsageError(f"there is no data set {name}{close} (see coterie datasets)")


def _show(ledger, datasets: list[str], args) -> int:
    from coterie.research.bench import tables

    runs = tables.select(ledger.read(), datasets, args.methods, args.profile)
    if args.part:
        runs = _of_a_part(runs, ledger, args.part)
    if not runs:
        raise UsageError(f"{ledger.path} has no such runs")
    tables.show(tables.summarise(runs), console())
    return 0


def _of_a_part(runs: list[dict], ledger, part: float) -> list[dict]:
    """The runs whose predictions were kept, with the scores of a part of the rows."""
    from coterie.research.bench.predictions import Predictions

    kept = Predictions(ledger.path)
    found = [(run, kept.part_scores(run, part)) for run in runs]
    return [run | scores for run, scores in found if scores]


def _rank(ledger, datasets: list[str], args) -> int:
    from coterie.research.bench import ranking, tables

    runs = tables.select(ledger.read(), datasets, args.methods, "default")
    if not runs:
        raise UsageError(f"{ledger.path} has no such runs")
    print(ranking.markdown(ranking.rank_defaults(runs, datasets)), end="")
    return 0
