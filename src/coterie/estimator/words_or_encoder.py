"""``encoder="auto"``: texts described by their words or by an encoder, whichever is clearer.

Neither is always better, and no label is needed to tell: see `math.two_views.compare`.
"""

from typing import Any

import numpy as np
import torch

from ..encoders.base import EncoderError
from ..encoders.find import find
from ..math.features import Features
from ..math.two_views import compare
from ..runtime.rng import numpy_rng, torch_rng

AUTO = "auto"
SAMPLE_ROWS = 3000  # that are compared
FEW_ROWS = 50  # below it there is nothing to compare
OPEN_CLUSTERS = 10  # where the number is to be found as well
SEED = 0  # not that of the fit: all seeds take the same description


def tries_both(encoder: Any) -> bool:
    """Whether words and an encoder are both to be tried: "auto", or "auto:" and an encoder."""
    return isinstance(encoder, str) and (encoder == AUTO or encoder.startswith(f"{AUTO}:"))


def encoder_of(spec: str) -> str:
    """The encoder among the two."""
    return spec.removeprefix(AUTO).removeprefix(":") or "text"


def installed(spec: str) -> tuple[Any, str]:
    """The encoder, or None and why; one that was named must be there."""
    try:
        return find(encoder_of(spec)), ""
    except EncoderError as error:
        if spec != AUTO:
            raise
        return None, str(error)


def compared(words: Any, vectors: np.ndarray, n_clusters: Any) -> dict[str, float]:
    """Worth of the two descriptions, and the agreement of their clusters; {}: too few rows.

    Parameters
    ----------
    words : CSR (n, d), tf-idf
    vectors : (n, e), of the encoder
    n_clusters : a number, or "auto"
    """
    n, rng = words.shape[0], numpy_rng(SEED, "words or encoder")
    k = n_clusters if isinstance(n_clusters, int) else OPEN_CLUSTERS
    rows = np.sort(rng.choice(n, min(n, SAMPLE_ROWS), replace=False))
    if len(rows) < max(FEW_ROWS, 5 * k):
        return {}
    views = _features("text", words[rows]), _features("vector", torch.from_numpy(vectors[rows]))
    worth, agreement = compare(*views, k, rng)
    found = {"words": worth[0], "encoder": worth[1], "agreement": agreement}
    return {name: round(float(value), 4) for name, value in found.items()}


def said(tried: dict[str, float], encoder: str) -> str:
    """What the choice was, and how to have the other."""
    both = f"words (tf-idf) and encoder {encoder} were both tried"
    if not tried:
        return f"{both}; chosen: the encoder, because the texts are too few to compare them"
    taken, other = order(tried)
    names = {"words": "words", "encoder": f"encoder {encoder}"}
    way = "encoder=None gives" if other == "words" else f"encoder={encoder!r} gives"
    return (
        f"{both}; chosen: {names[taken]} (score {tried[taken]:.2f} against {tried[other]:.2f}; "
        f"quick clusters of the two agree by an adjusted Rand index of {tried['agreement']:.2f}); "
        f"{way} the other"
    )


def order(tried: dict[str, float]) -> tuple[str, str]:
    """The description to take, and the other."""
    if tried and tried["words"] > tried["encoder"]:
        return "words", "encoder"
    return "encoder", "words"


def what_is(X: Any) -> str:
    """X in words, for an error."""
    shape = getattr(X, "shape", None)
    return f"an array of shape {tuple(shape)}" if shape else type(X).__name__


def _features(kind: str, rows: Any) -> torch.Tensor:
    features = Features(kind, (rows.shape[1],))
    return features.fit(rows, torch_rng(SEED, "features"))(rows)
