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
from .shared_sum import SharedSum

BACKENDS = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl"}


class World:
    """A group of equal processes; with one process every operation is the identity."""

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size
        self._shared: SharedSum | None = None
        self._asked = 0  # numbers that shared memory was asked for

    @property
    def leader(self) -> bool:
        return self.rank == 0

    def share(self, index: torch.Tensor) -> torch.Tensor:
        """This process's part of a batch (contiguous, sizes differ by one at most).

        Of fewer rows than processes everybody takes all.
        """
        if self.size == 1 or len(index) < self.size:
            return index
        return torch.tensor_split(index, self.size)[self.rank]

    def span(self, n: int, rank: int | None = None) -> tuple[int, int]:
        """This process's part of n rows, or that of another one."""
        r = self.rank if rank is None else rank
        return n * r // self.size, n * (r + 1) // self.size

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

    def to_leader(self, part: torch.Tensor, n: int) -> torch.Tensor:
        """The `span` parts of all processes in row order, for the leader only."""
        if self.size == 1:
            return part
        if not self.leader:
            dist.send(part.contiguous(), 0)
            return part
        whole = part.new_empty((n, *part.shape[1:]))
        whole[slice(*self.span(n))] = part
        for rank in range(1, self.size):
            dist.recv(whole[slice(*self.span(n, rank))], rank)
        return whole

    def sum_gradients(self, parameters: list[torch.nn.Parameter], change: bool = False) -> None:
        """Add up the gradients of all processes: in shared memory on one machine, else as one flat
        message. With `change` the caller may write to the sums, which else may be those of all.

        Parameters that the loss does not use (DEC's decoder) have none, on any process, and are
        not sent: the processes compute the same terms on rows of their own.
        """
        if self.size == 1:
            return
        used = [(p, p.grad) for p in parameters if p.grad is not None]
        flat = self._sum_flat([gradient for _, gradient in used])
        flat = flat.clone() if change else flat
        for (p, _), part in zip(used, flat.split([p.numel() for p, _ in used])):
            p.grad = part.view_as(p)

    def _sum_flat(self, parts: list[torch.Tensor]) -> torch.Tensor:
        numel = sum(part.numel() for part in parts)
        if all(p.device.type == "cpu" and p.dtype == torch.float32 for p in parts):
            if numel > self._asked:
                self._shared, self._asked = SharedSum.open(self, numel), numel
            if self._shared is not None:
                return self._shared(parts)
        flat = torch.cat([part.reshape(-1) for part in parts])
        dist.all_reduce(flat)
        return flat

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


def rows_at(world: Any, part: torch.Tensor, index: torch.Tensor, n: int) -> torch.Tensor:
    """Rows at any positions (m,) of n rows, of which each process holds its span."""
    if world.size == 1:
        return part[index]
    start, stop = world.span(n)
    mine = (index >= start) & (index < stop)
    found = part.new_zeros((len(index), *part.shape[1:]))
    found[mine] = part[index[mine] - start]
    return world.sum(found)  # each row is non-zero in one process only, so sums are exact


def sum_parts(t: torch.Tensor) -> torch.Tensor:
    """A sum over rows, of which each process that shares this pass has added up its own."""
    return current().sum(t)


def row_count(part: torch.Tensor) -> int:
    """Rows of all processes."""
    return int(sum_parts(torch.tensor(len(part))))


def row_mean(part: torch.Tensor) -> torch.Tensor:  # (part, ...) -> (...)
    """Mean over the rows of all processes."""
    if current().size == 1:
        return part.mean(0)
    return sum_parts(part.sum(0)) / row_count(part)


def row_variance(part: torch.Tensor) -> torch.Tensor:  # (part, ...) -> (...)
    """Variance over the rows of all processes (unbiased)."""
    if current().size == 1:
        return part.var(0)
    return sum_parts((part - row_mean(part)).square().sum(0)) / (row_count(part) - 1)


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
