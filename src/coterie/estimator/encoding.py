"""Rows -> vectors by a pretrained encoder, before anything else.

What a fit decides (the encoder and its settings) is `encoding_`; predict repeats it and a saved
model keeps it. Of an encoder only the name and the SHA-256 are kept, never its code.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from ..data.errors import count_of
from ..encoders.base import Encoder, EncoderError
from ..encoders.code import Module
from ..encoders.embed import embed
from ..encoders.find import find
from ..encoders.images import as_images
from .tuning import Unembedded, wants_tuning
from .words_or_encoder import tries_both, what_is


@dataclass
class Encoding:
    """How the rows of a fit became vectors."""

    reference: str
    digest: str | None
    takes: str
    width: int
    settings: dict


def embed_first(model: Any, X: Any, texts: list[str] | None, encoder: Any = None) -> np.ndarray:
    """Vectors of the rows of a fit; encoder and settings are kept in `encoding_`."""
    encoder = find(model.encoder) if encoder is None else encoder
    rows = _rows_for(encoder, X, texts)
    if len(rows) == 0:
        raise EncoderError("X has no rows to embed")
    settings = encoder.settings(rows)
    vectors = embed(encoder, rows, settings, model.verbose)
    if wants_tuning(model):
        model._unembedded = Unembedded(cast(Module, encoder), rows, settings)
    model.encoding_ = Encoding(
        encoder.reference, encoder.digest, encoder.takes, vectors.shape[1], settings
    )
    return vectors


def embed_again(model: Any, X: Any, texts: list[str] | None) -> np.ndarray:
    """Vectors of new rows by the encoder of the fit."""
    encoding = model.encoding_
    encoder = _same_encoder(model, encoding)
    vectors = embed(encoder, _rows_for(encoder, X, texts), encoding.settings, model.verbose)
    if vectors.shape[1] != encoding.width:
        raise EncoderError(
            f"encoder {encoder.reference} gives {vectors.shape[1]} numbers a row, the model was "
            f"fitted on {encoding.width}; give the encoder of the fit"
        )
    return vectors


def chosen_encoder(model: Any) -> Any:
    """The encoder of a fitted model, also where it was chosen; None: its rows go without."""
    spec = getattr(model, "encoder", None)
    if not tries_both(spec) or not hasattr(model, "tried_"):
        return spec
    return model.encoding_.reference if hasattr(model, "encoding_") else None


def _same_encoder(model: Any, encoding: Encoding) -> Encoder:
    """The encoder of the fit, or an error that says how to bring it back."""
    if wants_tuning(model):
        tuned = Module(model.network_.fine_tuned.module)
        tuned.reference = encoding.reference
        return tuned
    again = f"coterie.load(folder, encoder=...) takes it (SHA-256 {str(encoding.digest)[:12]}...)"
    spec = chosen_encoder(model)
    if spec is None:
        raise EncoderError(
            f"this model was fitted with an encoder of your own, {encoding.reference}, which is "
            f"not stored with it; {again if encoding.digest else again.split(' (')[0]}"
        )
    is_path = isinstance(spec, str) and Path(spec).is_absolute()
    if is_path and not Path(spec).exists():
        raise EncoderError(
            f"the encoder of this model, {spec}, is not there; put it back, or, if it "
            f"has moved, {again}"
        )
    encoder = find(spec)
    if encoder.digest != encoding.digest:
        raise EncoderError(
            f"encoder {encoder.reference} is not the one that the model was fitted with "
            f"({encoding.reference}): its SHA-256 is {str(encoder.digest)[:12]}..., it was "
            f"{str(encoding.digest)[:12]}...; give that one, or fit again"
        )
    return encoder


def _rows_for(encoder: Encoder, X: Any, texts: list[str] | None) -> Any:
    """What the encoder takes of X, or an error that names both."""
    if encoder.takes == "text":
        if texts is None:
            raise EncoderError(
                f"encoder {encoder.reference} takes texts, but X is {what_is(X)}; give a list of "
                "strings, or an encoder of such rows"
            )
        return texts
    if texts is not None and encoder.takes == "image":
        paths = [Path(text).expanduser() for text in texts]
        if any(map(_is_file, paths)):
            return as_images(paths)
        raise EncoderError(
            f"encoder {encoder.reference} takes images, but X is {count_of(len(texts), 'text')}; "
            "give images or their paths, or encoder='text'"
        )
    if texts is not None:
        return texts
    if encoder.takes == "image":
        return as_images(X)
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    if hasattr(X, "toarray"):
        X = X.toarray()
    return np.asarray(X) if hasattr(X, "__array__") else list(X)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text is too long for a name, or holds a zero
        return False
