"""Loss terms of the steps of an epoch, read together and not one by one."""

import math

import torch

from .plan import TrainingError

READ_EVERY = 64  # steps


class Tally:
    """Sums of named values over the steps of an epoch.

    To read a number means to wait until an accelerator has computed it. Values therefore stay
    where they are, as tensors, and are read in one transfer: every few steps, at the end of an
    epoch, and before anything that must not happen after a NaN (an update, a checkpoint).
    """

    def __init__(self, phase: str = "", sums: dict[str, float] | None = None):
        self.phase, self._sums = phase, sums or {}
        self._waiting: list[tuple[str, torch.Tensor, float, tuple[int, int] | None]] = []
        self._steps = 0

    def add(
        self,
        values: dict[str, torch.Tensor],
        weight: float,
        turns: int = 1,
        where: tuple[int, int] | None = None,
    ) -> None:
        """Count values by weight / turns; those of a loss say `where`, in epoch and step."""
        for name, value in values.items():
            self._waiting.append((name, value.detach(), weight / turns, where))

    def after_step(self) -> None:
        self._steps += 1
        if self._steps >= READ_EVERY:
            self.read()

    def read(self) -> dict[str, float]:
        """The sums so far; a term of a loss that is no number is an error."""
        waiting, self._waiting, self._steps = self._waiting, [], 0
        numbers = torch.stack([value for _, value, _, _ in waiting]).tolist() if waiting else []
        for (name, _, factor, where), number in zip(waiting, numbers):
            if where and not math.isfinite(number):
                epoch, step = where
                raise TrainingError(
                    f"the loss term {name!r} became {number} in phase {self.phase!r}, epoch "
                    f"{epoch}, step {step}; lower the learning rate or its weight"
                )
            self._sums[name] = self._sums.get(name, 0.0) + number * factor
        return self._sums
