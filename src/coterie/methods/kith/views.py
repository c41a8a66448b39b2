"""Random variants of rows that Kith compares: a step towards a neighbour, or words that got lost.

Noise is drawn for the whole batch (`Batch.draw`), so it depends on seed and step alone.
"""

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from ...train.batch import Batch
from ...train.head import Head


def mixed(batch: Batch, head: Head, rows: torch.Tensor, key: str, mix: float, noise: float):
    """Features up to `mix` of the way to a random neighbour's, plus noise: (b,) -> (b, m).

    Of images, every second view starts from the moved copy.
    """
    # whole rows by `index_select`, which copies them at once
    z, k, m = head.z.index_select(0, rows), head.graph.shape[1], head.z.shape[1]
    if "moved" in head:
        heads = batch.draw(lambda b, g: torch.rand(b, 1, generator=g) < 0.5, key, "moved")
        z = torch.where(heads, head.moved.index_select(0, rows), z)
    picked = batch.draw(lambda b, g: torch.randint(k, (b,), generator=g), key, "mix")
    other = head.z.index_select(0, head.graph[rows, picked])
    share = batch.draw(lambda b, g: torch.rand(b, 1, generator=g), key, "share") * mix
    shake = batch.draw(lambda b, g: torch.randn(b, m, generator=g), key, "noise")
    return z + share * (other - z) + noise * head.spread * shake


def thinned(batch: Batch, words: Any, rows: torch.Tensor, key: str, share: float):
    """Features of rows that lost a `share` of their words or genes: (b,) -> (b, m).

    Parameters
    ----------
    rows : on the host, as the words are
    words : CSR (n, d), see `row_features.thin_rows`; only the entries that are there cost anything
    """
    width = int(np.diff(words.indptr).max(initial=1))
    keep = batch.draw_on_host(lambda b, g: torch.rand(b, width, generator=g) >= share, key).numpy()
    part, features = words[rows.numpy()], batch.network.features
    if features.kind == "text":
        return features(lose_words(part, keep))
    totals = np.asarray(part.sum(1)).ravel()
    return F.normalize(features.counts.of_cut(lose_words(part, keep), totals), eps=1e-6)


def lose_words(part: Any, keep: np.ndarray) -> Any:  # CSR (b, d), (b, most words) -> CSR
    """Weight zero for the i-th word of row r where keep[r, i] is false."""
    lengths = np.diff(part.indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(part.nnz) - np.repeat(part.indptr[:-1], lengths)
    part.data = part.data * keep[row, place]
    return part
