"""A last look at what a fit has made."""

from typing import Any

import numpy as np
import torch

from ..train.batch import TrainingError


def check_numbers(model: Any) -> None:
    """Refuse a result with NaN or infinity in it: labels made from it would mean nothing."""
    made = {**model.network_.state_dict(), **model.head_.tensors(("param", "state"))}
    for name, tensor in made.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"{name} of the fitted {type(model).__name__} holds NaN or infinity; scale the "
                "input (scale='auto'), or lower the learning rate"
            )


def close_ranks(model: Any) -> bool:
    """Number clusters that have rows before those that have none: labels without holes."""
    used = np.unique(model.labels_)
    if used[-1] < len(used):
        return False
    empty = np.setdiff1d(np.arange(model.n_clusters_), used)
    model._renumber(torch.from_numpy(np.concatenate([used, empty])))
    model._after_fit()
    return True
