"""One process or several: the few collective operations that training needs.

A method never sees the number of processes. Gradients are summed once per optimiser step by the
engine itself, not by a wrapper around the network: the same rule then holds for several
optimisers, for gradient penalties (pytorch#47562) and for parameters that a loss leaves out.
"""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist

from .device import pick_device

BACKENDS = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl"}


class World:
    """A group of equal processes; with one process every operation is the identity."""

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    @property
    def leader(self) -> bool:
        return self.rank == 0

    def share(self, index: torch.Tensor) -> torch.Tensor:
        """This process's part of a batch (contiguous, sizes differ by one at most)."""
        if self.size == 1:
            return index
        return torch.tensor_split(index, self.size)[self.rank]

    def span(self, n: int) -> tuple[int, int]:
        """This process's part of n rows."""
        cuts = [n * r // self.size for r in range(self.size + 1)]
        return cuts[self.rank], cuts[self.rank + 1]

    def sum(self, t: torch.Tensor) -> torch.Tensor:
        """Sum over processes, no gradient."""
        if self.size > 1:
            t = t.detach().clone()
            dist.all_reduce(t)
        return t

    def sum_with_grad(self, t: torch.Tensor) -> torch.Tensor:
        if self.size == 1:
            return t
        from torch.distributed.nn.functional import all_reduce

        return all_reduce(t)

    def concat(self, part: torch.Tensor, n: int) -> torch.Tensor:
        """Join the `span` parts of all processes in row order: (part, ...) -> (n, ...)."""
        if self.size == 1:
            return part
        whole = part.new_zeros((n, *part.shape[1:]))
        start, stop = self.span(n)
        whole[start:stop] = part
        dist.all_reduce(whole)  # each row is non-zero in one process only, so sums are exact
        return whole

    def sum_gradients(self, parameters: list[torch.nn.Parameter]) -> None:
        """Add up the gradients of all processes, as one flat message.

        Parameters that the loss does not use (DEC's decoder) have none, on any process, and are
        not sent: the processes compute the same terms on rows of their own.
        """
        if self.size == 1:
            return
        used = [(p, p.grad) for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for _, gradient in used])
        dist.all_reduce(flat)
        for (p, _), part in zip(used, flat.split([p.numel() for p, _ in used])):
            p.grad = part.view_as(p)

    def broadcast(self, tensors: list[torch.Tensor]) -> None:
        """Everybody takes the leader's values (in place)."""
        if self.size > 1:
            for t in tensors:
                dist.broadcast(t, 0)

    def agree(self, flag: bool) -> bool:
        """The leader's answer to a question that depends on the clock."""
        if self.size == 1:
            return flag
        t = torch.tensor([float(flag)])
        dist.broadcast(t, 0)
        return bool(t.item())


_WORLD: ContextVar[Any] = ContextVar("world", default=None)


@contextmanager
def sharing(world: Any) -> Iterator[None]:
    """Full passes over the rows inside are made together by the processes of `world`.

    A pass (k-means, column statistics, labels) reads this process's span and adds up sums; all
    processes make the same passes in the same order.
    """
    token = _WORLD.set(world)
    try:
        yield
    finally:
        _WORLD.reset(token)


def current() -> Any:
    """The processes that share a full pass here and now; outside of a fit just this one."""
    return _WORLD.get() or World()


def all_gather(world: Any, t: torch.Tensor) -> torch.Tensor:  # (...) -> (size, ...)
    """The tensors of all processes, in the order of their ranks."""
    if world.size == 1:
        return t[None]
    whole = t.new_zeros((world.size, *t.shape))
    whole[world.rank] = t
    return world.sum(whole)


def join(devices: int = 1, device: Any = "auto") -> World:
    """The process group we run in: torchrun's, one launched by Fabric, or just ourselves.

    On GPUs tensors are exchanged by nccl; what is kept on the host (counters, labels) by gloo.
    """
    if dist.is_available() and dist.is_initialized():
        return World(dist.get_rank(), dist.get_world_size())
    if devices > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from lightning_fabric import Fabric

        devices = int(os.environ.get("LOCAL_WORLD_SIZE", devices))
        nodes = max(1, int(os.environ.get("WORLD_SIZE", devices)) // devices)
        kind = pick_device(device, devices).type
        fabric = Fabric(
            accelerator=kind, devices=devices, num_nodes=nodes, strategy=_strategy(kind)
        )
        fabric.launch()
        atexit.register(_leave)
        return World(fabric.global_rank, fabric.world_size)
    return World()


def _strategy(kind: str) -> Any:
    from lightning_fabric.strategies import DDPStrategy

    return DDPStrategy(process_group_backend=BACKENDS[kind])


def _leave() -> None:
    """Close the group that we opened: its threads must not outlive the interpreter.

    Without it a process that ends while gloo still has a thread at work is aborted, after its work
    is done, and torchrun takes the whole run for a failure.
    """
    if dist.is_initialized():
        dist.destroy_process_group()
