"""Tables of figures for the site and for README, drawn from the committed ledger.

    python docs/site/figures.py      # rewrites README's table

Ours are means over seeds of runs on all rows, without labels in any fit. Published ones come from
`coterie.research.bench.published`, which holds the cells of the papers' tables.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

from coterie.methods import METHODS
from coterie.research.bench import published, ranking, tables
from coterie.research.bench.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
PAPERS = {
    "cnet": "C-Net 2021",
    "dkm": "DKM 2020",
    "dekm": "DEKM 2021",
    "acedec": "ACe/DeC 2021",
    "precise_feature": "precise-feature GAN 2021",
}
EARLIER = "earlier defaults or in a trial, and not yet measured again with today's defaults"
METRICS = ("acc", "nmi", "ari")
# README: the five systems, Kith, three rivals, four data sets
README_SETS = ("usps", "mnist", "pendigits", "20newsgroups")
README_ROWS = {
    "k-means": ("kmeans:p", "kmeans"),
    "UMAP + GMM": ("umap_gmm",),
    "Leiden": ("leiden",),
    "CM / C-Net": ("cnet:p", "cnet"),
    "DKM": ("dkm:p", "dkm"),
    "DEKM": ("dekm",),
    "ACe/DeC": ("acedec:plain", "acedec"),
    "precise-feature GAN": ("cuegan:dense", "cuegan"),
    "**Kith**": ("kith",),
}


def write(out: Path, methods: dict) -> None:
    runs = Ledger(ROOT / "results" / "ledger.jsonl").read()
    rows = summaries(runs)
    for key in methods:
        _put(out / "figures" / f"{key}.md", method_page(key, rows))
    _put(out / "all_figures.md", long_table(rows))
    _put(out / "readme_table.md", readme_table(rows))
    _put(out / "best.md", best_table(rows))
    _put(out / "counts.md", f"The ledger has {len(runs):,} runs.\n")


def summaries(runs: list[dict]) -> list[dict]:
    """Rows of the ledger that finished, each told whether its settings are today's defaults."""
    today = {}
    for run in runs:
        if run["profile"] == "default":
            name = tables._name(run)
            if name not in today:
                today[name] = ranking.by_default(run)
    found = []
    for run_key, members in _grouped(runs).items():
        row = tables.summarise(members)[0]
        if row["n"]:
            row["today"] = row["profile"] != "default" or today.get(run_key, False)
            row["from_kith"] = row["all_params"].get("pretrain") == "kith"
            found.append(row)
    return _chosen(found)


def _grouped(runs):
    groups = defaultdict(list)
    for run in runs:
        groups[tables._name(run)].append(run)
    return groups


def _chosen(rows: list[dict]) -> list[dict]:
    """One row for each method, variant, profile and data set.

    Today's settings, else those that differ least from them: trials change one setting or two.
    """
    best = {}
    for row in rows:
        key = (row["method"], row["variant"], row["profile"], row["dataset"], row["from_kith"])
        row["rank"] = (row["today"], -_differing(row), row["n"])
        if key not in best or row["rank"] >= best[key]["rank"]:  # the later of equals
            best[key] = row
    return sorted(best.values(), key=lambda r: (r["dataset"], r["variant"], r["profile"]))


def _differing(row: dict) -> int:
    """Settings of a run that have another value in today's defaults."""
    own = row["all_params"]
    if row["profile"] != "default" or row["method"] not in METHODS:
        return 0
    names = row["method"], row["variant"], row["dataset"], own["n_clusters"]
    today = json.loads(ranking._default_params(*names))
    return sum(own[key] != today[key] for key in own.keys() & today.keys() - {"pretrain"})


def _name(row) -> str:
    name = row["method"] + (f":{row['variant']}" if row["variant"] else "")
    return name + (" from kith" if row["from_kith"] else "")


def method_page(key: str, rows: list[dict]) -> str:
    """Ours and the published figures of one method, the data sets under each other."""
    ours = defaultdict(list)
    for row in rows:
        if row["method"] == key:
            ours[published.NEAR.get(row["dataset"], row["dataset"]), row["dataset"]].append(row)
    theirs = defaultdict(dict)
    for cell in published.published(method=key):
        if "quoted" in cell["note"] or cell["metric"] not in METRICS:
            continue
        slot = theirs[cell["dataset"]].setdefault((cell["paper"], cell["variant"]), {})
        rank = published.STATS.index(cell["stat"]) if cell["stat"] in published.STATS else 9
        old = slot.get(cell["metric"], (9, None))
        if rank < old[0]:
            slot[cell["metric"]] = (rank, cell["value"])
    if not ours and not theirs:
        return "Neither the ledger nor the papers have a figure for this method yet.\n"
    lines = [
        "| data | whose | settings | runs | ACC | NMI | ARI |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    names = sorted({name for name, _ in ours} | set(theirs))
    marked = False
    for name in names:
        for (near, dataset), members in ours.items():
            if near != name:
                continue
            for row in members:
                marked |= not row["today"]
                settings = "paper's" if row["profile"] == "paper" else "defaults"
                settings += "" if row["today"] else " †"
                cells = [f"{100 * row[m]['mean']:.1f}" if row[m] else "" for m in METRICS]
                lines.append(
                    f"| {dataset} | **ours** | `{_name(row)}`, {settings} | {row['n']} | "
                    + " | ".join(cells)
                    + " |"
                )
        for (paper, variant), slot in sorted(theirs.get(name, {}).items()):
            cells = [f"{100 * slot[m][1]:.1f}" if m in slot else "" for m in METRICS]
            if any(cells):
                row = f"row {variant}, " if variant else ""
                lines.append(
                    f"| {name} | published | {row}{PAPERS[paper]} | | {' | '.join(cells)} |"
                )
    text = "\n".join(lines) + "\n"
    text += (
        "\nScores in per cent, means over runs. **ours** was measured with this package and is "
        "in the ledger (`coterie bench --show`); *published* is what the named paper prints.\n"
    )
    if marked:
        text += f"† measured with {EARLIER}.\n"
    return text


def _cell(rows: list[dict], names: tuple[str, ...], dataset: str) -> str:
    for name in names:
        for row in rows:
            if row["profile"] == "default" and row["dataset"] == dataset and _name(row) == name:
                acc, nmi = (100 * row[m]["mean"] for m in ("acc", "nmi"))
                return f"{acc:.1f} / {nmi:.1f} ({row['n']})" + ("" if row["today"] else " †")
    return "-"


def readme_table(rows: list[dict]) -> str:
    lines = [f"| method | {' | '.join(README_SETS)} |", "| --- " * (len(README_SETS) + 1) + "|"]
    for title, names in README_ROWS.items():
        cells = [_cell(rows, names, dataset) for dataset in README_SETS]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return _marks("\n".join(lines) + "\n")


def _marks(table: str) -> str:
    """The table with a sentence about †, which is left out of the cells where all have it."""
    if "†" not in table:
        return table
    if table.count("†") == table.count("("):
        return table.replace(" †", "") + f"\nAll rows were measured with {EARLIER}.\n"
    return table + f"\n† measured with {EARLIER}.\n"


def long_table(rows: list[dict]) -> str:
    ours = [row for row in rows if row["profile"] == "default"]
    sets = sorted(
        {row["dataset"] for row in ours}, key=lambda d: -sum(r["dataset"] == d for r in ours)
    )
    sets = [d for d in sets if sum(r["dataset"] == d for r in ours) >= 5]
    names = sorted({_name(row) for row in ours})
    lines = [f"| method | {' | '.join(sets)} |", "| --- " * (len(sets) + 1) + "|"]
    for name in names:
        cells = [_cell(rows, (name,), dataset) for dataset in sets]
        if set(cells) != {"-"}:
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return _marks("\n".join(lines) + "\n")


def best_table(rows: list[dict]) -> str:
    """For each data set the three best rows by NMI, with their cost."""
    lines = ["| data | best | second | third |", "| --- | --- | --- | --- |"]
    by_set = defaultdict(list)
    for row in rows:
        if row["profile"] == "default" and row["nmi"]:
            by_set[row["dataset"]].append(row)
    for dataset, members in sorted(by_set.items()):
        if len({row["method"] for row in members}) < 5:
            continue
        top = sorted(members, key=lambda r: -r["nmi"]["mean"])[:3]
        cells = [
            f"`{_name(r)}` {100 * r['nmi']['mean']:.1f} ({r['n']})" + ("" if r["today"] else " †")
            for r in top
        ]
        lines.append(f"| {dataset} | {' | '.join(cells)} |")
    return _marks("\n".join(lines) + "\n")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    rows = summaries(Ledger(ROOT / "results" / "ledger.jsonl").read())
    readme = ROOT / "README.md"
    table = re.compile(r"(<!-- figures -->\n).*?(?=<!-- /figures -->)", re.DOTALL)
    made = table.sub(lambda m: m[1] + readme_table(rows), readme.read_text(), count=1)
    readme.write_text(made)


if __name__ == "__main__":
    main()
