"""Penalties that methods add to a reconstruction error."""

import torch


def gradient_penalty(critic, x):  # (b, ...) -> ()
    """WGAN-GP: mean over rows of ``(|gradient of critic at x| - 1)^2``.

    The graph is kept, so the penalty can be minimised over the critic's weights. A critic with
    several outputs counts as their sum.
    """
    x = x.detach().requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    # 1e-12: the root has no derivative at 0, and a second backward would give NaN
    norm = (gradient.flatten(1).square().sum(dim=1) + 1e-12).sqrt()
    return (norm - 1).square().mean()


def interpolate_rows(real, fake, share):  # (b, ...), (b, ...), (b,) -> (b, ...)
    """A point on the segment between each fake row (share 0) and its real partner (share 1)."""
    if real.shape != fake.shape:
        raise ValueError(
            f"real has shape {tuple(real.shape)} but fake has {tuple(fake.shape)}; "
            "give batches of equal shape"
        )
    return fake.lerp(real, share.view(-1, *[1] * (real.ndim - 1)))


def orthonormality(centers, norm="l1"):  # (k, d) -> ()
    """How far the centres are from orthonormal: entries of ``centers centers' - I``.

    Parameters
    ----------
    norm : "l1" sums absolute values (C-Net, eq. 14); "frobenius" sums squares, which settles
        where L1 jitters. Neither reaches 0 when there are more centres than dimensions.
    """
    error = centers @ centers.T - torch.eye(len(centers), dtype=centers.dtype).to(centers.device)
    if norm == "l1":
        return error.abs().sum()
    if norm == "frobenius":
        return error.square().sum()
    raise ValueError(f'norm={norm!r} is not "l1" or "frobenius"')


def dirichlet_penalty(mean_gamma, alpha, eps=1e-10):  # (..., k), () or (k,) -> (...)
    """Dirichlet prior on the cluster shares: ``sum_k (1 - alpha_k) log(mean_gamma_k + eps)``.

    A vector `alpha` is a target shape, not tied to cluster numbers: both sides are sorted first.
    alpha = 1 switches the term off; below 1 it rewards empty clusters.
    """
    alpha = torch.as_tensor(alpha, dtype=mean_gamma.dtype, device=mean_gamma.device)
    if alpha.ndim:
        if len(alpha) != mean_gamma.shape[-1]:
            raise ValueError(
                f"alpha has {len(alpha)} values but there are {mean_gamma.shape[-1]} clusters; "
                "give one number or one for each cluster"
            )
        alpha, mean_gamma = alpha.sort().values, mean_gamma.sort().values
    return ((1 - alpha) * (mean_gamma + eps).log()).sum(-1)
