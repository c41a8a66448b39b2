"""How data were read, kept beside the model so that `predict` reads new rows in the same way."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.storage.atomic import read_bytes, write_atomic
from coterie.storage.seals import digest, seal

from .errors import DataError

_FORMAT = 1


@dataclass
class Recipe:
    """JSON-able description of a reading, plus the arrays that it needs.

    Attributes
    ----------
    kind, name, source : str
        Kind of data, its name, and the sort of source ("csv", "images", "named", ...).
    shape : list of int
        Shape of one row, e.g. ``[64]`` or ``[28, 28]``.
    dtype : str
        Type of the values as handed to the estimator, e.g. ``"uint8"``.
    top : float, optional
        Largest value of images that are not bytes: 1 for fractions.
    columns : list of str, optional
        Columns of a table, in the order in which the estimator sees them.
    named : bool
        False when those are only positions: the file had no header.
    width : int, optional
        Columns of the whole table, those that were not clustered included.
    id_column, label_column, text_column : str, optional
    embeddings : bool
        True when the rows are ready embeddings.
    use_rep : str, optional
        Representation of an AnnData (key of obsm) that the rows are.
    prepared : list of dict
        What was done to each column of a table to make it numbers (`data.prepare`).
    divide : float, optional
        Raw values were divided by this number (pendigits: 100).
    tfidf : dict
        Settings of the tf-idf vectoriser.
    vocabulary : list of str
        Its words, in column order; their weights are ``arrays["idf"]``.
    counts : dict
        ``log2(x + 1) / peak`` of the genes ``arrays["genes"]`` out of ``n_genes``.
    arrays : dict of str to ndarray
    """

    kind: str = "vector"
    name: str = ""
    source: str = "array"
    shape: list[int] = field(default_factory=list)
    dtype: str = "float32"
    top: float | None = None
    columns: list[str] | None = None
    named: bool = True
    width: int | None = None
    id_column: str | None = None
    label_column: str | None = None
    text_column: str | None = None
    embeddings: bool = False
    use_rep: str | None = None
    prepared: list[dict[str, Any]] = field(default_factory=list)
    divide: float | None = None
    tfidf: dict[str, Any] = field(default_factory=dict)
    vocabulary: list[str] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict:
        """Return everything but the arrays, as plain JSON values."""
        fields = (f.name for f in dataclasses.fields(self) if f.name != "arrays")
        return {"format": _FORMAT} | {name: getattr(self, name) for name in fields}

    def save(self, folder: str | Path) -> None:
        """Write recipe.json, and recipe.safetensors when there are arrays, into `folder`."""
        from safetensors.numpy import save

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        content = self.to_dict()
        if self.arrays:
            ready = {name: np.ascontiguousarray(value) for name, value in self.arrays.items()}
            tensors = save(ready)
            content["arrays_digest"] = digest(tensors)
            write_atomic(folder / "recipe.safetensors", tensors)
        # last, because it vouches for the arrays
        text = json.dumps(content | {"seal": seal(content)}, indent=1, ensure_ascii=False)
        write_atomic(folder / "recipe.json", text.encode())

    @classmethod
    def load(cls, folder: str | Path) -> Recipe:
        """Read what `save` wrote; a half-written or foreign recipe is an error."""
        from safetensors.numpy import load

        path = Path(folder) / "recipe.json"
        try:
            content = json.loads(read_bytes(path))
        except FileNotFoundError:
            raise DataError(f"{folder} holds no recipe.json: it is not a finished run") from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"cannot read {path}: {error}") from None
        stored = content.pop("seal", None) if isinstance(content, dict) else None
        if stored is not None and stored != seal(content):  # the first version had none
            raise DataError(f"{path} is damaged: its digest does not match")
        found = content.pop("format", None) if isinstance(content, dict) else None
        if found != _FORMAT:
            raise DataError(
                f"{path} is a recipe of format {found}, this coterie reads format {_FORMAT}; "
                "fit again, or use the version that wrote it"
            )
        vouched = content.pop("arrays_digest", None)
        known = {f.name for f in dataclasses.fields(cls)} - {"arrays"}
        if set(content) - known:
            strange = ", ".join(sorted(set(content) - known))
            raise DataError(f"{path} has unknown keys: {strange}")
        recipe = cls(**content)
        if vouched:
            side = path.with_name("recipe.safetensors")
            try:
                tensors = read_bytes(side)
            except (OSError, ValueError) as error:
                raise DataError(f"cannot read {side}: {error}") from None
            if digest(tensors) != vouched:
                raise DataError(f"{side} does not belong to {path}: one of them was changed")
            recipe.arrays = load(tensors)
        return recipe
