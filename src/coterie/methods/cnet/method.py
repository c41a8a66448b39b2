"""C-Net: the Clustering Module on the embedding of an autoencoder that is trained with it."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ...estimator.fields import is_large, n_init_param, restarts_param
from ...estimator.params import param
from ...math.assign import squared_error
from ...math.centers import kmeans
from ...math.cm import random_start, stack, start_from
from ...math.losses import orthonormality
from ...train.batch import Batch, Terms
from ...train.head import Head
from ...train.objective import Objective
from ...train.settings import Settings
from ..cm import centers_in, gamma_of, prior_term, strength_of
from .training import ModuleTraining

TENSORS = ("encoder", "encoder_bias", "decoder", "decoder_bias")
WIDE_CODE, NARROW_CODE = 100, 10
RECON_PER_VARIANCE = 0.3  # default weight of the reconstruction, times the rows' variance


def _code_size(s: Any) -> int:
    return NARROW_CODE if s.init == "pretrained" and is_large(s) else WIDE_CODE


@dataclass
class CMObjective(Objective):
    """The Clustering Module on an embedding, with centres that are kept orthonormal (eq. 14).

    |z - gamma mu|^2 + 1 - |gamma|^2 + prior_strength * E4 + orthonormal_weight * |mu mu' - I|,
    gamma the softmax of an affine map of z, mu the centres that its decoder holds.

    Parameters
    ----------
    prior_strength : (alpha - 1) / batch size of the paper; one number or one for each cluster
    orthonormal_weight, orthonormal_norm : lambda / batch size, and "l1" or "frobenius"
    rate : learning rate of the module over that of the network
    centers : first centres: "kmeans" on the embedding, or "random" ones
    n_init : starts of k-means
    """

    n_clusters: int
    prior_strength: Any = 0.15
    orthonormal_weight: float = 0.02
    orthonormal_norm: str = "l1"
    rate: float = 1.0
    centers: str = "kmeans"
    n_init: int = 20

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        k, codes = self.n_clusters, {}
        if self.centers == "random":
            generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
            start = random_start(k, latents.shape[1], generator)
        else:
            start = start_from(kmeans(latents, k, rng=rng, n_init=self.n_init, part=True).centers)
            codes = {"codes": latents}
        state = {"strength": strength_of(self.prior_strength, k), "best": torch.tensor(0)}
        start = {name: tensor / self.rate for name, tensor in start.items()}
        return Head(stack([start]), state, codes).to(latents.device)

    def module(self, head: Head) -> Any:
        """The module in its true size while it trains.

        Adam moves every number by about the learning rate, whatever the gradient. Tensors that
        are kept divided by `rate` learn that many times as fast.
        """
        tensors = {name: self.rate * getattr(head, name) for name in TENSORS}
        return SimpleNamespace(**tensors, strength=head.strength)

    def loss(self, z, head, rows, clean=None, mean=None) -> Terms:
        module = self.module(head)
        mu, gamma = centers_in(module)[0], gamma_of(z, module)[:, 0]
        shares = gamma.mean(0) if mean is None else mean(gamma)
        return {
            "code": (z - gamma @ mu).square().sum(1).mean(),
            "sparsity": (1 - gamma.square().sum(1)).mean(),
            "prior": prior_term(shares[None], module),
            "orthonormality": self.orthonormal_weight * orthonormality(mu, self.orthonormal_norm),
        }

    def update(self, latents, head, rng=None, done=0.0) -> torch.Tensor:
        """Nothing to refresh: the module learns by gradients alone."""
        return self.assign(latents, head).argmax(1)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        return gamma_of(latents, self.module(head))[:, 0]


class CNet(ModuleTraining):
    """CM's head on a learned embedding, with centres that are kept orthonormal.

    Losses are means over the rows of a batch. The paper's are sums, with the prior and the
    orthonormality counted once per batch, so its alpha, lambda and batch size B become
    ``prior_strength = (alpha - 1) / B`` and ``orthonormal_weight = lambda / B``; beta stays.

    The paper trains for 150 to 1,000 epochs of small batches, and in most of them nothing seems to
    happen: the embedding first shrinks to meet centres of length 1, responsibilities are uniform,
    and the module's weights grow slowly until they separate rows. The defaults need a few tens of
    epochs: centres by k-means on the embedding of a pre-trained or a random network; the embedding
    shifted and scaled to match orthonormal centres; the module alone on a frozen embedding; then
    everything, the module at ten times the rate. The published start is
    ``module_start="random", match_code=False, module_rate=1``, as in `CNet.paper`.

    The embedding has 100 numbers (10 to 100 in the paper), and 10 where many wide rows were
    pre-trained by the papers' network.
    """

    key = "cnet"
    title = "C-Net"
    summary = "the Clustering Module on the embedding of an autoencoder, trained together"
    reference = "Boubekki, Kampffmeyer, Brefeld, Jenssen: Joint optimization of an autoencoder ..."
    variants = {
        "r": {"init": "random", "module_start": "random", "match_code": False, "module_rate": 1.0},
        "p": {"init": "pretrained"},
        "moved": {"augment": "affine"},
    }
    tiny = {
        "hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "module_epochs": 1,
        "epochs": 1, "n_init": 2,
    }  # fmt: skip
    keeps_decoder = True

    embedding_dim: int | None = param(
        None,
        "size of the embedding; None: 100, or 10 if pre-trained on 20,000 rows of 256 values",
        ge=1,
        group="network",
        rule=_code_size,
    )
    activation: str = param(
        "leaky_relu", "activation of the mlp", choices=("relu", "leaky_relu"), group="network"
    )
    initializer: str = param(
        "glorot_bias",
        "starting weights",
        choices=("xavier", "glorot_bias", "uniform", "normal", "fan_in"),
        group="network",
    )
    recon_weight: float | None = param(
        None,
        "weight of the reconstruction (beta); None: 0.3 / variance of the rows",
        ge=0,
        rule=lambda s: RECON_PER_VARIANCE / s.variance if s.variance > 0 else 1.0,
    )
    prior_strength: float | tuple[float, ...] = param(
        0.15, "pull towards equal shares, (alpha - 1) / batch size in the paper; one number or k"
    )
    orthonormal_weight: float = param(
        0.02, "weight of the centres' orthonormality, lambda / batch size in the paper", ge=0
    )
    orthonormal_norm: str = param(
        "l1", "norm of the orthonormality term", choices=("l1", "frobenius")
    )
    module_epochs: float = param(
        10, "epochs of the module alone on a frozen embedding", ge=0, group="training"
    )
    average_epochs: float = param(
        1, "last epochs, whose weights are averaged", ge=0, group="training"
    )
    module_rate: float = param(
        10.0, "learning rate of the module over that of the network", gt=0, group="training"
    )
    module_start: str = param(
        "kmeans",
        "first centres: k-means on the embedding, also that of a random network, or random ones",
        choices=("kmeans", "random"),
        group="training",
    )
    match_code: bool = param(
        True,
        "shift and scale the embedding to meet orthonormal centres at the start",
        group="training",
    )
    eps: float = param(1e-5, "epsilon of Adam", gt=0, group="training")
    beta1: float = param(0.9, "first decay rate of Adam", ge=0, le=1, group="training")
    n_init: int = n_init_param(20)
    restarts: int = restarts_param(1)

    # -- training ---------------------------------------------------------------------------
    def make_objective(self, settings: Settings) -> CMObjective:
        s, random = settings, settings.init == "random" and settings.module_start == "random"
        return CMObjective(
            s.n_clusters,
            prior_strength=s.prior_strength,
            orthonormal_weight=s.orthonormal_weight,
            orthonormal_norm=s.orthonormal_norm,
            rate=s.module_rate,
            centers="random" if random else "kmeans",
            n_init=s.n_init,
        )

    def loss(self, batch: Batch, head: Head) -> Terms:
        """Eq. 14; an augmented row is its own target of the reconstruction."""
        recon = self.settings_.recon_weight * squared_error(batch.x, batch.x_hat)
        terms = self.objective_.loss(batch.z, head, batch.rows, mean=batch.mean)
        return {"reconstruction": recon, **terms}
