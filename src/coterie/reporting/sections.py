"""The smaller parts of the page: tiles, tables, curves, parameters."""

import numpy as np

from coterie.runtime.versions import versions

from . import charts
from .all_cards import number
from .cluster_stats import percent

NOT_LOSSES = {"phase", "epoch", "step", "seconds", "rows_per_second"}
CANDIDATES = {
    "direct": "clusters of about equal size",
    "merged": "clusters of free size",
    "kmeans": "k-means",
    "mixture": "a mixture of Gaussians",
    "spectral": "spectral clustering",
    "linkage": "linkage along the shortest links",
    "consensus": "a consensus of all heads of the network",
    "embedding": "k-means on the embedding",
}
COUNTS = ("clusters_used", "smallest_share", "largest_share")
OTHERWISE = 0.6  # agreement below which a second clustering is worth showing
CLASSES = 40  # columns of the table against known labels


def tiles(facts, model):
    """Five numbers for the first glance."""
    found = getattr(model, "n_clusters", None) == "auto"
    if facts.used != facts.k:
        name = f"clusters of {facts.k} {'found' if found else 'asked for'}"
    else:
        name = "clusters, found" if found else "clusters, as asked for"
    out = [{"value": facts.used, "name": name}]
    sizes = facts.sizes[facts.sizes > 0]
    spread = f"{percent(sizes.min() / facts.n)} – {percent(sizes.max() / facts.n)}"
    out.append({"value": spread, "name": "smallest to largest"})
    if facts.has_rivals:
        sure = f"{np.median(facts.confidence):.2f}"
        out.append({"value": sure, "name": "median confidence"})
    doubts = sum(facts.verdict(j) != "clear" for j in range(facts.k))
    out.append({"value": doubts, "name": "to look at twice"})
    seconds = sum((getattr(model, "seconds_", None) or {}).values())
    if seconds:
        out.append({"value": duration(seconds), "name": "to learn"})
    return out


def duration(seconds):
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cards_note(facts):
    typical = {
        "image": "Typical members lie nearest the middle of their cluster, borderline ones "
        "lie between two clusters, random ones show what the cluster is really like. "
        "Click a picture to find it on the map.",
        "text": "Words that are frequent in the cluster and rare elsewhere, the strongest in large "
        "letters.",
        "table": "Effect compares the cluster with everything else in standard deviations: "
        "bars to the right mean higher, to the left lower.",
    }
    return typical.get(facts.kind, typical["table"])


def baseline_rows(rows):
    def show(value):
        return "–" if value is None or not np.isfinite(value) else f"{value:.2f}"

    return [
        {
            "name": r["name"],
            "agreement": "–" if r["key"] == "this" else show(r["agreement"]),
            "in_embedding": show(r["in_embedding"]),
            "in_raw": show(r["in_raw"]),
        }
        for r in rows
    ]


def family_rows(agreement):
    """Rows of the table of other families: name and agreement."""
    return [
        {"name": f"{name[0].upper()}{name[1:]}", "agreement": f"{value:.2f}"}
        for name, value in agreement.items()
    ]


def label_free(facts):
    """The scores of `coterie.metrics.label_free` as (name, text), on a bounded sample."""
    from coterie import metrics

    from .maps import sample_rows

    if facts.used < 2:
        return []
    rows = sample_rows(facts.n, 3000)
    proba = facts.probabilities[rows] if facts.has_rivals else None
    found = metrics.label_free(facts.z[rows], facts.labels[rows], proba)
    return [
        (name.replace("_", " "), number(value))
        for name, value in found.items()
        if name in ("uniformity", "entropy") and np.isfinite(value)
    ]


def confidence_note(facts):
    if not facts.has_rivals:
        return "This method makes hard decisions, so there is no confidence to show."
    return (
        f"How sure the method is of each {facts.noun}, from 0 to 1. This is the method's own "
        "figure, not a measured probability: use it to compare rows."
    )


def confidence_chart(facts):
    if not facts.has_rivals:
        return ""
    bars = np.histogram(facts.confidence, bins=30, range=(0, 1))[0]
    return charts.histogram(
        bars.tolist(),
        "confidence of all rows, from 0 to 1",
        None,
        360,
        90,
        ("0: a guess", "1: certain"),
    )


def curves(history):
    """One small chart per named term of the history, phases divided by a line."""
    history = [dict(h) for h in history]
    names = []
    for record in history:
        for name, value in record.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if name not in NOT_LOSSES and is_number and name not in names:
                names.append(name)
    names.sort(key=lambda name: name in COUNTS)
    out = []
    for name in names:
        rows = [h for h in history if isinstance(h.get(name), (int, float))]
        values = [float(h[name]) for h in rows]
        if len(values) < 2:
            continue
        phases = []
        for i, h in enumerate(rows):
            if not phases or phases[-1][0] != str(h.get("phase", "")):
                phases.append((str(h.get("phase", "")), i))
        label = name.replace("_", " ")
        if len(phases) == 1 and phases[0][0]:
            label += f" ({phases[0][0]})"
        out.append(
            {
                "name": label,
                "first": number(values[0]),
                "last": number(values[-1]),
                "chart": charts.curve(values, f"{label} over {len(values)} epochs", phases),
            }
        )
    return out


def cost(model):
    seconds = getattr(model, "seconds_", None) or {}
    parts = [f"{name} {duration(s)}" for name, s in seconds.items() if s >= 0.05]
    spent = f" Time: {', '.join(parts)}." if parts else ""
    return f"Each named part of the loss over the epochs, from its first to its last value.{spent}"


def evaluation(facts, labels, dataset):
    """Scores and a table of clusters against known classes; None without labels."""
    if labels is None:
        return None
    from coterie import metrics

    labels = np.asarray(labels)
    if labels.shape != (facts.n,):
        raise ValueError(
            f"labels have shape {labels.shape} but the data have {facts.n} rows; give one per row"
        )
    classes, codes = np.unique(labels, return_inverse=True)
    names = dataset.label_names
    # other labels have other names
    own = names and np.array_equal(labels, dataset.labels) and classes.max() < len(names)
    shown = [str(names[c] if own else c) for c in classes]
    table = np.zeros((facts.k, len(classes)), int)
    np.add.at(table, (facts.labels, codes), 1)  # rows with -1 in the cluster that comes nearest
    kept = np.argsort(-table.sum(0), kind="stable")[:CLASSES] if len(classes) > CLASSES else None
    columns = range(len(classes)) if kept is None else np.sort(kept)
    rows = _heat_rows(table, columns)
    scores = metrics.scores(codes, facts.labels)
    title = {
        "acc": "accuracy (ACC)",
        "nmi": "information shared (NMI)",
        "nmi_geo": "NMI, geometric mean",
        "ari": "agreement on pairs (ARI)",
    }
    return {
        "scores": [(title.get(n, n), f"{v:.3f}") for n, v in scores.items()],
        "classes": [shown[c] for c in columns],
        "rows": rows,
        "more": "" if kept is None else f" The {CLASSES} largest of {len(classes)} classes.",
    }


def second_opinion(facts, model):
    """The other clustering that a model kept, where it differs much from the chosen one, or None.

    A table of this result's clusters against the other's, which are named A0, A1, ...
    """
    kept = getattr(model, "candidates_", None)
    alike = getattr(model, "agreement_", 1.0)
    if not kept or alike >= OTHERWISE:
        return None
    name = model.second_
    other = np.asarray(kept[name])
    if other.shape != (facts.n,):
        return None
    table = np.zeros((facts.k, facts.k), int)
    np.add.at(table, (facts.labels, other), 1)
    columns = np.argsort(-table.sum(0), kind="stable")[:CLASSES]
    return {
        "alike": f"{alike:.2f}",
        "chosen": CANDIDATES[model.chosen_],
        "other": CANDIDATES[name],
        "names": [f"A{c}" for c in columns],
        "rows": _heat_rows(table, columns),
    }


def _heat_rows(table, columns):
    """Cells of a table of counts, shaded by their share of the row."""
    rows = []
    for j, line in enumerate(table):
        size = max(1, line.sum())
        cells = [
            {"count": f"{line[c]:,}" if line[c] else "·", "heat": _heat(line[c] / size)}
            for c in columns
        ]
        rows.append({"j": j, "cells": cells})
    return rows


def _heat(share):
    return 0 if share < 0.02 else min(5, 1 + int(share * 5))


def shape_note(dataset):
    """What new rows look like, for a person who is about to write the code."""
    if dataset.kind == "text":
        return "a list of strings"
    if dataset.kind == "table" and dataset.recipe.named:
        return "a data frame with the columns of the fit"
    shape = tuple(int(s) for s in dataset.X.shape[1:])
    if dataset.recipe.source == "images":
        return f"a list of images or of their paths, or an array of rows of shape {shape}"
    return f"rows of shape {shape}"


def params(model):
    found = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    return [(name, str(value)[:200]) for name, value in found.items() if value is not None]


def made(model, dataset, run):
    """Method, data, seed and versions as rows of a table."""
    shape = " × ".join(str(int(s)) for s in dataset.X.shape)
    rows = [
        ("method", getattr(model, "title", "") or type(model).__name__),
        ("what it does", getattr(model, "summary", "")),
        ("reference", getattr(model, "reference", "")),
        ("data", f"{dataset.name} ({dataset.kind}, {shape})"),
        ("source", run.get("data", {}).get("source", "")),
        ("fingerprint", run.get("data", {}).get("fingerprint", "")),
        ("seed", getattr(model, "seed_", "")),
        ("threads", run.get("threads", "")),
    ]
    found = run.get("versions") or versions()
    rows += list(found.items())
    return [(name, str(value)) for name, value in rows if value not in ("", None)]
