"""What an encoder is to the rest of the house."""

import json
from pathlib import Path
from typing import Any

import numpy as np


class EncoderError(ValueError):
    """An encoder cannot be used as asked; the message says what to do."""


def read_settings(path: Path) -> Any:
    """A JSON file beside a model."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise EncoderError(f"{path} is not readable as JSON: {error}") from None


class Encoder:
    """Turns a batch of rows into vectors.

    Attributes
    ----------
    reference : str
        How a saved model names it: ``"text"``, ``"st:NAME"``, a path, or the name of a function.
    digest : str or None
        SHA-256 of everything that it computes with; None for a function, which has none.
    kept : bool
        Whether vectors are kept on disk: not where code decides that no digest vouches for.
    takes : {"text", "image", "rows"}
        "rows" are handed over as they are.
    batch_rows : int
    """

    takes: str = "rows"
    reference: str = ""
    digest: str | None = None
    kept: bool = True
    batch_rows: int = 32

    def settings(self, rows: Any) -> dict:
        """What is decided by the rows of a fit and holds for all that come later; JSON values."""
        return {}

    def embed(self, batch: Any, settings: dict) -> np.ndarray:  # b rows -> (b, d)
        raise NotImplementedError
