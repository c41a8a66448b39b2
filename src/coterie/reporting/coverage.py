"""How sure the method is of the rows that remain when those that fit worst are left out."""

import numpy as np

from . import charts
from .cluster_stats import percent
from .maps import sample_rows

ROWS = 3000  # whose fit is looked at
POINTS = 50  # of the curve
EXAMPLE = 0.05  # share that the sentence leaves out if the model leaves out none


def curve(fits, confidence, points=POINTS):  # (n,), (n,) -> (points,)
    """Mean confidence of the best-fitting 1/points, 2/points, ... of the rows."""
    sure = np.asarray(confidence, np.float64)[np.argsort(-np.asarray(fits), kind="stable")]
    means = np.cumsum(sure) / np.arange(1, len(sure) + 1)
    ends = np.ceil(np.linspace(1 / points, 1, points) * len(sure)).astype(int) - 1
    return means[ends]


def section(facts, model, dataset):
    """Chart and sentence, or None for a method that is never in doubt."""
    if not facts.has_rivals or not hasattr(model, "score_samples"):
        return None
    rows = sample_rows(facts.n, ROWS)
    given = dataset.given_to(model)
    fits = model.score_samples(given[rows]) if facts.fits is None else facts.fits[rows]
    values = curve(fits, facts.confidence[rows])
    share = facts.left_out / facts.n or EXAMPLE
    left = values[max(0, round((1 - share) * POINTS) - 1)]
    without = f"Without the {percent(share)} that fit worst"
    without += " (label -1)" if facts.left_out else f" (reject={EXAMPLE:g})"
    all_rows, kept = f"{values[-1]:.2f}", f"{left:.2f}"
    change = f"stays at {kept}" if kept == all_rows else f"goes from {all_rows} to {kept}"
    note = (
        f"Mean confidence of the {facts.noun}s that fit best, from the best few to all. {without} "
        f"it {change}. If the curve falls at its end, a few "
        f"{facts.noun}s belong nowhere. If it is straight, leaving rows out helps little."
    )
    ends = f"the best few: {values[0]:.2f}", f"all: {all_rows}"
    chart = charts.curve(values, "mean confidence over the share kept", ends=ends)
    return {"note": note, "chart": chart}
