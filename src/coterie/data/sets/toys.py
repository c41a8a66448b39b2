"""Small mixtures drawn from a seed."""

from __future__ import annotations

import numpy as np

# the eight centres as the paper prints them: a circle of radius sqrt(2)
BLOB_CENTERS = np.array(
    [(1.414, 0), (-1.414, 0), (0, 1.414), (0, -1.414), (1, 1), (-1, 1), (-1, -1), (1, -1)]
)
BLOB_STD = 0.014

# the paper gives only number, size and standardisation; places and spreads are ours
TOY_CENTERS = np.array([(-4.0, -3.0), (-3.5, 3.5), (0.0, 0.0), (3.5, -3.5), (4.0, 3.0)])
TOY_STDS = np.array([(1.0, 0.7), (0.8, 0.8), (0.7, 1.0), (1.0, 0.8), (0.8, 1.1)])

SYNTH_STD = 0.5
SYNTH_CENTER = 2.0
SYNTH_NOISE = 2.0


def blobs8(n: int = 8000, seed: int = 0):  # -> (n, 2) float32, (n,) int64
    """Eight round Gaussians on a circle, equally likely (CueGAN paper, section IV-B)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(8, size=n)
    X = BLOB_CENTERS[labels] + BLOB_STD * rng.standard_normal((n, 2))
    return X.astype(np.float32), labels


def cnet_toy(n: int = 2000, seed: int = 0):  # -> (n, 2) float32, (n,) int64
    """Five Gaussians in the plane, standardised (C-Net paper, Fig. 1)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=n)
    X = TOY_CENTERS[labels] + TOY_STDS[labels] * rng.standard_normal((n, 2))
    return ((X - X.mean(0)) / X.std(0)).astype(np.float32), labels


def synth(axes: int = 25, n: int = 12000, seed: int = 0):  # -> (n, 2 + axes), (n,)
    """Four equal Gaussian clusters in the first two axes, one Gaussian in each further axis.

    ACe/DeC paper, SYNTH-25 and Fig. 1a. The figure's numbers are not printed; here the clusters
    stand at (+-2, +-2) with deviation 0.5 and the other axes have deviation 2, so that each of
    them varies nearly as much as a cluster axis; single starts of k-means then reach the published
    NMI (0.92 +- 0.12, published 0.90 +- 0.16). The first two axes do not depend on `axes`.
    """
    rng, noise = np.random.default_rng(seed).spawn(2)
    labels = rng.permutation(np.arange(n) % 4)
    centers = SYNTH_CENTER * np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
    plane = centers[labels] + SYNTH_STD * rng.standard_normal((n, 2))
    # axis by axis, so that synth-5 is the beginning of synth-25
    rest = [SYNTH_NOISE * noise.standard_normal(n) for _ in range(axes)]
    return np.column_stack([plane, *rest]).astype(np.float32), labels
