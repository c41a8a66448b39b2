"""``coterie fit``: cluster data and write a run folder."""

import argparse
from pathlib import Path

from coterie.storage import runs

from .bench import read_method
from .config import config_flags, read_config, stored_params
from .fitting import Fitted, Plan, fit_run, help_with, helper_process
from .method_args import (
    OWN,
    Parser,
    UsageError,
    add_method_flags,
    duration,
    flag_name,
    method_fields,
    option_names,
    whole,
    whole_or_auto,
)
from .source import OPTIONS, absolute, add_data_flags, data_options, short_name, stored_options
from .summary import show_run

EPILOG = """DATA is a file (.npy .npz .csv .tsv .xlsx .parquet .feather .arrow .txt .jsonl .h5ad
.zip), a folder of images, texts or 10x files, or the name of a data set (coterie datasets). The
options below are those of the method {method}; for another one: coterie fit --method M --help"""


def run(argv: list[str]) -> int:
    args, cls = parse(argv)
    out = args.out or f"runs/{short_name(args.data)}-{cls.key}"
    if helper_process():  # the first process has begun the folder, and writes it alone
        begun = runs.check_target(out, resume=True) if args.resume and not args.overwrite else None
        if begun and begun["status"] == "done":
            return 0
        plan = _resumed(args, cls, out, begun) if begun else _fresh(args, cls, out)
        help_with(plan, overwrite=args.overwrite)
        return 0
    if args.write and args.data:
        from .cells import check_write

        check_write(args.data, Path(args.write), overwrite=args.overwrite)
    old = runs.check_target(out, resume=args.resume, overwrite=args.overwrite)
    if args.resume and not old and args.data is None:
        raise UsageError(f"{out} holds no run to resume; give DATA to begin one")
    if old and args.resume and not args.overwrite:
        plan = _resumed(args, cls, out, old)
        if old["status"] == "done":
            if not args.quiet:
                print(f"{out} is finished already")
            return _show(args, runs.read(out), None)
    else:
        plan = _fresh(args, cls, out)
    fitted = fit_run(plan, resume=args.resume, overwrite=args.overwrite)
    return _show(args, fitted.run, fitted)


def parse(argv: list[str]) -> tuple[argparse.Namespace, type]:
    """Read the command line in two steps: which options exist depends on the method."""
    first = Parser(add_help=False)
    for flag in ("--method", "--config", "--out"):
        first.add_argument(flag)
    first.add_argument("--resume", action="store_true")
    early, _ = first.parse_known_args(argv)
    config = read_config(early.config) if early.config else {}
    method = early.method or config.get("method") or _method_of(early) or default_method()
    cls, variant = read_method(str(method))
    parser = build_parser(cls)
    argv = config_flags(config, early.config, option_names(parser)) + argv
    args = parser.parse_strictly(argv)
    args.data = args.data or args.data_flag
    args.variant = variant
    return args, cls


def default_method() -> str:
    from coterie import registry

    return registry.DEFAULT


def build_parser(cls) -> Parser:
    parser = Parser(
        prog="coterie fit",
        usage="coterie fit DATA [--method M] --clusters K|auto --out RUN [options]",
        description=EPILOG.format(method=cls.key),
    )
    unset = argparse.SUPPRESS
    parser.add_argument("data", metavar="DATA", nargs="?", help="what to cluster")
    parser.add_argument("--data", dest="data_flag", help=unset)  # the config key of DATA
    parser.add_argument(
        "--method",
        default=unset,
        metavar="M[:V]",
        help="method (default: kith); coterie methods lists them",
    )
    parser.add_argument(
        "--clusters",
        "--n-clusters",
        type=whole_or_auto,
        default=unset,
        metavar="K|auto",
        help="number of clusters; auto: kith finds it",
    )
    parser.add_argument("--out", metavar="RUN", help="run folder (default: runs/DATA-METHOD)")
    parser.add_argument(
        "--config", metavar="FILE|RUN", help="take options from a file, or from a run"
    )
    parser.add_argument("--resume", action="store_true", help="finish a run that was stopped")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    parser.add_argument(
        "--seed", "--random-state", type=int, default=unset, metavar="N", help="seed (default: 0)"
    )
    parser.add_argument(
        "--threads",
        type=whole,
        default=unset,
        metavar="N",
        help="threads to use (default: all cores)",
    )
    parser.add_argument(
        "--time-budget",
        type=duration,
        default=unset,
        metavar="T",
        help="time for the fit, such as 90s, 5m, 1h",
    )
    parser.add_argument(
        "--paper", metavar="NAME", default=unset, help="start from the published settings for NAME"
    )
    parser.add_argument(
        "--report",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="write report.html as well",
    )
    parser.add_argument(
        "--write",
        metavar="FILE.h5ad",
        help="cells: write the data with their clusters to a new file",
    )
    parser.add_argument(
        "--baseline",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also run plain k-means, for comparison",
    )
    add_data_flags(parser)
    add_method_flags(parser, cls)
    return parser


def _method_of(early) -> str | None:
    """The method of the run to resume."""
    stored = runs.peek(runs.working_folder(early.out)) if early.resume and early.out else None
    return stored["method"] if stored else None


def _given_params(args, cls) -> dict:
    return {name: v for name, v in vars(args).items() if name in method_fields(cls)}


def _fresh(args, cls, out: str) -> Plan:
    if args.data is None:
        raise UsageError("what should be clustered? give DATA (see coterie fit --help)")
    given = vars(args)
    params = _given_params(args, cls)
    if "paper" in given:
        preset = cls.paper(args.paper, variant=args.variant or None, **params)
        params = {n: v for n, v in preset.get_params(deep=False).items() if n not in OWN}
    else:
        params = {**cls.variants.get(args.variant, {}), **params}
    return Plan(
        cls=cls,
        source=args.data,
        out=out,
        n_clusters=given.get("clusters"),
        seed=given.get("seed", 0),
        params=params,
        options=data_options(args),
        threads=given.get("threads"),
        time_budget=given.get("time_budget"),
        quiet=args.quiet,
        baseline=args.baseline,
    )


def _resumed(args, cls, out: str, old: dict) -> Plan:
    """The plan that a run began with; whatever is said again must agree with it."""
    k = old["params"]["n_clusters"]
    stored = stored_params(cls, old)
    source = dict(old["data"])
    options = stored_options(source)
    before = {
        "method": old["method"],
        "clusters": k,
        "seed": old["seed"],
        "threads": old["threads"],
        "data": source["source"],
        **options,
        **stored,
    }
    now = vars(args) | {"method": cls.key}
    if args.data:
        now["data"] = absolute(args.data)
    for name in (*before, *OPTIONS):
        value = now.get(name)
        if name in now and value is not None and _listed(value) != _listed(before.get(name)):
            flag = "DATA" if name == "data" else flag_name(name)
            raise UsageError(
                f"{out} began with {flag} {before.get(name)}, not {value}; "
                "give the same or use --overwrite"
            )
    return Plan(
        cls=cls,
        source=source["source"],
        out=out,
        n_clusters=k,
        seed=old["seed"],
        # how it runs (cache, devices) is not stored and may change
        params=_given_params(args, cls) | stored,
        options=options,
        threads=old["threads"],
        time_budget=now.get("time_budget", old.get("time_budget")),
        quiet=args.quiet,
        baseline=args.baseline,
    )


def _listed(value):
    return list(value) if isinstance(value, tuple) else value


def _show(args, finished: runs.Run, fitted: Fitted | None) -> int:
    if args.report:
        from .report import write

        write(finished, None, verbose=int(not args.quiet), fitted=fitted)
    if args.write:
        from .cells import write_h5ad

        write_h5ad(finished, Path(args.write), overwrite=args.overwrite)
    if not args.quiet:
        show_run(finished)
    return 0
