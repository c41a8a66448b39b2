"""What a person sees after a fit."""

import numpy as np

from coterie.runtime.terminal import printable
from coterie.storage.runs import Run

from . import SHOWN

BAR = 24  # columns of the longest bar
MOST_BARS = 30
NAMES = {"acc": "ACC", "nmi": "NMI", "nmi_geo": "NMI (geometric)", "ari": "ARI"}


def console():
    from rich.console import Console

    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = max(out.width, 140)  # a file has no edge to wrap at
    return out


def _device(meta: dict) -> str:
    """Where it was computed, if not on the CPU as usual."""
    device = meta.get("settings", {}).get("device", "cpu")
    return "" if device == "cpu" else f" on {device}"


def show_run(run: Run):
    """Clusters used, sizes, label-free scores with k-means beside them, and where the files are."""
    from rich.table import Table
    from rich.text import Text

    meta, out = run.meta, console()
    scores, rival = meta.get("scores", {}), meta.get("kmeans", {})
    data, k = meta["data"], meta["params"]["n_clusters"]
    k = len(scores["sizes"]) if k == "auto" else k
    seconds = sum(meta.get("seconds", {}).values())
    shape, name = "x".join(map(str, data["shape"])), printable(data["name"])
    out.print(
        Text(f"\n{meta['method']} on {name}: {data['rows']} rows of {shape}", style="bold")
        + Text(f"   seed {meta['seed']}, {seconds:.1f} s{_device(meta)}")
    )
    if len(parts := meta.get("seconds", {})) > 1 and seconds:
        shares = ", ".join(f"{name} {100 * s / seconds:.0f} %" for name, s in parts.items())
        out.print(Text(shares, style="dim"))
    for note in meta.get("notes", []):
        if any(said.startswith(note) for said in SHOWN):
            continue  # the fit has said so already, with what to do
        out.print(Text(f"note: {printable(note)}", style="yellow"))
    out.print(f"{scores['clusters_used']} of {k} clusters used")
    _bars(out, np.array(scores["sizes"]))

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column(meta["method"], justify="right")
    if rival:
        table.add_column("k-means on the data", justify="right")
    for name, value in scores.items():
        if name == "sizes":
            continue
        row = [name.replace("_", " "), _number(value)]
        table.add_row(*row, *([_number(rival.get(name))] if rival else []))
    if "agreement" in rival:
        table.add_row("agreement with k-means (ARI)", _number(rival["agreement"]))
    if "evaluation" in meta:
        table.add_section()
        table.add_row("[dim]evaluation only: the fit never saw the classes[/dim]")
        for name, label in NAMES.items():
            row = [label, _number(meta["evaluation"][name])]
            beside = meta.get("evaluation_kmeans", {})
            table.add_row(*row, *([_number(beside.get(name))] if rival else []))
    out.print(table)
    page = run.path / "report.html"
    look = f"; look at {printable(page)}" if page.exists() else ""
    out.print(Text(f"\nwritten to {printable(run.path)}{look}", style="dim"))


def show_scores(scores: dict):
    """ACC, NMI with both means, and ARI."""
    for name, label in NAMES.items():
        print(f"{label:<16}{scores[name]:.4f}")
    if "coverage" in scores:
        print(f"{'coverage':<16}{scores['coverage']:.4f}   rows with the label -1 are left out")


def _bars(out, sizes: np.ndarray):
    """Sizes as little bars, largest first."""
    from rich.text import Text

    order = np.argsort(-sizes, kind="stable")
    top, rows = max(int(sizes.max()), 1), max(int(sizes.sum()), 1)
    for label in order[:MOST_BARS]:
        bar = "█" * round(BAR * sizes[label] / top) or "▏"
        out.print(
            Text(f"{label:>5} ")
            + Text(f"{bar:<{BAR}}", style="cyan")
            + Text(f" {sizes[label]} ({100 * sizes[label] / rows:.1f} %)")
        )
    if len(order) > MOST_BARS:
        out.print(f"      ... and {len(order) - MOST_BARS} smaller ones")


def _number(value) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
