"""Optimisers, learning-rate schedules and their state as plain tensors."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..storage.tensors import check_fit


@dataclass
class Optim:
    """How a group of parameters is trained."""

    kind: str = "adam"  # "adam" | "adamw" | "sgd"
    lr: float = 1e-3
    schedule: str = "constant"  # "constant" | "polynomial" | "onecycle"
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    momentum: float = 0.9
    weight_decay: float = 0.0
    clip: float | None = None  # largest norm of the gradient
    horizon: float | None = None  # epochs that the schedule takes; None: the whole phase
    encoder_lr: float | None = None  # of a pretrained encoder that is trained along

    def build(
        self, parameters: list[nn.Parameter], encoder: nn.Module | None = None
    ) -> torch.optim.Optimizer:
        """The optimiser; parameters of a pretrained encoder among them go at a rate of their own,
        `encoder_lr`, which follows the schedule of the others."""
        trained: Any = parameters
        if encoder is not None and self.encoder_lr is not None:
            own = {id(p) for p in encoder.parameters()}
            groups = [[p for p in parameters if (id(p) in own) == it] for it in (False, True)]
            shares = (1.0, self.encoder_lr / self.lr)
            trained = [
                {"params": group, "lr": self.lr * share, "share": share}
                for group, share in zip(groups, shares)
                if group
            ]
        if self.kind == "sgd":
            return torch.optim.SGD(
                trained, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
            )
        kind = torch.optim.AdamW if self.kind == "adamw" else torch.optim.Adam
        return kind(
            trained,
            lr=self.lr,
            betas=self.betas,
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=True,
        )

    def rate(self, done: float) -> float:
        """Learning rate after a share `done` of the schedule; `lr` is the peak of one-cycle."""
        if self.schedule == "polynomial":  # C-Net: down to a tenth, power 0.4
            return self.lr * (0.1 + 0.9 * (1 - min(done, 1.0)) ** 0.4)
        if self.schedule == "onecycle":  # up over the first 30 %, cosine down to almost nothing
            if done < 0.3:
                return self.lr * (0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * done / 0.3)))
            return self.lr * (1e-3 + 0.5 * (1 + math.cos(math.pi * min(1.0, (done - 0.3) / 0.7))))
        return self.lr


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Moments and step counts: "3.exp_avg" belongs to the fourth parameter."""
    state = optimizer.state_dict()["state"]
    return {
        f"{i}.{name}": value
        for i, entries in state.items()
        for name, value in entries.items()
        if isinstance(value, torch.Tensor)
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], where: str = "the state"
) -> None:
    """Give back what `optimizer_tensors` took; tensors that fit no parameter are refused."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    sgd = isinstance(optimizer, torch.optim.SGD)
    like = {"momentum_buffer"} if sgd else {"exp_avg", "exp_avg_sq"}
    state: dict[int, dict] = {}
    for full, value in tensors.items():
        i, name = full.split(".", 1)
        state.setdefault(int(i), {})[name] = value
    for i, entries in state.items():
        wanted = dict.fromkeys(like, params[i])
        if not sgd:
            wanted["step"] = torch.zeros(())
        check_fit(entries, wanted, f"{where}, parameter {i} of an optimiser")
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)
