"""Random numbers as pure functions of (seed, keys): nothing global, nothing to restore."""

import hashlib

import numpy as np
import torch


def derive(seed: int, *keys: str | int) -> int:
    """A 63-bit seed that depends on every key, e.g. (seed, "train", epoch, "order")."""
    text = "/".join(str(part) for part in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def torch_rng(seed: int, *keys: str | int) -> torch.Generator:
    return torch.Generator().manual_seed(derive(seed, *keys))


def numpy_rng(seed: int, *keys: str | int) -> np.random.Generator:
    return np.random.default_rng(derive(seed, *keys))


def resolve_seed(random_state: int | np.random.RandomState | None) -> int:
    """The seed of a fit: as given, drawn from a RandomState, or fresh entropy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise TypeError(
        f"random_state={random_state!r}: must be a whole number, a numpy generator or None"
    )
