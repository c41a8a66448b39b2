"""Rewrites README's table of figures from the ledger: python docs/make_figures_table.py"""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from coterie.research.bench.ranking import by_default

ROOT = Path(__file__).parent.parent
SETS = ("usps", "mnist", "optdigits", "pendigits", "digits", "coil20", "reuters_r8", "20newsgroups")
METHODS = (
    *("kmeans:p", "gmm:p", "spectral", "umap_gmm", "leiden", "feature_kmeans", "feature_gmm"),
    *("ae_kmeans", "dcn:p", "dkm:a", "dkm:p", "dec:p", "idec:p", "dcec", "dekm", "cnet:p"),
    *("cnet:r", "acedec:plain", "acedec:aug", "kith"),
)
FROM_KITH = " from kith"


def name_of(run: dict) -> str | None:
    """The row of a run, or None where its settings are neither the defaults nor a Kith start."""
    name = run["method"] + (f":{run['variant']}" if run["variant"] else "")
    if run["params"].get("pretrain") == "kith":
        plain = run | {"params": run["params"] | {"pretrain": "plain"}}
        return name + FROM_KITH if by_default(plain) else None
    return name if by_default(run) else None


def main() -> None:
    found: dict[tuple, dict] = defaultdict(dict)
    for line in (ROOT / "results" / "ledger.jsonl").read_text().splitlines():
        run = json.loads(line)
        if run["status"] == "ok" and run["profile"] == "default" and (name := name_of(run)):
            found[name, run["dataset"]][run["seed"]] = run
    lines = [f"| method | {' | '.join(SETS)} |", "| --- " * (len(SETS) + 1) + "|"]
    for name in (n for method in METHODS for n in (method, method + FROM_KITH)):
        cells = []
        for dataset in SETS:
            runs = list(found.get((name, dataset), {}).values())
            acc, nmi = (100 * fmean([r[m] for r in runs] or [0]) for m in ("acc", "nmi"))
            cells.append(f"{acc:.1f} / {nmi:.1f} ({len(runs)})" if runs else "-")
        if set(cells) != {"-"}:
            lines.append(f"| {name} | {' | '.join(cells)} |")
    readme = ROOT / "README.md"
    table = re.compile(r"\| method \| usps .*?\n(?=\n)", re.DOTALL)
    readme.write_text(table.sub(lambda _: "\n".join(lines) + "\n", readme.read_text(), count=1))


if __name__ == "__main__":
    main()
