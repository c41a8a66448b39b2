"""The head: everything a method adds to the network, as named tensors of four kinds."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

Tensors = dict[str, torch.Tensor]


KINDS = ("param", "state", "rows", "whole")


class Head(nn.Module):
    """Named tensors, so that any head can be saved, resumed and rebuilt without method code.

    Parameters
    ----------
    params : trained by the optimiser (centres, assignment weights)
    state : kept with the model, not trained (counts, a rotation, a temperature)
    rows : one entry per training row, needed only while training (targets, labels); each process
        keeps those of its own span of the rows
    whole : the same, but all of them on every process, for those who look up other rows (a graph)
    """

    def __init__(
        self,
        params: Tensors | None = None,
        state: Tensors | None = None,
        rows: Tensors | None = None,
        whole: Tensors | None = None,
    ):
        super().__init__()
        # by name: a file gives them back in its own order, and an optimiser counts parameters
        given = [dict(sorted((t or {}).items())) for t in (params, state, rows, whole)]
        self.kinds = {kind: list(tensors) for kind, tensors in zip(KINDS, given)}
        for name, tensor in given[0].items():
            self.register_parameter(name, nn.Parameter(_own(tensor)))
        for name, tensor in {**given[1], **given[2], **given[3]}.items():
            self.register_buffer(name, _own(tensor))

    if TYPE_CHECKING:  # a name may be any of the tensors

        def __getattr__(self, name: str) -> Any: ...

    def tensors(self, kinds: tuple[str, ...] = KINDS) -> Tensors:
        """Flat view for files: "param.centers", "state.counts", "rows.target"."""
        return {f"{kind}.{n}": getattr(self, n).data for kind in kinds for n in self.kinds[kind]}

    @classmethod
    def from_tensors(cls, tensors: Tensors) -> "Head":
        kinds: dict[str, Tensors] = {kind: {} for kind in KINDS}
        for full, tensor in tensors.items():
            kind, name = full.split(".", 1)
            kinds[kind][name] = tensor
        return cls(*kinds.values())

    def add_state(self, name: str, tensor: torch.Tensor) -> None:
        """One more tensor to keep with the model."""
        self.kinds["state"] = sorted([*self.kinds["state"], name])
        self.register_buffer(name, _own(tensor))

    def drop_rows(self) -> None:
        """Training is over."""
        for name in self.kinds["rows"]:
            delattr(self, name)
        self.kinds["rows"] = []

    def on_host(self) -> "Head":
        """A copy on the CPU, or the head itself where it is there already."""
        if all(t.device.type == "cpu" for t in self.tensors().values()):
            return self
        return Head.from_tensors({name: t.cpu() for name, t in self.tensors().items()})

    def __contains__(self, name: str) -> bool:
        return any(name in names for names in self.kinds.values())


def _own(tensor: torch.Tensor) -> torch.Tensor:
    # contiguous, as a file would give it back: another layout means other rounding in products
    return tensor.detach().clone(memory_format=torch.contiguous_format)
