"""A last look at what a fit has made."""

from typing import Any

import torch

from ..train.plan import TrainingError


def check_numbers(model: Any) -> None:
    """Refuse a result with NaN or infinity in it: labels made from it would mean nothing."""
    made = {**model.network_.state_dict(), **model.head_.tensors(("param", "state"))}
    for name, tensor in made.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"{name} of the fitted {type(model).__name__} holds NaN or infinity; scale the "
                "input (scale='auto'), or lower the learning rate"
            )
