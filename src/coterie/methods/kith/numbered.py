"""Numbers of clusters other than the one that was asked for: "auto", and the merge tree."""

import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...estimator.base import Clusterer
from ...estimator.params import param
from ...runtime.device import to_numpy
from ...train.rows import Rows
from ...train.settings import Look
from .number import Number, NumberLook
from .tree import edges_between, grow, labels_at, over_clusters

FOUND = ("n_clusters_interval_", "n_clusters_runner_up_", "structure_")  # only for "auto"


class Numbered(Clusterer):
    """A clusterer that finds the number of clusters, and has labels for every other one too.

    A fit leaves a head with `over`, the over-head's output of each row, and `graph`.
    """

    attributes: ClassVar[dict[str, str]] = {
        "n_clusters_": "number of clusters: as given, or as found",
        "n_clusters_interval_": 'with n_clusters="auto": fewest and most that are plausible',
        "n_clusters_runner_up_": 'with n_clusters="auto": the best other number, or None',
        "structure_": 'with n_clusters="auto": False where the rows have no clusters',
        "tree_": "merge tree of the over-clusters, as scipy's linkage has it",
    }

    # pyrefly: ignore  (only Kith finds the number by itself)
    n_clusters: int | str = param(
        8,
        "number of clusters, or auto: as many as the density of the rows has hills; 1, with a "
        "warning, where there is no structure",
        ge=1,
        kw_only=False,
        rule=lambda s: s.number,
    )

    def _look(self, rows: Rows) -> Look:
        self._found: tuple[Number, float] | None = None  # and the seconds that it took
        return NumberLook(self, rows)

    def _after_labels(self, rows: Rows) -> None:
        """Grow the tree, and say what was found for n_clusters="auto"."""
        head: Any = self.head_
        cells, of = over_clusters(self.labels_, to_numpy(head.over))
        tree = grow(edges_between(cells, to_numpy(head.graph)), of)
        head.add_state("tree", torch.from_numpy(tree))
        head.add_state("cells", torch.from_numpy(cells.astype(np.int32)))
        made = self._found
        del self._found
        if made is None:
            return
        found, took = made
        self.seconds_ = {"number": took, **self.seconds_}
        head.add_state("number", torch.tensor([found.k, found.low, found.high, found.runner_up]))
        self._tell_number()
        self.notes_.insert(0, f"found: {found.words()}")
        if not found.structure:
            warnings.warn(
                f"{found.words()}; all rows are in one cluster: give n_clusters, or look at other "
                "features of the rows",
                stacklevel=4,
            )

    def _tell_number(self) -> None:
        """Attributes of n_clusters="auto", from the head: also after a load."""
        if "number" not in self.head_:
            for name in FOUND:  # of an earlier fit
                self.__dict__.pop(name, None)
            return
        found = Number(*self.head_.number.tolist())
        told = ((found.low, found.high), found.runner_up or None, found.structure)
        for name, value in zip(FOUND, told):
            setattr(self, name, value)

    @property
    def tree_(self) -> np.ndarray:  # (over-clusters - 1, 4)
        check_is_fitted(self, "head_")
        return to_numpy(self.head_.tree)

    def labels_at(self, k: int) -> np.ndarray:  # (n,)
        """Labels of the training rows at k clusters, by the merge tree and without another fit.

        At `n_clusters_` they are `labels_`; with fewer, clusters are joined, with more, divided.
        """
        tree = self.tree_
        if k == self.n_clusters_:  # of which some may have no rows
            return self.labels_.copy()
        return labels_at(tree, to_numpy(self.head_.cells), self.labels_, k)
