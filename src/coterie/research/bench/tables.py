"""Statistics over seeds, and the table that `coterie bench --show` prints."""

import json
import statistics

from .published import beside

METRICS = ("acc", "nmi", "ari")
ROW = ("dataset", "method", "variant", "profile")


def summarise(runs: list[dict]) -> list[dict]:
    """One row for each data set, method, variant, profile and setting.

    A seed that was run again under the same setting counts once, with its latest result.

    Returns
    -------
    list of dict
        ROW keys, `params` (only those that differ between the rows of a method), `n` runs,
        `failed`, and for each metric and for `aee` a dict of mean, std (over runs, n - 1) and best.
    """
    latest = {}
    for run in runs:
        latest[_name(run) + (run["seed"],)] = run
    groups = {}
    for key, run in latest.items():
        groups.setdefault(key[:-1], []).append(run)
    rows = []
    for members in groups.values():
        good = [run for run in members if run["status"] == "ok"]
        row = {key: members[0][key] for key in ROW}
        params = {k: v for k, v in (members[0]["params"] or {}).items() if k != "restart"}
        row |= {"all_params": params, "n": len(good)}
        row["failed"] = len(members) - len(good)
        for metric in (*METRICS, "nmi_geo", "aee"):
            row[metric] = spread([run[metric] for run in good], low=metric == "aee")
        row["km_ari"] = spread([run["km"]["ari"] for run in good if run["km"]])
        rows.append(row)
    for row in rows:
        peers = [r["all_params"] for r in rows if all(r[key] == row[key] for key in ROW)]
        own = row["all_params"]
        row["params"] = {k: v for k, v in own.items() if any(p.get(k) != v for p in peers)}
    return sorted(rows, key=lambda row: tuple(row[key] for key in ROW))


def spread(values: list, low: bool = False) -> dict | None:
    """Mean, standard deviation (0 for one run) and best of the values that there are."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    std = statistics.stdev(values) if len(values) > 1 else 0.0
    best = min(values) if low else max(values)
    return {"mean": statistics.fmean(values), "std": std, "best": best}


def select(runs: list[dict], datasets=None, methods=None, profile=None) -> list[dict]:
    """The runs of some data sets and methods (``kmeans`` or ``kmeans:r``)."""

    def named(run):
        return {run["method"], f"{run['method']}:{run['variant']}"}

    return [
        run
        for run in runs
        if (not datasets or run["dataset"] in datasets)
        and (not methods or named(run) & set(methods))
        and (not profile or run["profile"] == profile)
    ]


def show(rows: list[dict], console):
    """Print mean ± std (best) in per cent; below each figure, dim, what the papers print."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("data set", "method", "profile", "runs", "ACC", "NMI", "ARI", "AEE"):
        table.add_column(title, justify="right" if title in ("runs", "AEE") else "left")
    for row in rows:
        method = row["method"] + (f":{row['variant']}" if row["variant"] else "")
        settings = "\n".join(f"{key}={value}" for key, value in row["params"].items())
        name = Text(method) + Text(f"\n{settings}" if settings else "", style="dim")
        cells = []
        for metric in METRICS:
            papers = beside(row["method"], row["variant"], row["dataset"], metric)
            ours = percent(row[metric])
            cells.append(Text(ours) + Text("".join(f"\n{text}" for text in papers), style="dim"))
        runs = f"{row['n']}" + (f" ({row['failed']} failed)" if row["failed"] else "")
        cost = f"{row['aee']['mean']:.1f}" if row["aee"] else ""
        table.add_row(row["dataset"], name, row["profile"], runs, *cells, cost)
    console.print(table)
    console.print(
        "mean ± std (best) in per cent; below it the published figure and its paper, "
        "~ for other rows of the same data; NMI with the arithmetic mean; AEE: cost in "
        "epochs of the bare autoencoder",
        style="dim",
    )


def percent(figure: dict | None) -> str:
    if figure is None:
        return "-"
    mean, std, best = (100 * figure[key] for key in ("mean", "std", "best"))
    return f"{mean:.1f} ± {std:.1f} ({best:.1f})"


def _name(run: dict) -> tuple:
    # restarts of one batched model (benchmarks/cm_restarts.py) are runs of the same row
    params = {k: v for k, v in (run["params"] or {}).items() if k != "restart"}
    return (*(run[key] for key in ROW), json.dumps(params, sort_keys=True))
