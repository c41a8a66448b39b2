"""Texts -> tokens, with the tokenizer.json that lies beside a model."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from .base import EncoderError


def load_tokenizer(path: Path, most: int) -> Any:
    """The tokenizer of a file, cutting at `most` tokens."""
    if not path.is_file():
        raise EncoderError(
            f"{path} is missing: an encoder of texts needs the tokenizer that it was trained with; "
            "AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER) writes it"
        )
    if find_spec("tokenizers") is None:
        raise EncoderError(f"{path} needs tokenizers: pip install 'coterie[text]'")
    library = import_module("tokenizers")  # an extra: it may be absent
    try:
        found = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more precise
        raise EncoderError(f"{path} cannot be read as a tokenizer: {error}") from None
    found.no_padding()
    found.enable_truncation(most)
    return found


def padded(pieces: list, padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and their mask, each (b, t)."""
    longest = max(1, *(len(piece.ids) for piece in pieces))
    tokens = torch.full((len(pieces), longest), padding)
    mask = torch.zeros(len(pieces), longest, dtype=torch.int64)
    for row, piece in enumerate(pieces):
        tokens[row, : len(piece.ids)] = torch.tensor(piece.ids, dtype=torch.int64)
        mask[row, : len(piece.ids)] = 1
    return tokens, mask


def by_length(lengths: list[int], most: int) -> tuple[torch.Tensor, list[list[int]]]:
    """Texts of like length together, `most` tokens with their padding at a time.

    Returns the rows of each part, and for each row its place when the parts are joined.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    parts: list[list[int]] = []
    for row in order:
        if not parts or (len(parts[-1]) + 1) * lengths[row] > most:
            parts.append([])
        parts[-1].append(row)
    return torch.tensor(order).argsort(), parts
