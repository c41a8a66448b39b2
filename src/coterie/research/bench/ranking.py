"""Which method is best over many data sets: mean score of each, and mean rank over the sets."""

import json
import statistics
from dataclasses import dataclass, field
from functools import cache

from coterie.data.sets import named
from coterie.registry import METHODS
from coterie.storage.atomic import plain
from coterie.storage.runs import describe

from .campaign import Job
from .tables import summarise


@dataclass
class Ranking:
    """Mean scores of methods under their defaults, and the mean rank of those that ran everywhere.

    scores[method][dataset] is a mean over seeds, counts the number of seeds. Methods that lack a
    data set have scores but no rank: a rank among fewer sets would not be the same thing.
    """

    metric: str
    datasets: list[str]
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    ranks: dict[str, float] = field(default_factory=dict)  # best first

    def best_rival(self, method: str, dataset: str) -> tuple[str, float] | None:
        """The best other method on a data set."""
        rivals = [(s[dataset], m) for m, s in self.scores.items() if m != method and dataset in s]
        return max(rivals)[::-1] if rivals else None


def rank_defaults(runs: list[dict], datasets: list[str] | None = None) -> Ranking:
    """Rank today's defaults over some data sets, or over all real ones that have runs.

    A run of other settings, or of what was the default once, says nothing about them.
    """
    found = [run for run in runs if run["profile"] == "default" and by_default(run)]
    seen = {run["dataset"] for run in found}
    return rank(found, datasets or [name for name in named.REAL if name in seen])


def by_default(run: dict) -> bool:
    """Whether the settings of a run are the defaults of today, for its variant.

    A parameter that came later is at its default in every earlier run; one that is gone since then
    makes it a run of another method.
    """
    if run["method"] not in METHODS:
        return False
    names = run["method"], run["variant"], run["dataset"], run["params"]["n_clusters"]
    today = json.loads(_default_params(*names))
    own = json.loads(json.dumps(run["params"]))
    return own.keys() <= today.keys() and all(own[name] == today[name] for name in own)


@cache
def _default_params(method: str, variant: str, dataset: str, n_clusters: int) -> str:
    wanted = describe(Job(dataset, method, variant).estimator(n_clusters))
    return json.dumps(wanted, sort_keys=True, default=plain)


def rank(runs: list[dict], datasets: list[str], metric: str = "nmi") -> Ranking:
    """Rank methods by their mean score on each data set; equal scores share the mean rank.

    Of a method with several settings on one data set, the one with most seeds counts: grids and
    trials have fewer runs than the default.
    """
    found = Ranking(metric, datasets)
    wanted = [r for r in runs if r["profile"] == "default" and r["dataset"] in datasets]
    for row in summarise(wanted):
        if not row["n"]:
            continue
        name = row["method"] + (f":{row['variant']}" if row["variant"] else "")
        counts = found.counts.setdefault(name, {})
        if counts.get(row["dataset"], 0) < row["n"]:
            counts[row["dataset"]] = row["n"]
            found.scores.setdefault(name, {})[row["dataset"]] = row[metric]["mean"]
    everywhere = [m for m, scores in found.scores.items() if len(scores) == len(datasets)]
    places = {m: [] for m in everywhere}
    for dataset in datasets:
        for m in everywhere:
            own = found.scores[m][dataset]
            others = [found.scores[o][dataset] for o in everywhere if o != m]
            ahead, equal = sum(o > own for o in others), sum(o == own for o in others)
            places[m].append(1 + ahead + equal / 2)
    means = {m: statistics.fmean(p) for m, p in places.items() if p}
    found.ranks = dict(sorted(means.items(), key=lambda pair: (pair[1], pair[0])))
    return found


def markdown(found: Ranking) -> str:
    """A line for each method, ranked ones first; the best of a data set is bold."""
    best = {
        d: max((s[d] for s in found.scores.values() if d in s), default=None)
        for d in found.datasets
    }
    lines = [
        "| method | mean rank | " + " | ".join(found.datasets) + " |",
        "|---|---:|" + "---:|" * len(found.datasets),
    ]
    rest = sorted(set(found.scores) - set(found.ranks))
    for method in [*found.ranks, *rest]:
        place = f"{found.ranks[method]:.1f}" if method in found.ranks else ""
        cells = [method, place]
        for d in found.datasets:
            score = found.scores[method].get(d)
            text = "" if score is None else f"{100 * score:.1f}"
            text = f"**{text}**" if score is not None and score == best[d] else text
            cells.append(f"{text} ({found.counts[method][d]})" if text else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
