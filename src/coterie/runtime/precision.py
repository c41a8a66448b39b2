"""What the processor multiplies quickly."""

import torch

QUICK = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # questions to torch.cpu


def quick_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 itself; others would imitate it, slowly."""
    asked = [getattr(torch.cpu, name, None) for name in QUICK]  # absent from some versions
    return any(ask() for ask in asked if ask is not None)
