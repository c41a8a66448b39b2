"""The figures that the papers print, as data (published.jsonl)."""

import json
from functools import cache
from importlib import resources

# our name of a set -> the papers' name, where the rows are not the same ones
NEAR = {"gtsrb_test": "gtsrb", "cifar10_10k": "cifar10"}
STATS = ("mean", "value", "median")  # what a table calls its figure; the first is best


@cache
def cells() -> tuple[dict, ...]:
    """Every cell of the papers' result tables.

    Keys: paper, table, method, variant, dataset, metric (acc, nmi, ari, dims), stat (mean, std,
    max, min, median, selected, value), value (a fraction or None) and note.
    """
    text = resources.files("coterie.research.bench").joinpath("published.jsonl").read_text("utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def published(**wanted: str) -> list[dict]:
    """The cells with a figure that agree with all of `wanted`.

    >>> published(paper="cnet", table="1", method="kmeans", dataset="usps", metric="ari")
    """
    return [
        cell
        for cell in cells()
        if cell["value"] is not None and all(cell[key] == value for key, value in wanted.items())
    ]


def beside(method: str, variant: str, dataset: str, metric: str) -> list[str]:
    """What to print beside our figure, one text for each paper: ``52.6±0.8 cnet``.

    A figure for rows that are near ours but not the same is marked with ``~``. Without a variant
    of ours, a paper's plain or pre-trained row stands in and is named. Figures that a paper only
    quotes are left out.
    """
    name = NEAR.get(dataset, dataset)
    cells = published(method=method, dataset=name, metric=metric)
    cells = [cell for cell in cells if "quoted" not in cell["note"]]
    texts = []
    for paper in dict.fromkeys(cell["paper"] for cell in cells):
        for choice in [variant] if variant else ["", "plain", "p"]:
            rows = [c for c in cells if (c["paper"], c["variant"]) == (paper, choice)]
            main = next((c for stat in STATS for c in rows if c["stat"] == stat), None)
            if main is not None:
                stds = [c for c in rows if (c["table"], c["stat"]) == (main["table"], "std")]
                spread = f"±{100 * stds[0]['value']:.1f}" if stds else ""
                near = "~" if name != dataset else ""
                row = f":{choice}" if choice != variant else ""
                texts.append(f"{near}{100 * main['value']:.1f}{spread} {paper}{row}")
                break
    return texts
