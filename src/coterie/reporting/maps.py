"""Two-dimensional maps of an embedding: PCA at once, t-SNE where openTSNE is installed."""

from importlib.util import find_spec

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from coterie.math.graph import neighbours

TSNE_ROWS = 5000  # fitted rows; the others are placed between them
CHUNK = 20_000
NEAREST = 5  # rows shown beside a picked one
NEAR_ROWS = 100_000  # beyond, their numbers alone would make a heavy page


def pca_map(z, seed=0):  # (n, d) -> (n, 2)
    """The two directions along which the embedding varies most."""
    z = np.asarray(z, dtype=np.float32)
    if z.shape[1] == 1:
        return np.column_stack([z[:, 0], np.zeros(len(z), np.float32)])
    if len(z) < 2:
        return np.zeros((len(z), 2), np.float32)
    rows = sample_rows(len(z), CHUNK, seed)
    return PCA(2, random_state=seed).fit(z[rows]).transform(z).astype(np.float32)


def tsne_installed():
    return find_spec("openTSNE") is not None


def tsne_map(z, seed=0, progress=None, rows=TSNE_ROWS):  # (n, d) -> (n, 2) or None
    """t-SNE of at most `rows` rows; the rest go to the mean of their nearest fitted rows.

    One thread, because openTSNE repeats itself bit for bit only with ``n_jobs=1``. Returns None
    when openTSNE is not installed, there are too few rows for a neighbourhood, or they lie on a
    line.
    """
    n = len(z)
    if not tsne_installed() or n < 30 or z.shape[1] < 2:
        return None
    from openTSNE import TSNE

    z = np.asarray(z, dtype=np.float32)
    if z.shape[1] > 50:  # neighbours in 50 directions are the same for the eye, and much cheaper
        seen = z[sample_rows(n, CHUNK, seed)]
        z = PCA(min(50, len(seen)), random_state=seed).fit(seen).transform(z)
    fitted = sample_rows(n, rows, seed)
    early, late, every, calls = 125, 300, 25, 0

    def tick(iteration, error, embedding):
        nonlocal calls
        calls += 1
        if progress:
            progress(min(1.0, calls * every / (early + late)))

    # duplicates have distance zero, which openTSNE's affinities do not like
    jitter = 1e-6 * (float(z.std()) or 1.0)
    noise = np.random.default_rng(seed).normal(0, jitter, (len(fitted), z.shape[1]))
    base = TSNE(
        perplexity=max(5, min(30, (len(fitted) - 1) // 3)),
        n_jobs=1,
        random_state=seed,
        early_exaggeration_iter=early,
        n_iter=late,
        neighbors="exact",  # quicker than an index for so few rows, and the same everywhere
        negative_gradient_method="fft" if len(fitted) > 3000 else "bh",
        callbacks=tick,
        callbacks_every_iters=every,
    ).fit(z[fitted] + noise)
    out = np.empty((n, 2), np.float32)
    out[fitted] = np.asarray(base, np.float32)
    rest = np.setdiff1d(np.arange(n), fitted, assume_unique=True)
    if len(rest):
        _place(out, z, fitted, rest, seed)
    return out


def _place(out, z, fitted, rest, seed):
    """Put each remaining row between its nearest fitted rows, near ones counting more."""
    index = NearestNeighbors(n_neighbors=5).fit(z[fitted])
    anchors = out[fitted]
    # a little spread, or thousands of rows would sit on a few lines between anchors
    spread = 0.004 * float(np.ptp(anchors, axis=0).max())
    rng = np.random.default_rng(seed + 1)
    for start in range(0, len(rest), CHUNK):
        part = rest[start : start + CHUNK]
        distance, near = index.kneighbors(z[part])
        weight = 1.0 / np.maximum(distance, 1e-9) ** 2
        weight /= weight.sum(1, keepdims=True)
        # the mean over two islands would lie in the sea between them: keep to the nearest island
        gap = np.linalg.norm(anchors[near] - anchors[near[:, :1]], axis=2)
        weight *= gap < 0.1 * float(np.ptp(anchors, axis=0).max())
        weight /= weight.sum(1, keepdims=True)
        place = (weight[:, :, None] * anchors[near]).sum(1)
        out[part] = place + rng.normal(0, spread, place.shape)


def nearest_rows(graph, z, seed=0, most=NEAR_ROWS):  # (n, d) -> (n, 5) uint32 or None
    """Rows next to each row: those of the method's own graph if it has one, else by embedding."""
    n, k = len(z), min(NEAREST, len(z) - 1)
    if k < 1 or n > most:
        return None
    fits = graph is not None and graph.shape[0] == n and graph.shape[1] >= k
    if fits and 0 <= graph.min() <= graph.max() < n:
        return graph[:, :k].astype(np.uint32)
    z = torch.from_numpy(np.array(z, dtype=np.float32).reshape(n, -1))
    return neighbours(z, k, np.random.default_rng(seed)).numpy().astype(np.uint32)


def sample_rows(n, most, seed=0):
    """Sorted indices of at most `most` of `n` rows, the same for the same seed."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def quantize(xy):  # (n, 2) float -> (n, 2) uint16
    """Coordinates on one 16-bit grid with the aspect ratio kept; y grows upwards in the input."""
    xy = np.asarray(xy, dtype=np.float64)
    if not len(xy):
        return np.zeros((0, 2), np.uint16)
    xy = np.nan_to_num(xy)
    low, high = xy.min(0), xy.max(0)
    span = float((high - low).max()) or 1.0
    centred = (xy - (low + high) / 2) / span + 0.5  # both axes inside 0..1, centred
    centred[:, 1] = 1 - centred[:, 1]
    return np.round(centred * 65535).astype(np.uint16)
