"""What a fit of Kith tells of its candidates, from the tensors of its head: also after a load."""

from typing import ClassVar

import numpy as np
import torch

from ...runtime.device import to_numpy
from .numbered import Numbered
from .stability import Stability
from .words import NAMES


class Explained(Numbered):
    """Candidates, choice and stability as attributes."""

    attributes: ClassVar[dict[str, str]] = {
        "chosen_": "name of the candidate that was chosen",
        "second_": "name of the runner-up",
        "candidates_": "labels of every candidate, by name",
        "agreements_": "adjusted Rand index of every candidate with the chosen one",
        "agreement_": "that of the runner-up",
        "cuts_": "share of the edges of the graph between clusters, for every candidate",
        "stability_": "`reappears`: refits in which each cluster comes back; `refits`, `overall`",
        "neighbours_": "graph of nearest neighbours: row numbers, nearest first",
        "kind_": "kind of data that decided the features",
    }

    def _renumber(self, order: torch.Tensor) -> None:
        super()._renumber(order)
        self._after_fit()  # what it says of clusters follows their numbers

    def _after_fit(self) -> None:
        there = [name for name in NAMES if f"{name}_labels" in self.head_]
        self.candidates_ = {
            name: to_numpy(getattr(self.head_, f"{name}_labels")).astype(np.int64) for name in there
        }
        self.cuts_ = dict(zip(there, self.head_.cuts.tolist()))
        self.agreement_ = float(self.head_.agreement)
        self.chosen_, self.second_ = (NAMES[i] for i in self.head_.chosen.tolist())
        if "overlaps" in self.head_:  # not in models of earlier versions
            self.stability_ = Stability.of(self.head_.rand.cpu(), self.head_.overlaps.cpu())
            self.agreements_ = dict(zip(there, self.head_.alike.tolist()))
        self._tell_number()
        if "graph" in self.head_:  # a loaded model has left its rows behind
            self.neighbours_ = to_numpy(self.head_.graph).astype(np.int32)
