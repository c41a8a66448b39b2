"""Losses of CueGAN as arithmetic, the schedule of eta, and the sign of too many noise variables."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from coterie.runtime.device import wide_dtype

SMALLEST_SHARE = 0.1  # of an equal share: a learned prior never starves a cluster


def critic_terms(real, fake, penalty, weight):  # critic values of real and generated rows -> L_D
    """Wasserstein loss with gradient penalty; minus "critic" estimates the Earth Mover distance."""
    return {"critic": fake.mean() - real.mean(), "penalty": weight * penalty}


def generator_terms(fake, logits, clusters, eta):  # critic values, (b, k) logits, (b,) ids -> L_G
    """Look real, and let the classifier tell which cluster was asked for (eq. 7)."""
    return {"reality": -fake.mean(), "entropy": eta * cross_entropy(logits, clusters)}


def staircase(eta, growth, every, step):
    """Eq. 8 as the code runs it; the printed assignment would multiply again in every step."""
    return eta * growth ** (step // every)


def ramp(share, wait):
    """Factor on eta after a share of the training: 0 while it waits, then as long to reach 1.

    A generator that cannot draw yet binds the id to whatever it happens to vary. One that draws
    well can lower the entropy for free only along a feature that the data have in k clear values.
    """
    return min(max(share / wait - 1, 0.0), 1.0) if wait else 1.0


def diverged(curve):
    """Did the Earth Mover distance fall below half of its first height and climb back half way?

    Parameters
    ----------
    curve : one estimate per epoch
    """
    if len(curve) < 8:
        return False
    width = max(2, len(curve) // 20)
    smooth = np.convolve(curve, np.ones(width) / width, "valid")
    peak = int(smooth[: len(smooth) // 2].argmax())
    high, low = smooth[peak], smooth[peak:].min()
    return bool(low < 0.5 * high and smooth[-1] - low > 0.5 * (high - low))


def prior_shares(prior, k):  # "uniform", "learned" or k positive numbers -> (k,) that sum to 1
    """Shares of the clusters at the start of training; a learned prior starts with equal ones."""
    if isinstance(prior, str):
        if prior not in ("uniform", "learned"):
            raise ValueError(f"prior={prior!r}: choose 'uniform', 'learned', or give the shares")
        prior = (1.0,) * k
    if len(prior) != k:
        raise ValueError(
            f"prior={prior} has {len(prior)} shares but n_clusters is {k}; "
            "give one positive number for each cluster"
        )
    if min(prior) <= 0:
        raise ValueError(
            f"prior={prior} has the share {min(prior)}; each of the {k} clusters needs a positive "
            "one, or lower n_clusters"
        )
    shares = torch.tensor(prior, dtype=torch.float32)
    return shares / shares.sum()


def draw_clusters(prior, b, generator):  # (k,) -> (b,) int64, on the device of the prior
    """b clusters by their shares, from random numbers of the host.

    What `torch.multinomial` draws on a CPU, and so on every device: the first cluster whose
    cumulated share reaches a uniform number.
    """
    drawn = torch.rand(b, dtype=torch.float64, generator=generator)
    upto = prior.cumsum(0)
    upto = (upto / upto[-1]).to(wide_dtype(prior.device))
    return torch.searchsorted(upto, drawn.to(upto)).clamp_max(len(prior) - 1)


@torch.no_grad()
def learn_prior_(prior, shares, rate):  # (k,), (k,) mean assignment of real rows; in place
    """Follow the shares, as EM does in its M-step."""
    prior.lerp_(shares, rate).clamp_(min=SMALLEST_SHARE / len(prior))
    prior.div_(prior.sum())


@torch.no_grad()
def moving_average_(pairs, memory, step):  # (slow, new) weights
    """Slow copies take a small part of the new weights, a larger one in the beginning."""
    memory = min(memory, (1 + step) / (10 + step))
    torch._foreach_lerp_([s for s, _ in pairs], [w for _, w in pairs], 1 - memory)


def check_range(x, low):
    """Raise unless all values lie between `low` and 1, where the generator draws its rows."""
    if x.min() < low or x.max() > 1:
        raise ValueError(
            f"the generator draws values in {low:g}..1, but X has {x.min():.3g} to {x.max():.3g} "
            "after scaling; use output='linear' or 'tanh', or another scale"
        )
