"""Raw rows -> numbers before anything else: texts by tf-idf, anything by a pretrained encoder.

What a fit decides (the vocabulary, the encoder and its settings) is `encoding_`; predict repeats it
and a saved model keeps it. Of an encoder only the name and the SHA-256 are kept, never its code.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.dataset import Dataset
from ..data.library_sets import is_torch_set, torch_rows
from ..data.options import warn
from ..data.recipe import Recipe
from ..data.text import count_words, fit_tfidf, tfidf
from ..data.texts import as_texts
from ..encoders.base import Encoder, EncoderError
from ..encoders.code import Module
from ..encoders.embed import embed
from ..encoders.find import find
from ..encoders.images import as_images
from .tuning import Unembedded, check_tuning, wants_tuning


@dataclass
class Encoding:
    """How the rows of a fit became numbers.

    `reference`, `digest`, `takes`, `width` and `settings` are those of an encoder; texts without
    one have a `recipe` with the vocabulary instead.
    """

    reference: str = ""
    digest: str | None = None
    takes: str = "text"
    width: int = 0
    settings: dict = field(default_factory=dict)
    recipe: Recipe | None = None

    def to_dict(self) -> dict:
        """Plain values for a file."""
        if self.recipe is not None:
            return {"recipe": self.recipe.to_dict()}
        names = ("reference", "digest", "takes", "width", "settings")
        return {name: getattr(self, name) for name in names}

    def tensors(self) -> dict[str, torch.Tensor]:
        arrays = {} if self.recipe is None else self.recipe.arrays
        return {f"encoding.{name}": torch.from_numpy(np.array(a)) for name, a in arrays.items()}

    @classmethod
    def restore(cls, about: dict, tensors: dict[str, torch.Tensor]) -> "Encoding":
        """The inverse of `to_dict` and `tensors`."""
        if "recipe" not in about:
            return cls(**about)
        known = {k: v for k, v in about["recipe"].items() if k != "format"}
        prefix = "encoding."
        arrays = {k.removeprefix(prefix): v.numpy() for k, v in tensors.items() if prefix in k}
        return cls(recipe=Recipe(**known, arrays=arrays))


def encode(model: Any, X: Any, reset: bool) -> Any:
    """Rows as numbers; rows that are numbers already pass unless there is an encoder.

    `reset`: a fit, which decides; otherwise what it decided is repeated.
    """
    if isinstance(X, Dataset):
        X = X.given_to(model)
    if is_torch_set(X):
        X = torch_rows(X)
    texts = as_texts(X)
    if reset:
        for name in ("encoding_", "_unembedded"):
            vars(model).pop(name, None)
        check_tuning(model)
        if model.encoder is not None:
            return _embed_first(model, X, texts)
        return X if texts is None else _weigh_first(model, texts)
    encoding = getattr(model, "encoding_", None)
    if encoding is None:
        if texts is not None:
            raise ValueError(
                f"X is {len(texts)} texts, but {type(model).__name__} was fitted on numbers; make "
                "numbers of them as the fit did (load_data(texts, recipe=...)), or fit on texts"
            )
        return X
    if encoding.recipe is None:
        return _embed_again(model, encoding, X, texts)
    # rows that the same recipe has made elsewhere pass
    return X if texts is None else tfidf(count_words(texts, encoding.recipe), encoding.recipe)


def _weigh_first(model: Any, texts: list[str]) -> Any:
    recipe, counts = fit_tfidf(texts, "X", "text", model.words)
    model.encoding_ = Encoding(recipe=recipe)
    rows = tfidf(counts, recipe)
    silent = int(np.count_nonzero(np.diff(rows.indptr) == 0))
    if silent:
        warn(
            f"{silent} of {len(texts)} texts have none of the {len(recipe.vocabulary)} words; "
            "their rows are zero"
        )
    return rows


def _embed_first(model: Any, X: Any, texts: list[str] | None) -> np.ndarray:
    encoder: Any = find(model.encoder)
    rows = _rows_for(encoder, X, texts)
    if len(rows) == 0:
        raise EncoderError("X has no rows to embed")
    settings = encoder.settings(rows)
    vectors = embed(encoder, rows, settings, model.verbose)
    if wants_tuning(model):
        model._unembedded = Unembedded(encoder, rows, settings)
    model.encoding_ = Encoding(
        encoder.reference, encoder.digest, encoder.takes, vectors.shape[1], settings
    )
    return vectors


def _embed_again(model: Any, encoding: Encoding, X: Any, texts: list[str] | None) -> np.ndarray:
    encoder = _same_encoder(model, encoding)
    vectors = embed(encoder, _rows_for(encoder, X, texts), encoding.settings, model.verbose)
    if vectors.shape[1] != encoding.width:
        raise EncoderError(
            f"encoder {encoder.reference} gives {vectors.shape[1]} numbers a row, the model was "
            f"fitted on {encoding.width}; give the encoder of the fit"
        )
    return vectors


def _same_encoder(model: Any, encoding: Encoding) -> Encoder:
    """The encoder of the fit, or an error that says how to bring it back."""
    if wants_tuning(model):
        tuned = Module(model.network_.fine_tuned.module)
        tuned.reference = encoding.reference
        return tuned
    again = f"coterie.load(folder, encoder=...) takes it (SHA-256 {str(encoding.digest)[:12]}...)"
    if model.encoder is None:
        raise EncoderError(
            f"this model was fitted with an encoder of your own, {encoding.reference}, which is "
            f"not stored with it; {again if encoding.digest else again.split(' (')[0]}"
        )
    is_path = isinstance(model.encoder, str) and Path(model.encoder).is_absolute()
    if is_path and not Path(model.encoder).exists():
        raise EncoderError(
            f"the encoder of this model, {model.encoder}, is not there; put it back, or, if it "
            f"has moved, {again}"
        )
    encoder = find(model.encoder)
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
            shape = getattr(X, "shape", None)
            what = f"an array of shape {tuple(shape)}" if shape else type(X).__name__
            raise EncoderError(
                f"encoder {encoder.reference} takes texts, but X is {what}; give a list of "
                "strings, or an encoder of such rows"
            )
        return texts
    if texts is not None and encoder.takes == "image":
        raise EncoderError(
            f"encoder {encoder.reference} takes images, but X is {len(texts)} texts; give images, "
            "or encoder='text'"
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
