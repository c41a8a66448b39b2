"""The cards of all clusters, ready for the template."""

import numpy as np

from coterie.palette import slot

from . import charts, cluster_cards, model_pictures
from .cluster_stats import count, percent
from .row_pictures import data_uri

BADGES = {"clear": "clear", "check": "look twice", "doubtful": "doubtful", "empty": "empty"}
TRUST = {"empty": 0, "doubtful": 1, "check": 2, "clear": 3}
MANY = 40  # above this many clusters each card shows fewer and smaller pictures


def all_cards(facts, model, dataset, canvas, seed=0, parts=None):
    """One dict per cluster with everything that its card shows."""
    describe = {
        "image": _images,
        "text": _texts,
        "table": _features,
        "vector": _features,
    }[facts.kind](facts, model, dataset, canvas, seed)
    out = []
    for j in range(facts.k):
        verdict = facts.verdict(j)
        card = {
            "j": j,
            "slot": slot(j),
            "name": "",
            "size": int(facts.sizes[j]),
            "count": count(int(facts.sizes[j]), facts.noun),
            "share": percent(facts.sizes[j] / facts.n),
            "verdict": verdict,
            "badge": BADGES[verdict],
            "trust": TRUST[verdict],
            "reasons": facts.reasons[j],
            "why": _sentence(facts.reasons[j]),
            "nearest": [i for i, _, _ in facts.nearest[j]],
            "histogram": _confidence(facts, j),
            "parts": [percent(p) for p in (parts or {}).get(j, ())],
            "center": None,
            "samples": None,
            "face": None,
            "typical": [],
            "borderline": [],
            "random": [],
            "terms": [],
            "lines": None,
            "features": [],
            "rule": None,
            "rows": [],
        }
        card.update(describe(j) if facts.sizes[j] else {})
        out.append(card)
    return out


def _sentence(reasons):
    text = "; ".join(reasons)
    return text[:1].upper() + text[1:]


def _confidence(facts, j):
    if not facts.has_rivals or not facts.sizes[j]:
        return None
    values = facts.confidence[facts.labels == j]
    bars = np.histogram(values, bins=20, range=(0, 1))[0]
    title = f"confidence in cluster {j}, from 0 to 1; median {np.median(values):.2f}"
    return charts.histogram(bars.tolist(), title, slot(j))


def _images(facts, model, dataset, canvas, seed):
    X = dataset.X
    middle, drawn = (
        model_pictures.centers(model, canvas),
        model_pictures.samples(model, canvas, facts),
    )
    few = facts.k > MANY
    side = 48 if few else 96

    def pictures(rows):
        if not rows:
            return []
        images = canvas.draw(np.stack([np.asarray(X[r]) for r in rows]), side)
        return [
            {"row": r, "uri": data_uri(i), "title": _title(facts, r)} for r, i in zip(rows, images)
        ]

    def describe(j):
        picked = cluster_cards.members(facts, j, *((6, 3, 3) if few else (12, 6, 6)), seed=seed)
        out: dict = {role: pictures(rows) for role, rows in picked.items()}
        out["center"] = middle[j] if middle else None
        out["samples"] = drawn[j] if drawn else None
        out["face"] = out["typical"][0]["uri"] if out["typical"] else None
        return out

    return describe


def _texts(facts, model, dataset, canvas, seed):
    terms = cluster_cards.top_terms(dataset.texts, facts.labels, facts.k, seed=seed)
    most = 120 if facts.k > MANY else cluster_cards.LINE

    def describe(j):
        picked = cluster_cards.members(facts, j, 3, 2, 2, seed)
        lines = {
            role: [
                {
                    "row": r,
                    "id": str(facts.ids[r]),
                    "text": cluster_cards.clip(dataset.texts[r], most),
                }
                for r in rows
            ]
            for role, rows in picked.items()
        }
        name = ", ".join(word for word, _ in terms[j][:3])
        return {"terms": terms[j], "lines": lines, "name": name}

    return describe


def _features(facts, model, dataset, canvas, seed):
    X = dataset.X
    if not hasattr(X, "indptr"):
        X = np.nan_to_num(np.asarray(X, dtype=np.float64).reshape(facts.n, -1))
    columns = dataset.columns or [f"feature {i}" for i in range(X.shape[1])]
    d = cluster_cards.effect_sizes(X, facts.labels, facts.k)
    most = float(np.percentile(abs(d).max(1), 90)) if d.size else 1.0

    def describe(j):
        features, rule = cluster_cards.feature_card(X, facts.labels, columns, d, j, seed=seed)
        for f in features:
            f["bar"] = charts.diverging(f["effect"], most)
            f["inside"], f["outside"] = number(f["inside"]), number(f["outside"])
        if rule:
            shown = numbers([v for _, _, v in rule["tests"]])
            rule["tests"] = [(n, s, v) for (n, s, _), v in zip(rule["tests"], shown)]
            rule["covers"], rule["precision"] = percent(rule["covers"]), percent(rule["precision"])
        names = [f"{'high' if f['effect'] > 0 else 'low'} {f['name']}" for f in features[:2]]
        picked = cluster_cards.members(facts, j, 6, 0, 0, seed)["typical"]
        return {
            "features": features,
            "rule": rule,
            "name": cluster_cards.clip(", ".join(names), 60),
            "rows": [{"row": r, "id": str(facts.ids[r])} for r in picked],
        }

    return describe


def _title(facts, row):
    if not facts.has_rivals:
        return f"{facts.noun} {facts.ids[row]}"
    return (
        f"{facts.noun} {facts.ids[row]}, confidence {facts.confidence[row]:.2f}, "
        f"second choice cluster {facts.rival[row]}"
    )


def numbers(values):
    """Numbers for one sentence: with more digits where three would make different ones equal."""
    shown = [number(v) for v in values]
    for digits in range(4, 18):
        if len(set(shown)) == len(set(values)):
            break
        shown = [f"{v:.{digits}g}" for v in values]
    return shown


def number(value):
    """Three significant digits without an exponent where it can be avoided."""
    value = float(value)
    if not np.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if 0.001 <= abs(value) < 1e6:
        digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
        return f"{value:,.{min(digits, 4)}f}"
    return f"{value:.2e}"
