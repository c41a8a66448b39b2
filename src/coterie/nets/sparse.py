"""A linear layer on sparse rows: the product touches the stored values only."""

from typing import Any

import numpy as np
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


def linear(x: Any, layer: Any) -> torch.Tensor:  # CSR (b, d) -> (b, h)
    """What a linear layer makes of the rows of a scipy CSR matrix.

    An accelerator multiplies filled rows faster than it could fetch the weights to the host.
    """
    if layer.weight.device.type != "cpu":
        return layer(dense(x, layer.weight.device))
    return _SparseProduct.apply(layer.weight, x) + layer.bias


def dense(x: Any, device: torch.device) -> torch.Tensor:  # CSR (b, d) -> (b, d) float32
    """Sparse rows, filled with zeros on the device: only what is stored is sent there."""
    x = x.tocsr()
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    place = torch.from_numpy(row * x.shape[1] + x.indices).to(device)
    values = torch.from_numpy(x.data.astype(np.float32)).to(device)
    filled = torch.zeros(x.shape[0] * x.shape[1], device=device)
    return filled.index_put_((place,), values).view(*x.shape)
