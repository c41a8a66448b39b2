"""A linear layer on sparse rows: the product touches the stored values only."""

from typing import Any

import torch


class _SparseProduct(torch.autograd.Function):
    """x W' with its gradient for W; x is a scipy CSR matrix and has none.

    scipy and not torch's own CSR tensors: as fast here, and those still warn that they are a beta.
    """

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, x: Any) -> torch.Tensor:  # (h, d), (b, d) -> (b, h)
        ctx.x = x
        return torch.from_numpy(x @ weight.detach().T.contiguous().numpy())

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        # laid out as the weight is: fused Adam walks through both side by side
        return torch.from_numpy(ctx.x.T @ grads[0].contiguous().numpy()).T.contiguous(), None


def linear(x: Any, weight: Any, bias: Any) -> torch.Tensor:  # CSR (b, d) -> (b, h)
    """What a linear layer makes of the rows of a scipy CSR matrix."""
    return _SparseProduct.apply(weight, x) + bias
