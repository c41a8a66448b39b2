"""What only some models can show: decoded centres, interpolation, samples, two spaces."""

from itertools import combinations

import numpy as np

from .row_pictures import data_uri, strip

STEPS = 9
ALL_PAIRS = 20  # up to this many clusters every pair is drawn, above only near neighbours


def centers(model, canvas):
    """One picture per cluster of what the model takes as its middle, or None."""
    if not _draws(model, canvas) or not hasattr(model, "centers_in_input_space"):
        return None
    found = _pictures_or_none(model.centers_in_input_space)
    return None if found is None else [data_uri(i) for i in canvas.draw(found)]


def paths(model, canvas, facts):
    """Pictures on the way from one centre to another: {"a-b": data URI of a strip}."""
    if not _draws(model, canvas) or not hasattr(model, "interpolate"):
        return {}
    alive = [j for j in range(facts.k) if facts.sizes[j]]
    if len(alive) <= ALL_PAIRS:
        pairs = list(combinations(alive, 2))
    else:
        near = {(min(i, j), max(i, j)) for j in alive for i, _, _ in facts.nearest[j]}
        pairs = sorted(near)
    out = {}
    for a, b in pairs:
        way = _pictures_or_none(model.interpolate, a, b, STEPS)
        if way is None:
            return {}
        out[f"{a}-{b}"] = data_uri(strip(canvas.draw(way, 64)))
    return out


def samples(model, canvas, facts, n=12):
    """Pictures that a generating model draws for each cluster, or None."""
    if not _draws(model, canvas) or not hasattr(model, "sample"):
        return None
    out = []
    for j in range(facts.k):
        drawn = _pictures_or_none(model.sample, j, n)
        if drawn is None:
            return None
        out.append(data_uri(strip(canvas.draw(drawn, 64))))
    return out


def spaces(model, X, canvas, facts, examples=8):
    """ACe/DeC's split: each axis' weight, rows rebuilt from one space alone, and traversals."""
    beta = getattr(model, "beta_", None)
    if beta is None:
        return None
    beta = np.sort(np.asarray(beta, dtype=float).ravel())[::-1]
    out = {
        "beta": beta.tolist(),
        "dims": int(model.cluster_dims_),
        "rows": [],
        "traversals": [],
    }
    if not _draws(model, canvas):
        return out
    rows = [int(np.flatnonzero(facts.labels == j)[0]) for j in range(facts.k) if facts.sizes[j]]
    part = np.asarray(X[rows[:examples]])
    out["rows"].append(("the pictures", data_uri(strip(canvas.draw(part, 64)))))
    for space, name in (
        ("cluster", "rebuilt from the cluster space alone: what makes the cluster"),
        ("shared", "rebuilt from the shared space alone: what varies inside every cluster"),
    ):
        made = _pictures_or_none(model.reconstruct, part, space=space)
        if made is not None:
            out["rows"].append((name, data_uri(strip(canvas.draw(made, 64)))))
    if hasattr(model, "traverse"):
        for j in [j for j in range(facts.k) if facts.sizes[j]][:6]:
            way = _pictures_or_none(model.traverse, j, 0, STEPS)
            if way is not None:
                out["traversals"].append((j, data_uri(strip(canvas.draw(way, 64)))))
    return out


def _draws(model, canvas):
    """Whether what the model decodes are pictures: behind an encoder they are vectors."""
    return canvas is not None and not hasattr(model, "encoding_")


def _pictures_or_none(call, *args, **kwargs):
    """The call's array, or None where this model cannot do it (no decoder, no shared axis)."""
    try:
        found = np.asarray(call(*args, **kwargs))
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return None
    return found if found.size and np.isfinite(found).any() else None
