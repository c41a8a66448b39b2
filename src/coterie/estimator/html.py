"""A fitted model on one small card, for notebooks (`_repr_html_`)."""

from html import escape
from typing import Any

import numpy as np

_STYLE = (
    "font:14px/1.5 system-ui,sans-serif;border:1px solid #8884;border-radius:8px;"
    "padding:10px 14px;max-width:640px"
)


def html_card(estimator: Any) -> str:
    """Name, parameters that differ from their defaults, and once fitted what was found."""
    title = getattr(estimator, "title", "") or type(estimator).__name__
    parts = [f"<b>{escape(str(title))}</b>"]
    summary = getattr(estimator, "summary", "")
    if summary:
        parts.append(f'<div style="opacity:.7">{escape(str(summary))}</div>')
    parts.append(f"<code>{escape(_call(estimator))}</code>")
    labels = getattr(estimator, "labels_", None)
    parts.append(f"<div>{escape(_found(estimator, labels))}</div>")
    return f'<div style="{_STYLE}">{"".join(parts)}</div>'


def _call(estimator):
    """The constructor call that would make this estimator: only what differs from the class."""
    given = estimator.get_params(deep=False)
    plain = type(estimator)().get_params(deep=False)
    changed = [f"{k}={_short(v)}" for k, v in given.items() if not _same(v, plain.get(k))]
    return f"{type(estimator).__name__}({', '.join(changed)})"


def _same(a, b):
    return a is b or (type(a) is type(b) and repr(a) == repr(b))


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _found(estimator, labels):
    if labels is None:
        return "not fitted"
    labels = np.asarray(labels)
    sizes = np.bincount(labels[labels >= 0], minlength=_clusters(estimator))
    used = int((sizes > 0).sum())
    found = f"fitted on {len(labels):,} rows: {used} of {len(sizes)} clusters used"
    if used:
        found += f", {int(sizes[sizes > 0].min()):,} to {int(sizes.max()):,} rows each"
    if sizes.sum() < len(labels):
        found += f", {len(labels) - int(sizes.sum()):,} rows in none"
    seconds = sum((getattr(estimator, "seconds_", None) or {}).values())
    return found + (f", {seconds:.3g} s" if seconds else "")


def _clusters(estimator):
    return int(getattr(estimator, "n_clusters_", 0) or estimator.n_clusters)
