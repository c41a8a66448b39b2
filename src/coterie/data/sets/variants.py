"""Data sets made of others: USPS with other class sizes, digits with an artefact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ARTIFACTS = (0.1, 0.5, 0.9)
# supplement of the CueGAN paper, its largest variant; the others cap these sizes
_USPS_SIZES = (1500, 1200, 900, 800, 800, 700, 800, 700, 700, 800)
# 1500 * 15**(-i / 9), given to the digits in the order of their frequency in USPS
_USPS_FALLING = (1500, 1110, 822, 333, 608, 135, 450, 183, 100, 247)


@dataclass(frozen=True)
class Variant:
    """The first `sizes[c]` rows of each class c, in the original order."""

    sizes: tuple[int, ...]
    about: str

    def rows(self, labels: np.ndarray) -> np.ndarray:
        kept = [np.flatnonzero(labels == c)[:size] for c, size in enumerate(self.sizes)]
        return np.sort(np.concatenate(kept))


def uniformity(sizes) -> float:
    """Return the paper's uniformity index H(p) / ln K; 1 means equal classes."""
    share = np.asarray(sizes, np.float64) / np.sum(sizes)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum() / np.log(len(sizes)))


def _capped(cap: int) -> Variant:
    sizes = tuple(min(size, cap) for size in _USPS_SIZES)
    return Variant(sizes, f"usps, classes of at most {cap}; uniformity {uniformity(sizes):.3f}")


VARIANTS = {f"usps{cap}": _capped(cap) for cap in (700, 800, 900, 1200, 1500)}
VARIANTS["usps_15to1"] = Variant(
    _USPS_FALLING,
    "usps, classes of 1500 falling geometrically to 100; "
    f"uniformity {uniformity(_USPS_FALLING):.3f}",
)


def with_artifact(X: np.ndarray, seed: int = 0):  # (n, h, w) in 0..1 -> same, (n,) int64
    """Set the first pixel to 0.1, 0.5 or 0.9 at random; the choice is the class."""
    labels = np.random.default_rng(seed).integers(len(ARTIFACTS), size=len(X))
    X = np.array(X, np.float32)
    X[:, 0, 0] = np.array(ARTIFACTS, np.float32)[labels]
    return X, labels
