"""One page over several results on the same data, on ground that is fair to all of them first."""

from math import isclose
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from coterie import metrics
from coterie.common_ground import Ground
from coterie.palette import PALETTE
from coterie.storage.tensors import write_bytes

from . import charts, maps
from .all_cards import number
from .cluster_stats import LEAST_ROWS
from .encode import b64
from .page import pack_map, render
from .sections import duration

MAP_ROWS = 8000
MOST_MAPS = 12
MOST_PAIRS = 40
# not the silhouette in a method's own embedding, which was made to be high
HIGHER_IS_BETTER = {"silhouette_on_the_data", "neighbours_kept", "acc", "nmi", "nmi_geo", "ari"}


def write(results, out, X=None):
    """Write a page that compares runs.

    Parameters
    ----------
    results : list of dict
        Each with name (of the data), method, seed, params, scores (against known labels, or
        None), label_free, seconds, labels, and optionally embedding.
    out : path
    X : rows, optional
        With them every result is scored on the same features of the data.

    Returns
    -------
    path : pathlib.Path
    """
    results = list(results)
    if not results:
        raise ValueError("there are 0 results to compare; give at least 1")
    sizes = {len(r["labels"]) for r in results}
    if len(sizes) > 1:
        raise ValueError(f"results have {sorted(sizes)} rows; compare runs on the same data")
    if X is not None:
        results = _on_common_ground(results, X)
    methods = list(dict.fromkeys(r["method"] for r in results))
    grouped = {m: [r for r in results if r["method"] == m] for m in methods}
    shown = [r for r in _first_seeds(grouped) if r.get("embedding") is not None][:MOST_MAPS]
    page = render(
        "compare.html.j2",
        ("map.js", "theme.js", "compare.js"),
        {"palette": PALETTE, "maps": _maps(shown)},
        page_title=f"{len(methods)} methods on {results[0]['name']}",
        crumb=f"{results[0]['name']} · comparison",
        headline=f"{len(methods)} method{'s' * (len(methods) > 1)} on {results[0]['name']}",
        sentences=_sentences(grouped, results),
        fair=_tables(grouped, "fair"),
        free=_tables(grouped, "label_free"),
        known=_tables(grouped, "scores"),
        costs=_costs(grouped),
        agreement=_agreement(results),
        maps=[_title(r) for r in shown],
        runs=[_run(r) for r in results],
        footer="Written by coterie. This page is complete in itself and loads nothing.",
    )
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(out, page.encode("utf-8", "replace"))
    return out


def results_of(models, dataset, labels=None):
    """Fitted models as `write` wants results; a dict names them, else their keys do."""
    if not isinstance(models, dict):
        keys = [getattr(m, "key", "") or type(m).__name__ for m in models]
        models = {key: [m for m, k in zip(models, keys) if k == key] for key in keys}
    truth = dataset.labels if labels is None else np.unique(labels, return_inverse=True)[1]
    out = []
    for name, members in models.items():
        for model in members if isinstance(members, (list, tuple)) else [members]:
            found = np.asarray(model.labels_)
            if found.shape != (len(dataset),):
                raise ValueError(
                    f"{name} was fitted on {len(found)} rows, but X has {len(dataset)}; "
                    "give the rows that all models were fitted on"
                )
            z = np.asarray(model.transform(dataset.given_to(model)))
            k = getattr(model, "n_clusters_", None) or model.n_clusters
            out.append(
                {
                    "name": dataset.name,
                    "method": name,
                    "seed": getattr(model, "seed_", 0),
                    "params": model.get_params(deep=False),
                    "scores": None if truth is None else metrics.scores(truth, found),
                    "label_free": metrics.label_free(z, found, n_clusters=k),
                    "seconds": getattr(model, "seconds_", None),
                    "labels": found,
                    "embedding": z,
                }
            )
    return out


def _on_common_ground(results, X):
    """Each result with its scores on the data's own features."""
    k = max(2, max(map(_used, results)))
    if len(results[0]["labels"]) < LEAST_ROWS:
        return results
    ground = Ground(X, k)

    def fair(labels):
        labels = np.asarray(labels)
        found = ground.silhouette(labels), ground.kept(labels)
        return dict(zip(("silhouette_on_the_data", "neighbours_kept"), found))

    return [r | {"fair": fair(r["labels"])} for r in results]


def _first_seeds(grouped):
    """One run of every method before the second of any."""
    most = max(map(len, grouped.values()))
    return [runs[i] for i in range(most) for runs in grouped.values() if i < len(runs)]


def _title(r):
    return f"{r['method']}, seed {r['seed']}"


def _sentences(grouped, results):
    n = len(results[0]["labels"])
    out = [f"{len(results)} runs on the same {n:,} rows; each dot below is one run."]
    steady = {m: _steadiness(runs) for m, runs in grouped.items() if len(runs) > 1}
    if steady:
        best, worst = max(steady, key=steady.__getitem__), min(steady, key=steady.__getitem__)
        out.append(
            f"Over seeds {best} agrees with itself most (adjusted Rand index {steady[best]:.2f})"
            + (f", {worst} least ({steady[worst]:.2f})." if best != worst else ".")
        )
        out.append(
            "If a method gives different clusters for each seed, they are not stable, however good "
            "a single score looks."
        )
    else:
        out.append("One seed each: a difference may be luck. Run several seeds before you choose.")
    return out


def _steadiness(runs):
    pairs = [
        adjusted_rand_score(a["labels"], b["labels"]) for i, a in enumerate(runs) for b in runs[:i]
    ]
    return float(np.mean(pairs))


def _tables(grouped, field):
    """Per score: rows of (method, median, lowest, highest) and a strip of dots."""
    names = []
    for runs in grouped.values():
        for r in runs:
            for name, value in (r.get(field) or {}).items():
                if _is_number(value) and name not in names:
                    names.append(name)
    out = []
    for name in names:
        values = {
            m: [float(r[field][name]) for r in runs if _is_number((r.get(field) or {}).get(name))]
            for m, runs in grouped.items()
        }
        everything = [v for vs in values.values() for v in vs]
        low, high = min(everything), max(everything)
        if field in ("scores", "fair") or name == "silhouette":
            low, high = min(0.0, low), max(1.0, high)
        medians = {m: median(vs) for m, vs in values.items() if vs}
        best = max(medians.values()) if name in HIGHER_IS_BETTER else None
        out.append(
            {
                "name": name.replace("_", " "),
                "rows": [
                    {
                        "method": m,
                        "best": best is not None and m in medians and isclose(medians[m], best),
                        "median": number(medians[m]) if m in medians else "–",
                        "spread": f"{number(min(vs))} – {number(max(vs))}" if len(vs) > 1 else "",
                        "chart": charts.strips([(m, vs)], low, high, width=260),
                    }
                    for m, vs in values.items()
                ],
            }
        )
    return out


def _is_number(value):
    return (
        isinstance(value, (int, float, np.number))
        and not isinstance(value, bool)
        and bool(np.isfinite(value))
    )


def _costs(grouped):
    return [
        {"method": m, "median": duration(median(_seconds(r) for r in runs)), "runs": len(runs)}
        for m, runs in grouped.items()
    ]


def _seconds(r):
    spent = r.get("seconds") or 0.0
    return float(sum(spent.values()) if isinstance(spent, dict) else spent)


def _agreement(results):
    """Adjusted Rand index of every two runs, as a table with heat classes."""
    shown = results[:MOST_PAIRS]
    rows = []
    for a in shown:
        values = [1.0 if a is b else adjusted_rand_score(a["labels"], b["labels"]) for b in shown]
        cells = [
            {"text": f"{v:.2f}", "heat": 0 if v < 0.1 else min(5, 1 + int(v * 5))} for v in values
        ]
        rows.append({"name": _title(a), "cells": cells})
    return {"names": [_title(r) for r in shown], "rows": rows, "left": len(results) - len(shown)}


def match(labels, reference):
    """Rename clusters so that they overlap most with the reference: equal colours, equal clusters.

    Rows that belong nowhere (-1) are one more cluster.
    """
    a, b = np.asarray(labels), np.asarray(reference)
    most = int(max(a.max(), b.max())) + 1
    a, b = (np.where(v < 0, most, v) for v in (a, b))
    k = int(max(a.max(), b.max())) + 1
    table = np.zeros((k, k), int)
    np.add.at(table, (a, b), 1)
    rows, columns = linear_sum_assignment(-table)
    names = np.empty(k, int)
    names[rows] = columns
    return names[a]


def _maps(shown):
    out = []
    for r in shown:
        rows = maps.sample_rows(len(r["labels"]), MAP_ROWS)
        z = np.asarray(r["embedding"])[rows]
        labels = match(r["labels"], shown[0]["labels"])[rows]
        out.append({**pack_map(maps.pca_map(z), labels), "labels": b64(labels.astype(np.uint16))})
    return out


def _used(r):
    """Clusters with rows; -1 is none."""
    labels = np.asarray(r["labels"])
    return len(np.unique(labels[labels >= 0]))


def _run(r):
    params = ", ".join(f"{k}={v}" for k, v in (r.get("params") or {}).items())
    used = _used(r)
    return {
        "title": _title(r),
        "used": used,
        "seconds": duration(_seconds(r)),
        "params": params[:400],
    }
