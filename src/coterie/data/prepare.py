"""Columns that are not numbers, and gaps, made usable where the caller asks for it.

categorical="one-hot"  a column of words becomes one column of 0 and 1 for each word
dates="numbers"        a date becomes the days since 1970
missing="median"       a gap in a column of numbers is filled with the column's median

What was decided for each column is a list of steps in the recipe, and new rows go the same way: a
word that the fit has not seen is no column and leaves zeros.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from .errors import DataError, listed
from .options import Options
from .ranges import narrow
from .tables import MISSING, BadCells, refuse

MOST_WORDS = 200  # of a column: more are names, not categories
_FLAGS = {"true": 1.0, "false": 0.0}


def wanted(ask: Options) -> bool:
    """Whether the caller, or the recipe, asks for any of this."""
    return bool(ask.categorical or ask.dates or ask.missing or (ask.recipe and ask.recipe.prepared))


def read_prepared(table, columns: list[str], strings: list[str], ask: Options, name: str):
    """Return numbers (n, m), the cells of `strings`, the names of the m columns, and the steps."""
    _, found = table.read([], [*columns, *(c for c in strings if c not in columns)])
    known = {step["column"]: step for step in ask.recipe.prepared} if ask.recipe else None
    parts, names, steps, bad = [], [], [], []
    for column in columns:
        cells = [str(cell).strip() for cell in found[column]]
        step = _decide(column, cells, ask) if known is None else known.get(column)
        values = None if step is None else _follow(step, cells, ask, name)
        if step is None or values is None:
            bad.append(_wrong(column, cells, step))
            continue
        parts.append(values)
        steps.append(step)
        words = step.get("words")
        names += [column] if words is None else [f"{column}={word}" for word in words]
    if bad:
        refuse(name, bad, again=known is not None)
    X = np.concatenate(parts, axis=1)
    if not narrow(X.min(0), X.max(0)).any():
        X = X.astype(np.float32)
    return X, {column: found[column] for column in strings}, names, steps


def _decide(column: str, cells: list[str], ask: Options) -> dict | None:
    """The step for a column, by its cells; None: it cannot be used as asked."""
    there = [cell for cell in cells if cell.lower() not in MISSING]
    numbers = _numbers(there)
    if there and numbers is not None:
        if len(there) < len(cells) and not ask.missing:
            return None
        step = {"column": column, "as": "number"}
        return step | ({"fill": float(np.median(numbers))} if ask.missing else {})
    if there and ask.dates:
        days = _days(there)
        if days is not None and (ask.missing or len(there) == len(cells)):
            step = {"column": column, "as": "date"}
            return step | ({"fill": float(np.median(days))} if ask.missing else {})
    words = sorted(set(there))
    if ask.categorical and 0 < len(words) <= MOST_WORDS:
        return {"column": column, "as": "one-hot", "words": words}
    return None


def _follow(step: dict, cells: list[str], ask: Options, name: str) -> np.ndarray | None:
    """The numbers (n, columns) that a step makes of the cells; None where it cannot."""
    gaps = np.array([cell.lower() in MISSING for cell in cells])
    if step["as"] == "one-hot":
        place = {word: i for i, word in enumerate(step["words"])}
        spots = np.array([place.get(cell, -1) for cell in cells])
        strange = sorted({c for c, s, g in zip(cells, spots, gaps, strict=True) if s < 0 and not g})
        if strange:
            ask.notice(
                f"{name}: column '{step['column']}' has {len(strange)} values that the fit has not "
                f"seen ({listed(strange)}); their rows are zero there"
            )
        return (spots[:, None] == np.arange(len(place))).astype(np.float64)
    read = _numbers if step["as"] == "number" else _days
    there = read([cell for cell, gap in zip(cells, gaps, strict=True) if not gap])
    if there is None or (gaps.any() and "fill" not in step):
        return None
    values = np.full(len(cells), step.get("fill", 0.0))
    values[~gaps] = there
    return values[:, None]


def _numbers(cells: list[str]) -> np.ndarray | None:
    try:
        if "_" in "".join(cells):
            return None  # float() reads 1_000, people who write codes do not mean it
        values = np.array([_FLAGS[c.lower()] if c.lower() in _FLAGS else float(c) for c in cells])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _days(cells: list[str]) -> np.ndarray | None:
    """Days since 1970 of ISO dates (2024-05-31, with a time or without)."""
    try:
        times = [datetime.fromisoformat(cell) for cell in cells]
    except ValueError:
        return None
    zoned = [t if t.tzinfo else t.replace(tzinfo=UTC) for t in times]
    return np.array([t.timestamp() / 86_400 for t in zoned])


def _wrong(column: str, cells: list[str], step: dict | None) -> BadCells:
    """What the error says of a column that cannot be used."""
    bad, words = BadCells(column, len(cells)), len(set(cells))
    for row, cell in enumerate(cells):
        gap = cell.lower() in MISSING
        if gap or _numbers([cell]) is None:
            bad.add(cell, f"row {row + 1}")
    if step is None and not bad.missing and words > MOST_WORDS:
        raise DataError(
            f"column '{column}' has {words} different values, too many for one column each (at "
            f"most {MOST_WORDS}); leave it out with drop=, or name the rows by it: id_column="
        )
    return bad
