"""What CSV files, parquet files and data frames share: choosing columns, refusing bad cells."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .arrays import check_finite, describe_rows, encode_labels
from .dataset import Dataset
from .errors import DataError, did_you_mean, listed
from .options import Options, joined
from .recipe import Recipe
from .text import from_texts

MISSING = frozenset(["", "na", "n/a", "nan", "null", "none", "<na>", "?", "-", "--"])
_COUNTED_ROWS = 20  # of so many whole numbers in a row hardly any other column consists
_INFINITE = frozenset(f"{sign}{word}" for sign in ("", "+", "-") for word in ("inf", "infinity"))


class Table(Protocol):
    """A source of named columns."""

    names: list[str]
    named: bool  # False when the names are only positions

    def read(
        self, numeric: list[str], strings: list[str], fitted: str | None = None
    ) -> tuple[np.ndarray, dict]:
        """Return numbers (n, len(numeric)) and {name: list of str} for `strings`.

        They are of the type that was `fitted`; without it float32, and float64 where float32
        would round a column away.
        """

    def read_lists(self, column: str) -> list | np.ndarray | None:
        """Return the cells of a column of lists, or None when it is no such column."""


@dataclass
class BadCells:
    """What is wrong in one column: how many cells, and the first of them."""

    column: str
    rows: int
    text: int = 0
    missing: int = 0
    infinite: int = 0
    first: str = ""

    def add(self, cell: object, where: str) -> None:
        word = "" if cell is None else str(cell).strip().lower()
        if word in MISSING:
            self.missing += 1
        elif word in _INFINITE:
            self.infinite += 1
        else:
            self.text += 1
        if not self.first:
            shown = str(cell) if len(str(cell)) <= 40 else str(cell)[:40] + "..."
            self.first = f"'{shown}' in {where}" if word else f"an empty cell in {where}"

    def __str__(self) -> str:
        parts = [
            f"{count} {what}"
            for count, what in (
                (self.text, "with text"),
                (self.missing, "missing"),
                (self.infinite, "infinite"),
            )
            if count
        ]
        count, what = parts[0].split(" ", 1)
        parts[0] = f"{count} of {self.rows} cells {what}"
        return f"column '{self.column}': {' and '.join(parts)}, first {self.first}"


def refuse(name: str, bad: list[BadCells], again: bool = False) -> None:
    """Raise the error that names the columns and what can be done about each kind.

    `again`: a fitted model wants just these columns, none can be left out.
    """
    advice = []
    drop = json.dumps(joined(cells.column for cells in bad[:5]), ensure_ascii=False)
    if any(re.match(r"'[+-]?\d*,\d+'", cells.first) for cells in bad):
        advice.append("write decimal points (1.5 for 1,5), or split the columns at ';'")
    elif any(cells.text for cells in bad):
        advice.append(
            'turn categories into numbers with categorical="one-hot", dates with dates="numbers"'
        )
    if any(cells.missing or cells.infinite for cells in bad):
        advice.append(
            'fill missing values, for example with the median of the column: missing="median"'
        )
    if not again:
        advice.append(f"or leave the column out with drop={drop}")
    if not again and any(cells.text == cells.rows for cells in bad):
        advice.append(
            "or use it as names of the rows (id_column=) or as known classes (label_column=), or "
            "cluster the texts in it (text_column=)"
        )
    more = f"\n  ... and {len(bad) - 5} more columns" if len(bad) > 5 else ""
    raise DataError(
        f"{name} has cells that are not numbers:\n  "
        + "\n  ".join(str(cells) for cells in bad[:5])
        + f"{more}\nWhat to do: {'; '.join(advice)}"
    )


def from_table(table: Table, ask: Options, name: str, source: str, ids=None) -> Dataset:
    """Choose columns, read them, and wrap them up.

    With a recipe its columns are taken, in its order, wherever they stand in the new table.
    """
    from . import prepare  # which knows of bad cells, and so of this module

    first = table.names[0]
    if ask.id_column is None and table.named and first in ("", "Unnamed: 0"):
        ask = replace(ask, id_column=first)  # what pandas writes for the index, and reads it as
        ask.notice(f"{name}: the first column has no name and is taken as the rows' ids")
    special = _special(table, ask, name)
    strings = [column for column in special.values() if column is not None]
    if special["text"] is not None:
        ask.only("a column of texts", "id_column", "label_column", "text_column")
        _, found = table.read([], strings)
        return from_texts(
            found[special["text"]],
            ask,
            name,
            source,
            ids=found[special["id"]] if special["id"] is not None else ids,
            labels=_labels(found, special["label"], name),
        )
    columns = _choose(table, ask, name, set(strings))
    lists = table.read_lists(columns[0]) if len(columns) == 1 else None
    if lists is None and ask.embeddings and "embedding" in table.names:
        columns, lists = ["embedding"], table.read_lists("embedding")
    fitted = ask.recipe.dtype if ask.recipe is not None else None
    numeric = columns if lists is None else []  # a column of lists names none of its numbers
    shown, steps = numeric or None, []
    if prepare.wanted(ask) and numeric:
        X, found, shown, steps = prepare.read_prepared(table, columns, strings, ask, name)
    else:
        X, found = table.read(numeric, strings, fitted)
    if lists is not None:
        X = vectors(lists, name)
    labels = _labels(found, special["label"], name)
    kind = "vector" if ask.embeddings or not numeric else "table"
    recipe = ask.recipe
    if recipe is None:
        recipe = describe_rows(X, kind, name, source, columns=columns, embeddings=ask.embeddings)
        recipe.id_column, recipe.label_column = special["id"], special["label"]
        recipe.named, recipe.width, recipe.prepared = table.named, len(table.names), steps
        _tell_of_ids(X, numeric, name, ask)
    elif list(X.shape[1:]) != list(recipe.shape):
        raise DataError(
            f"{name} has rows of shape {X.shape[1:]}, the model was fitted on "
            f"{tuple(recipe.shape)}; give rows of that shape"
        )
    elif recipe.divide:
        X /= np.float32(recipe.divide)
    codes, label_names = encode_labels(labels, name)
    ids = found[special["id"]] if special["id"] is not None else ids
    ids = range(len(X)) if ids is None else ids
    return Dataset(X, ids, recipe.kind, name, shown, None, codes, label_names, recipe=recipe)


def _tell_of_ids(X: np.ndarray, columns: list[str], name: str, ask: Options) -> None:
    """Tell of columns that number the rows: they would be clustered like any other."""
    n = len(X)
    for j, column in enumerate(columns if n >= _COUNTED_ROWS and len(columns) > 1 else []):
        values = X[:, j]
        if values.max() - values.min() == n - 1 and len(np.unique(values)) == n:
            quoted = json.dumps(joined([column]), ensure_ascii=False)
            ask.notice(
                f"{name}: column '{column}' numbers the rows from {values.min():.0f} to "
                f"{values.max():.0f}; if it holds ids, id_column={quoted} takes it as the rows' "
                f"names and drop={quoted} leaves it out"
            )


def vectors(lists: list | np.ndarray, name: str, before: int = 0) -> np.ndarray:
    """Return float32 (n, d) from n lists of d finite numbers; a memory map was looked at before.

    So many rows stand `before` them.
    """
    if isinstance(lists, np.memmap):
        return lists
    try:
        X = np.asarray(lists, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        X = None
    if X is None or X.ndim != 2 or X.shape[1] == 0:
        lengths = sorted({len(row) if hasattr(row, "__len__") else 1 for row in lists})
        raise DataError(
            f"{name}: embeddings must be lists of numbers, all of one length; "
            f"they have {listed(map(str, lengths))} entries: drop the rows that differ"
        )
    check_finite(X, name, before)
    return X


def _special(table: Table, ask: Options, name: str) -> dict[str, str | None]:
    """Check the columns with a role of their own; those that a recipe names may be absent."""
    special = {"id": ask.id_column, "label": ask.label_column, "text": ask.text_column}
    remembered = ask.recipe is not None and ask.recipe.id_column == ask.id_column
    if remembered and special["id"] not in table.names:
        special["id"] = None
    for role, column in special.items():
        if column is not None and column not in table.names:
            raise DataError(
                f"{name} has no column '{column}' ({role} column)."
                f"{did_you_mean(column, table.names)} It has: {listed(table.names)}"
            )
    return special


def _choose(table: Table, ask: Options, name: str, strings: set[str]) -> list[str]:
    """Return the columns to cluster."""
    there = set(table.names)
    for column in (*(ask.columns or ()), *ask.drop):
        if column not in there:
            raise DataError(
                f"{name} has no column '{column}'.{did_you_mean(column, table.names)} "
                f"It has: {listed(table.names)}"
            )
    if ask.recipe is not None:
        return _choose_again(table, ask.recipe, ask, name, strings)
    columns = _asked_for(table, ask, strings)
    if not columns:
        raise DataError(f"{name}: no column is left to cluster; it has: {listed(table.names)}")
    return columns


def _asked_for(table: Table, ask: Options, strings: set[str]) -> list[str]:
    wanted, left_out = ask.columns or table.names, {*strings, *ask.drop}
    return [column for column in wanted if column not in left_out]


def _choose_again(table: Table, recipe: Recipe, ask: Options, name: str, strings: set) -> list[str]:
    """Return the columns of the recipe, by name where both have names, else by position."""
    known, rest = recipe.columns, _asked_for(table, ask, strings)
    bare = not table.named and not recipe.named
    if known and bare and recipe.width == len(table.names):  # the same columns stand out again
        return list(known)
    if known and table.named and recipe.named:
        there = set(table.names)
        absent = [column for column in known if column not in there]
        if absent:
            hint = did_you_mean(absent[0], [c for c in rest if c not in known])
            raise DataError(
                f"{name} lacks {len(absent)} of the {len(known)} columns that the model was "
                f"fitted on: {listed(absent)}.{hint} Add them under the same names"
            )
        return list(known)
    width = len(known) if known else int(np.prod(recipe.shape))
    if len(rest) != width and recipe.vocabulary:
        raise DataError(
            f"{name} is a table of {len(rest)} columns, the model was fitted on text; "
            "name the column that holds it: text_column="
        )
    if recipe.kind == "image":
        raise DataError(
            f"{name} is a table of {len(rest)} columns, the model was fitted on images of "
            f"{'x'.join(map(str, recipe.shape))}; give images"
        )
    if len(rest) != width:
        raise DataError(
            f"{name} has {len(rest)} columns, the model was fitted on {width}; "
            "give the same columns, or name those to leave out: drop="
        )
    if known and rest != list(known):
        one = f"{name} names" if not table.named else "the fitted data named"
        ask.notice(f"{one} no columns; they are taken in the fitted order")
    return rest


def _labels(found: dict, column: str | None, name: str):
    if column is None:
        return None
    empty = sum(not str(cell).strip() for cell in found[column])
    if empty:
        raise DataError(
            f"{name}: label column '{column}' has {empty} empty cells; fill them or do not name it"
        )
    return found[column]
