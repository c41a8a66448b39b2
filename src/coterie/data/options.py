"""What the caller asked for, carried through the readers as one value."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from coterie.storage.atomic import read_bytes

from .errors import DataError
from .recipe import Recipe


def warn(message: str) -> None:
    """Say something that is worth knowing but no error."""
    warnings.warn(message, UserWarning, stacklevel=4)


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `load`, cleaned."""

    recipe: Recipe | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    label_column: str | None = None
    text_column: str | None = None
    image_size: tuple[int, int] | None = None  # height, width
    skip_bad: bool = False
    embeddings: bool = False
    words: int | None = None
    use_rep: str | None = None
    categorical: str | None = None
    dates: str | None = None
    missing: str | None = None
    names: tuple[str, ...] | None = None  # of the columns of an array
    notice: Callable[[str], None] = warn
    given: tuple[str, ...] = ()  # options that the caller named, apart from what a recipe adds

    def only(self, what: str, *used: str) -> None:
        """Refuse options that a reader has no use for: ignored, they would seem obeyed."""
        for name in self.given:
            if name not in used:
                raise DataError(
                    f"{name}={_shown(getattr(self, name))} does not apply to {what}, which takes "
                    f"{', '.join(f'{option}=' for option in used) or 'no such options'}; "
                    "leave it out"
                )

    def named_columns(self) -> set[str]:
        """Return the columns that are asked for by name."""
        one = (self.id_column, self.label_column, self.text_column)
        return {*(self.columns or ()), *self.drop, *(name for name in one if name is not None)}

    def with_recipe(self) -> Options:
        """Fill in what the recipe remembers and the caller did not say again."""
        recipe = self.recipe
        if recipe is None:
            return self
        if self.image_size and recipe.kind == "image" and self.image_size != (*recipe.shape[:2],):
            sizes = ["x".join(map(str, size)) for size in (self.image_size, recipe.shape[:2])]
            raise DataError(
                f"image_size is {sizes[0]}, the model was fitted on images of {sizes[1]}; "
                "leave image_size= out"
            )
        return replace(
            self,
            id_column=self.id_column or recipe.id_column,
            text_column=self.text_column or recipe.text_column,
            embeddings=self.embeddings or recipe.embeddings,
        )


def _shown(value) -> str:
    """An option's value as it would be written."""
    if isinstance(value, tuple) and all(isinstance(part, int) for part in value):
        return "x".join(map(str, value))
    return (
        str(value)
        if isinstance(value, bool)
        else json.dumps(joined([value] if isinstance(value, str) else value))
    )


PREPARE = {"categorical": ("one-hot",), "dates": ("numbers",), "missing": ("median",)}
TABLE = ("columns", "drop", "id_column", "label_column", "text_column", "embeddings", *PREPARE)
# not `words`: commands pass on what their method prefers, whatever the data
CHECKED = (*TABLE, "image_size", "skip_bad", "use_rep", "names")


def names(value) -> tuple[str, ...]:
    """Return a tuple of column names from ``'a,b'`` or ``'a,"b, c"'``, a list, or None."""
    if value is None:
        return ()
    if isinstance(value, str):
        parts = next(csv.reader([value], skipinitialspace=True), [])
        return tuple(part.strip() for part in parts if part.strip())
    return tuple(str(part) for part in value)


def column_names(value) -> tuple[str, ...] | None:
    """Return names from a list, or from a text file with one name a line."""
    if value is None or not isinstance(value, (str, os.PathLike)):
        return None if value is None else tuple(str(part) for part in value)
    try:
        lines = read_bytes(value).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the names of the columns from {value}: {error}") from None
    return tuple(line.strip() for line in lines if line.strip())


def joined(parts: Iterable[object]) -> str:
    """Return the text from which `names` reads these; a name with a comma is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(parts)
    return text.getvalue()


def choice(name: str, value: str | None) -> str | None:
    """Return one of the words that an option of PREPARE takes."""
    if value is not None and value not in PREPARE[name]:
        known = ", ".join(PREPARE[name])
        raise DataError(f"{name}={json.dumps(value)} is not known; there is: {known}")
    return value


def count(value) -> int | None:
    """Return a number of words."""
    if value is None:
        return None
    if not isinstance(value, int) or value < 1:
        raise DataError(f"words={value!r} is not a number of words; give 1 or more, such as 5000")
    return value


def size(value) -> tuple[int, int] | None:
    """Return (height, width) from 32, ``"32"``, ``"64x48"`` or (64, 48)."""
    if value is None:
        return None
    try:
        parts = str(value).lower().split("x") if isinstance(value, (str, int)) else list(value)
        height, width = (int(part) for part in (parts * 2 if len(parts) == 1 else parts))
    except (TypeError, ValueError):
        raise DataError(
            f"image_size={value!r} is not a size; give a number or HEIGHTxWIDTH"
        ) from None
    if not (0 < height <= 4096 and 0 < width <= 4096):
        raise DataError(f"image_size={value!r} is out of range; each side must be 1 to 4096")
    return height, width
