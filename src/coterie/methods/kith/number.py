"""n_clusters="auto": how many clusters the rows have, with an interval and the runner-up.

The number of clusters is the number of hills in the density of the rows (`math.hills`) that chance
would not make. Chance makes more and higher ones the more rows there are, so that a hill counts if
its prominence is above CHANCE * sqrt(2 log(n / K)) deviations, as the largest of n / K normal
variables would grow. Hills with less than one row in a hundred do not count.

Features of images have too many directions for a density. There, and where many columns show a
single hill, the embedding of a small network of over-heads is asked: `Kith` itself, with many
outputs and without a number. Rows and network are drawn several times, and the median counts.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ...data.chunks import pick
from ...estimator.validate import check_rows
from ...math import features as kinds
from ...math.hills import Hills, find_hills
from ...runtime.processes import all_gather, current
from ...runtime.progress import Progress
from ...runtime.rng import derive, numpy_rng, resolve_seed
from ...train.rows import Rows
from ...train.scaling import fit_scaling
from ...train.settings import Look
from .row_features import find_kind, fit_features, sparse_rows

ROWS = 4000  # that are looked at
LOOKS = 5  # at other rows, with other networks; their median counts
CHANCE = 1.4
SURE, BARELY = 2.0, 0.6  # of that threshold: what the ends of the interval count
SHARE = 0.01  # of the rows in a hill, at least
MANY = 5  # intrinsic dimensions from which on one hill may be a want of rows
OUTPUTS, ROWS_EACH = 60, 10  # of the network's over-heads; rows for each output, at least


@dataclass(frozen=True)
class Number:
    """The number of clusters, the interval, and the best other number (0: there is none)."""

    k: int
    low: int
    high: int
    runner_up: int

    @property
    def structure(self) -> bool:
        return self.k > 1

    def words(self) -> str:
        """ "7 clusters, 5 to 9; next best 5"."""
        if not self.structure:
            other = f"; next best {self.runner_up}" if self.runner_up else ""
            return f"no structure: the density of the rows has a single hill{other}"
        spread = f", {self.low} to {self.high}" if self.high > self.low else ""
        other = f"; next best {self.runner_up}" if self.runner_up else ""
        return f"{self.k} clusters{spread}{other}"


def number_from(hills: Hills) -> Number:
    """Count hills above chance; the runner-up is the number with the widest gap but one.

    The gap of a number k is the ratio of the k-th prominence to the next, or to the threshold's
    lower end where there is no next.
    """
    chance = CHANCE * math.sqrt(2 * math.log(max(2, hills.rows / hills.voters)))
    counts = [hills.count(part * chance, SHARE) for part in (1, SURE, BARELY)]
    k, low, high = counts[0], min(counts), max(counts)
    kept = hills.prominence[hills.size >= max(5, SHARE * hills.rows)]
    floor = BARELY * chance
    heights = np.append(np.maximum(kept, floor), floor)
    others = [j for j in range(low, high + 1) if j != k and j < len(heights)]
    gap = {j: heights[j - 1] / heights[j] for j in others}
    return Number(k, low, high, max(gap, key=gap.__getitem__) if gap else 0)


def find_number(kith: Any, rows: Rows) -> Number:
    """The number of clusters of the rows that an estimator is fitted on.

    Where chance has a part in it, in the choice of rows or in the network, several looks are taken.
    """
    kind = find_kind(rows, kith.kind)
    features = None if kind == "image" else row_features(rows, kind, kith.seed_)
    found, drawn = _look_once(kith, rows, kind, features, kith.seed_)
    if not drawn:
        return found
    answers = [found]
    with Progress(kith.verbose) as progress:
        progress.phase("number of clusters", total_steps=LOOKS)
        for look in range(1, LOOKS):
            progress.step(look)
            seed = derive(kith.seed_, "number", look)
            answers.append(_look_once(kith, rows, kind, features, seed)[0])
    return middle(answers)


def middle(found: list[Number]) -> Number:
    """The median of several answers; its interval holds the others."""
    numbers = sorted(found, key=lambda one: one.k)
    k = numbers[len(numbers) // 2].k
    first = next(one for one in found if one.k == k)
    others = [one.k for one in found]
    low, high = min(first.low, *others), max(first.high, *others)
    return Number(k, low, high, first.runner_up)


def _look_once(kith: Any, rows: Rows, kind: str, features: Any, seed: int) -> tuple[Number, bool]:
    """What at most ROWS rows show, and whether another seed might show something else."""
    picked, drawn = np.arange(rows.n), rows.n > ROWS
    if drawn:
        picked = np.sort(numpy_rng(seed, "number").choice(rows.n, ROWS, replace=False))
    if features is not None:
        hills = find_hills(features(picked))
        found = number_from(hills)
        if found.structure or hills.dimension <= MANY:
            return found, drawn
    return number_from(find_hills(embedding(kith, rows, picked, kind, seed))), True


def number_of(kith: Any, X: Any) -> Number:
    """The number of clusters that a fit of Kith("auto") on X would find."""
    source = check_rows(kith, X, reset=True)
    kith.seed_ = resolve_seed(kith.random_state)
    return find_number(kith, Rows(source, fit_scaling(source, kith.scale)))


def row_features(rows: Rows, kind: str, seed: int) -> Callable[[np.ndarray], torch.Tensor]:
    """A function that gives Kith's features of some rows: (m,) positions -> (m, d)."""
    features = kinds.Features(kind, rows.shape).to(rows.device)
    fit_features(features, rows, seed)
    csr = sparse_rows(rows, kind)

    @torch.no_grad()
    def of(picked: np.ndarray) -> torch.Tensor:
        return features(rows.take(torch.from_numpy(picked)) if csr is None else csr[picked]).cpu()

    return of


def embedding(kith: Any, rows: Rows, picked: np.ndarray, kind: str, seed: int) -> torch.Tensor:
    """What a network of over-heads makes of some rows: (m, e)."""
    probe = type(kith)(
        2,
        random_state=seed,
        scale=kith.scale,
        device=kith.device,
        kind=kind,
        sizes="free",
        direct_heads=1,
        outputs=max(4, min(OUTPUTS, len(picked) // ROWS_EACH)),
        refine_epochs=0,
        epochs=kith.epochs,
        hidden=kith.hidden,
        embedding_dim=kith.embedding_dim,
    )
    # two clusters to begin at would be an answer of ours
    probe.random_start = (kind,)
    some = pick(rows.source, picked)
    with warnings.catch_warnings():  # about two clusters, which nobody has asked for
        warnings.simplefilter("ignore")
        return torch.from_numpy(probe.fit(some).transform(some))


class NumberLook(Look):
    """What the rows tell, and for n_clusters="auto" how many clusters they have."""

    def __init__(self, kith: Any, rows: Rows):
        super().__init__(rows)
        self._kith = kith

    @cached_property
    def number(self) -> int:
        begin = time.perf_counter()
        found = find_number(self._kith, self._rows)
        told = torch.tensor([found.k, found.low, found.high, found.runner_up])
        if current().size > 1:  # last digits may differ: all take the leader's
            told = all_gather(current(), told)[0]
        found = Number(*told.tolist())
        self._kith._found = found, time.perf_counter() - begin
        return found.k
