"""EM for mixtures of Gaussians whose covariances have more or less freedom, from any labels."""

import math
from dataclasses import dataclass
from typing import Any

import torch

SHAPES = ("round", "diagonal", "tied", "free")
BLOCK = 2**22  # numbers held at a time
RIDGE = 1e-6  # added to every variance, times the mean variance of the data
TIED_RIDGE = 1e-4  # of a shared covariance: features may have directions without any variance


@dataclass(frozen=True)
class Gaussians:
    """A mixture: log weights (k,), centre of the data (d,), means (k, d) from there, all float64.

    `scale` is, by shape, "round": one variance (); "diagonal": variances (k, d); "tied": one
    whitening matrix (d, d); "free": one for each component (k, d, d). u = (x - mean) @ whitening
    has the identity as covariance. `bound` is the mean log-likelihood of the rows it learned from.
    """

    shape: str
    log_weights: torch.Tensor
    center: torch.Tensor
    means: torch.Tensor
    scale: torch.Tensor
    bound: float

    def log_joint(self, x):  # (n, d) -> (n, k)
        """Log of weight times density."""
        return _log_joint(x.double() - self.center, self)

    def log_density(self, x):  # (n, d) -> (n,)
        return self.log_joint(x).logsumexp(1)


@torch.no_grad()
def gaussians(x, labels, k, shape="free", *, prior=None, tol=1e-3, max_iter=100):
    """EM on rows x (n, d) that starts from `labels` (n,).

    It ends when the mean log-likelihood gains less than `tol`.

    Parameters
    ----------
    shape : "round": all components have the covariance s I, which is k-means with soft borders and
        free sizes; "diagonal": each has variances of its own; "tied": all share one covariance;
        "free": each has its own.
    prior : rows p that the pooled covariance counts for; None: d + 2

    Own variances and covariances are means of the component's scatter S_j and of the pooled one,
    (S_j + p / n sum_i S_i) / (n_j + p): a component of few rows has the shape of the others, and
    none can shrink onto a line of a few rows, which would be the likeliest of all.
    """
    if shape not in SHAPES:
        raise ValueError(f"shape={shape!r}: choose one of {', '.join(SHAPES)}")
    x = x.double()
    center = x.mean(0)
    x = x - center
    ridge = RIDGE * (float(x.square().mean()) or 1.0)
    prior = x.shape[1] + 2.0 if prior is None else prior
    moments = _moments(x, shape)
    weigh = torch.nn.functional.one_hot(labels.long(), k).double()
    last, bound = -math.inf, -math.inf
    found: Any = None
    for _ in range(max_iter):
        found = _maximise(x, moments, weigh, shape, ridge, prior)
        logs = _log_joint(x, found)
        density = logs.logsumexp(1)
        bound = float(density.mean())
        if bound - last < tol:
            break
        last, weigh = bound, (logs - density[:, None]).exp_()
    return Gaussians(shape, found.log_weights, center, found.means, found.scale, bound)


def _moments(x, shape):
    """What of the rows does not change from step to step."""
    if shape in ("round", "diagonal"):
        return x.square()
    if shape == "tied":
        return x.T @ x
    # few columns: the products of all pairs of them are made once
    return None if x.shape[1] * x.numel() > BLOCK else (x[:, :, None] * x[:, None]).flatten(1)


def _maximise(x, moments, weigh, shape, ridge, prior):
    n, d = x.shape
    counts = weigh.sum(0) + 1e-10
    means = (weigh.T @ x) / counts[:, None]
    heavy = counts[:, None] * means
    if shape == "round":
        scale = (moments.sum() - (heavy * means).sum()) / (n * d) + ridge
    elif shape == "diagonal":
        scatter = weigh.T @ moments - heavy * means
        scale = (scatter + prior / n * scatter.sum(0)) / (counts + prior)[:, None] + ridge
    elif shape == "tied":
        cov = (moments - heavy.T @ means) / n
        cov.diagonal().add_(ridge + TIED_RIDGE * float(cov.diagonal().mean()))
        scale = _whitening(cov)
    else:
        scatter = _scatter(x, moments, weigh, counts, means)
        cov = (scatter + prior / n * scatter.sum(0)) / (counts + prior)[:, None, None]
        cov.diagonal(dim1=1, dim2=2).add_(ridge)
        scale = _whitening(cov)
    return Gaussians(shape, (counts / n).log(), x.new_zeros(d), means, scale, -math.inf)


def _scatter(x, pairs, weigh, counts, means):  # -> (k, d, d)
    d = x.shape[1]
    if pairs is not None:
        scatter = (weigh.T @ pairs).view(-1, d, d)
        return scatter - counts[:, None, None] * means[:, :, None] * means[:, None]
    scatter = x.new_empty(weigh.shape[1], d, d)
    for j, mean in enumerate(means):
        u = x - mean
        torch.mm(u.T, u * weigh[:, j : j + 1], out=scatter[j])
    return scatter


def _whitening(cov):
    chol = torch.linalg.cholesky_ex(cov)[0]
    eye = torch.eye(cov.shape[-1], dtype=cov.dtype).expand_as(chol)
    return torch.linalg.solve_triangular(chol, eye, upper=False).mT


def _log_joint(x, mixture):  # (n, d) from the centre -> (n, k)
    means, scale = mixture.means, mixture.scale
    k, d = means.shape
    offset = mixture.log_weights - 0.5 * d * math.log(2 * math.pi)
    if mixture.shape == "free":
        turn = scale.permute(1, 0, 2).reshape(d, k * d)
        shift = (means[:, None] @ scale).flatten()
        step = max(1, BLOCK // (k * d))
        squares = torch.cat(
            [(part @ turn - shift).square_().view(-1, k, d).sum(2) for part in x.split(step)]
        )
        return offset + scale.diagonal(dim1=1, dim2=2).log().sum(1) - 0.5 * squares
    if mixture.shape == "diagonal":
        inverse = 1 / scale
        squares = x.square() @ inverse.T - 2 * x @ (means * inverse).T
        return offset - 0.5 * (scale.log() + means.square() * inverse).sum(1) - 0.5 * squares
    if mixture.shape == "tied":
        x, means = x @ scale, means @ scale
        volume = scale.diagonal().log().sum()
    else:
        x, means = x * scale.rsqrt(), means * scale.rsqrt()
        volume = -0.5 * d * scale.log()
    squares = x.square().sum(1, keepdim=True) - 2 * x @ means.T + means.square().sum(1)
    return offset + volume - 0.5 * squares
