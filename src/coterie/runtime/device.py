"""Where tensors live: an accelerator where there is one, else the CPU.

Random numbers are drawn on the CPU and moved, so that they do not depend on the device. Small
decompositions (eigenvectors of a covariance) and whatever is numpy, scipy or scikit-learn stay on
the host.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

CPU = torch.device("cpu")
NARROW = {"mps"}  # kinds of devices without float64
ROOM = 0.5  # share of the free memory of a device that rows may take; the rest is for the work


def pick_device(asked: Any, processes: int = 1) -> torch.device:
    """The device that a user asks for: "auto", a name such as "cuda:1", or a torch.device.

    "auto" is the accelerator if there is one for each of the `processes` of this machine. Each of
    them takes its own, unless a number was asked for.
    """
    found, count = _accelerator()
    if processes > 1:  # those of other machines have devices of their own
        processes = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
    if isinstance(asked, str) and asked == "auto":
        if found is None or count < processes or (processes > 1 and found != "cuda"):
            return CPU
        return torch.device(found, _local_rank() if processes > 1 else 0)
    try:
        device = torch.device(asked)
    except (RuntimeError, TypeError):
        raise ValueError(f"device={asked!r} is no device; {_way_out(found, count)}") from None
    if device.type == "cpu":
        return CPU
    if device.type != found or (device.index or 0) >= count:
        raise ValueError(f"device={str(asked)!r} is not available; {_way_out(found, count)}")
    if processes > 1 and device.type != "cuda":
        raise ValueError(
            f"devices={processes} processes share the work on CPUs and on CUDA devices, not on "
            f"{device.type!r}; use devices=1 or device='cpu'"
        )
    if processes > 1 and device.index is None:
        if count < processes:
            raise ValueError(
                f"devices={processes} processes, but there are {count} {device.type} devices; "
                f"use devices={count} or device='cpu'"
            )
        return torch.device(device.type, _local_rank())
    return torch.device(device.type, device.index or 0)


def _accelerator() -> tuple[str | None, int]:
    """Kind and number of the accelerators of this machine."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is None:
        return None, 0
    kind = found.type
    return kind, torch.get_device_module(kind).device_count()


def _way_out(found: str | None, count: int) -> str:
    names = ["'cpu'"] + [repr(f"{found}:{i}") for i in range(count)]
    return f"use 'auto', or what this machine has: {', '.join(names)}"


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def describe(device: torch.device) -> str:
    """A device in words: "cuda:0 (NVIDIA A100)"."""
    name = getattr(torch.get_device_module(device), "get_device_name", None)
    return f"{device} ({name(device)})" if device.type == "cuda" and name else str(device)


def has_room(nbytes: int, device: torch.device) -> bool:
    """Do so many bytes fit into the device's memory, with as much left for the work on them?"""
    if device.type == "cpu":
        return True
    if device.type == "mps":  # shares the memory of the machine
        return nbytes <= ROOM * torch.mps.recommended_max_memory()
    return nbytes <= ROOM * torch.get_device_module(device).mem_get_info(device)[0]


def place(module: torch.nn.Module, device: torch.device) -> None:
    """Move a module; what a device has no type for stays on the host."""
    stays = torch.float64 if device.type in NARROW else None
    module._apply(lambda t: t if t.dtype == stays else t.to(device))


def to_numpy(t: torch.Tensor) -> np.ndarray:
    return t.detach().cpu().numpy()


class Fetched:
    """Tensors of a device as arrays of the host, fetched anew only when they have changed."""

    def __init__(self) -> None:
        self._known: list = []
        self._arrays: list[np.ndarray] = []

    def __call__(self, *tensors: torch.Tensor) -> list[np.ndarray]:
        known = zip(tensors, self._known)
        if not self._known or any(t is not k or t._version != v for t, (k, v) in known):
            self._known = [(t, t._version) for t in tensors]
            self._arrays = [to_numpy(t) for t in tensors]
        return self._arrays


def on_host(function: Callable, *tensors: torch.Tensor) -> Any:
    """`function(*tensors)` on the CPU; tensors in the result go back to where these came from."""
    device = tensors[0].device
    made = function(*(t.cpu() for t in tensors))
    return tree_map(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, made)


def wide_dtype(device: torch.device) -> torch.dtype:
    """The type of long sums: float64 where the device has it."""
    return torch.float32 if device.type in NARROW else torch.float64
