"""``coterie compare``: several methods on the same data, side by side."""

from pathlib import Path

from coterie.storage import runs
from coterie.storage.atomic import to_toml

from .bench import read_methods, read_settings, seeds
from .fitting import Plan, fit_run
from .method_args import Parser, UsageError, duration, names, whole, whole_or_auto
from .source import add_data_flags, data_options, load_for
from .summary import NAMES, console


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie compare",
        usage="coterie compare DATA --methods A,B,C --clusters K [--seeds N] --out DIR",
        description="Fit several methods on the same data, each in a run folder below DIR.\n"
        "Finished runs are kept: repeat the command to continue one that was stopped.",
    )
    parser.add_argument("data", metavar="DATA", help="as for coterie fit")
    parser.add_argument(
        "--methods", type=names, required=True, metavar="M[:V],...", help="methods to compare"
    )
    parser.add_argument("--clusters", type=whole_or_auto, metavar="K", help="number of clusters")
    parser.add_argument(
        "--seeds",
        type=seeds,
        default=[0],
        metavar="N|A-B|A,B",
        help="number or list of seeds (default: seed 0)",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the runs")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[M.]KEY=VALUE",
        help="a parameter, of all methods or of M",
    )
    parser.add_argument("--threads", type=whole, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--time-budget", type=duration, metavar="T", help="time for each fit, such as 5m"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, only the table")
    parser.add_argument("--report", action="store_true", help="write a comparison page as well")
    add_data_flags(parser)
    args = parser.parse_strictly(argv)

    from coterie.registry import get

    methods = read_methods(args.methods)
    if not methods:
        raise UsageError("--methods names 0 methods; give at least 1 (see coterie methods)")
    settings = read_settings(args.set, [key for key, _ in methods])
    options = data_options(args)
    most = max(get(key).words for key, _ in methods)  # all of them see the same rows
    dataset = load_for(most, args.data, options)
    if dataset.kind == "text":
        options = {"words": most} | options  # a run's own words would be other rows to its resume
    finished = {}
    for key, variant in methods:
        cls = get(key)
        for seed in args.seeds:
            name = f"{key}-{variant}" if variant else key
            plan = Plan(
                cls=cls,
                source=args.data,
                out=str(Path(args.out) / f"{name}-seed{seed}"),
                n_clusters=args.clusters,
                seed=seed,
                params={**cls.variants.get(variant, {}), **settings.get(key, {})},
                options=options,
                threads=args.threads,
                time_budget=args.time_budget,
                quiet=args.quiet,
                baseline=False,
            )
            finished.setdefault(name, []).append(_fit_or_read(plan, dataset))
    show(finished)
    if args.report:
        from coterie import reporting

        results = [_result(name, run) for name, group in finished.items() for run in group]
        print(reporting.write_comparison(results, Path(args.out) / "compare.html", dataset.X))
    return 0


def _fit_or_read(plan: Plan, dataset) -> runs.Run:
    """A finished run as it is, if it answers the same question; otherwise fit (or resume)."""
    old = runs.check_target(plan.out, resume=True)
    if old is None or old["status"] != "done":
        return fit_run(plan, dataset, resume=True).run
    k = plan.n_clusters or old["params"]["n_clusters"]
    wanted = runs.describe(plan.cls(n_clusters=k, **plan.params))
    same = to_toml({"params": wanted}) == to_toml({"params": old["params"]})
    if not same or old["data"]["fingerprint"] != dataset.fingerprint():
        raise UsageError(
            f"{plan.out} holds a run with other data or settings; choose another --out"
        )
    return runs.read(plan.out)


def _result(name: str, run: runs.Run) -> dict:
    """What the comparison page wants to know of a run; `name` tells variants apart."""
    meta = run.meta
    return {
        "name": meta["data"]["name"],
        "method": name,
        "seed": meta["seed"],
        "params": meta["params"],
        "scores": meta.get("evaluation"),
        "label_free": {k: v for k, v in meta["scores"].items() if k != "sizes"},
        "seconds": sum(meta["seconds"].values()),
        "labels": run.labels,
        "embedding": run.embedding,
    }


def show(finished: dict[str, list[runs.Run]]):
    """Mean ± std over seeds of what can be said without labels, then of the evaluation."""
    from rich.table import Table

    from coterie.research.bench.tables import spread

    free = ("silhouette", "clusters_used", "uniformity")
    # runs of an earlier command may have been fitted without a label column
    scored = any("evaluation" in run.meta for group in finished.values() for run in group)
    known = ["acc", "nmi", "ari"] if scored else []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("method", "runs", "seconds", *free, *(NAMES[name] for name in known)):
        table.add_column(title.replace("_", " "), justify="left" if title == "method" else "right")
    for name, group in finished.items():
        metas = [run.meta for run in group]
        cells = [spread([sum(meta["seconds"].values()) for meta in metas])]
        cells += [spread([meta["scores"].get(key) for meta in metas]) for key in free]
        cells += [spread([meta.get("evaluation", {}).get(key) for meta in metas]) for key in known]
        table.add_row(name, str(len(group)), *(_cell(cell) for cell in cells))
    out = console()
    out.print(table)
    if known:
        out.print("ACC, NMI and ARI are evaluation only: no fit saw the classes", style="dim")


def _cell(figure: dict | None) -> str:
    if figure is None:
        return ""
    return f"{figure['mean']:.3f}" + (f" ± {figure['std']:.3f}" if figure["std"] else "")
