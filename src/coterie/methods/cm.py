"""CM: the Clustering Module, a one-layer autoencoder whose code is a soft assignment."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..estimator.decode import Decoding
from ..estimator.deep import DeepClusterer
from ..estimator.fields import StepFields, restarts_param
from ..estimator.params import param
from ..math.centers import kmeans
from ..math.cm import (
    ambiguity,
    centers_of,
    cm_terms,
    random_start,
    responsibilities,
    stack,
    start_from,
)
from ..math.losses import dirichlet_penalty
from ..runtime.device import to_numpy, wide_dtype
from ..runtime.rng import numpy_rng, torch_rng
from ..train.batch import Batch, Terms
from ..train.head import Head
from ..train.plan import Call, Phase
from ..train.view import Context
from .baselines.kmeans import FlatRows

# default strength of the prior: it grows with the rows' variance, as the other terms do, so that
# the same clusters come out in another unit of length
PRIOR_PER_VARIANCE = 0.02


def gamma_of(latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, r, k)
    return responsibilities(latents, head.encoder, head.encoder_bias)


def centers_in(head: Head) -> torch.Tensor:  # -> (r, k, d)
    return centers_of(head.decoder, head.decoder_bias)


def prior_term(shares: torch.Tensor, head: Head) -> torch.Tensor:  # (r, k) -> ()
    """E4 as a mean over restarts; the strength counts for each row (see `math.cm.per_row`)."""
    return dirichlet_penalty(shares, 1 + head.strength).mean()


class Generative:
    """What CM and C-Net share once they are trained: scores of restarts, and drawing new rows."""

    cluster_axes: ClassVar[dict[str, int]] = {
        **{"centers": 0, "spread": 0},
        **{"encoder": 1, "encoder_bias": 1, "decoder": 1},
    }
    attributes: ClassVar[dict[str, str]] = {
        "restart_scores_": "E2 - E3 per row of each restart; lower is less ambiguous"
    }

    if TYPE_CHECKING:  # what the estimators have that this is a part of
        n_clusters: int
        seed_: int
        head_: Any
        network_: Any
        _check_clusters: Any
        _to_input: Any

    @torch.no_grad()
    def _finish(self, context: Context) -> None:
        """Score every restart on all rows, choose one, and measure the spread of its clusters."""
        head, n = context.head, context.n
        mu = centers_in(head)
        wider = wide_dtype(mu.device)
        scores, loss = (mu.new_zeros(len(mu), dtype=wider) for _ in range(2))
        shares = mu.new_zeros(mu.shape[:2])
        for z in context.chunks():
            gamma = gamma_of(z, head)
            shares += gamma.sum(0)
            scores += ambiguity(gamma, mu)
            for r in range(len(mu)):
                loss[r] += sum(cm_terms(z, gamma[:, r], mu[r]).values()) * len(z)
        scores, loss, shares = (context.world.sum(t) / n for t in (scores, loss, shares))
        loss += dirichlet_penalty(shares, 1 + head.strength)  # E4
        chosen = loss if getattr(self, "selection", "sparsity") == "loss" else scores
        best = chosen.argmin()
        counts, square = mu.new_zeros(self.n_clusters), torch.zeros_like(mu[best])
        for z in context.chunks():
            labels = gamma_of(z, head)[:, best].argmax(1)
            counts += torch.bincount(labels, minlength=self.n_clusters)
            square.index_add_(0, labels, (z - mu[best][labels]).square())
        counts, square = context.world.sum(counts), context.world.sum(square)
        spread = (square / counts.clamp_min(1)[:, None]).sqrt()
        state = {"strength": head.strength, "best": best, "scores": scores.float()}
        state |= {"centers": mu[best], "spread": spread}
        params = {
            n: getattr(head, n) for n in ("encoder", "encoder_bias", "decoder", "decoder_bias")
        }
        context.head = Head(params, state)

    def _after_fit(self) -> None:
        self.restart_scores_ = to_numpy(self.head_.scores)

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        best = int(head.best)
        return responsibilities(
            latents, head.encoder[best, None], head.encoder_bias[best, None]
        ).squeeze(1)

    def sample(self, cluster: int, n: int = 1, random_state: int = 0) -> np.ndarray:
        """Draw n rows of a cluster: its centre plus normal noise of its measured spread, decoded.

        Returns
        -------
        (n, *shape of a row), in the units of the data
        """
        self._check_clusters(cluster)
        center, spread = self.head_.centers[cluster], self.head_.spread[cluster]
        generator = torch_rng(self.seed_, "sample", cluster, random_state)
        with torch.no_grad():
            z = center + spread * torch.randn(n, len(center), generator=generator).to(center)
            return self._to_input(to_numpy(self.network_.decode(z)))


class CM(Generative, Decoding, StepFields, DeepClusterer):
    """Fuzzy k-means as an autoencoder: gamma = softmax(encoder x), x = decoder gamma.

    Restarts train as one batched model: they differ in their start and share the order of rows.
    Losses are means over the rows of a batch. The paper's are sums, with the prior counted once
    per batch, so its alpha and batch size B become ``prior_strength = (alpha - 1) / B`` and its
    Adam epsilon 1e-3 becomes 1e-3 / B.
    """

    key = "cm"
    title = "CM"
    summary = "the Clustering Module: fuzzy k-means trained as a one-layer autoencoder"
    reference = "Boubekki, Kampffmeyer, Brefeld, Jenssen: Joint optimization of an autoencoder ..."
    variants = {"r": {"init": "random"}, "p": {"init": "kmeans++"}}
    tiny = {"epochs": 3, "restarts": 2, "batch_size": 64}
    keeps_decoder = True

    init: str = param(
        "kmeans++",
        "start: random weights, centres by k-means++ and one step of k-means, or by a full k-means",
        choices=("random", "kmeans++", "kmeans"),
        group="training",
    )
    prior_strength: float | tuple[float, ...] | None = param(
        None,
        "pull towards equal shares, (alpha - 1) / batch size in the paper; one number, or one for "
        "each cluster (how unequal they are, not which is large); None follows the rows' variance",
        rule=lambda s: PRIOR_PER_VARIANCE * s.variance,
    )
    merge_weight: float = param(1.0, "weight of E3, which merges clusters (A.3)", ge=0)
    restarts: int = restarts_param(10)
    selection: str = param(
        "sparsity",
        "restart that is kept: least ambiguous (E2 - E3) or lowest loss",
        choices=("sparsity", "loss"),
        group="training",
    )
    # pyrefly: ignore  (never open here: there is no rule)
    epochs: float = param(150, "epochs before the averaging epoch", ge=0, group="training")
    average_epochs: float = param(
        1, "last epochs, whose weights are averaged", ge=0, group="training"
    )
    eps: float = param(1e-5, "epsilon of Adam", gt=0, group="training")

    def plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        # eps: the loss is a mean over restarts, and so are the gradients that Adam divides by
        optim = self.optim(eps=self.eps / self.restarts)
        epochs, average = self.epochs + self.average_epochs, {"average": self.average_epochs}
        train = self.phase("train", epochs, loss=self.loss, optim=optim, **average)
        return [Call(self._start), train, Call(self._finish, "finish")]

    def _start(self, context: Context) -> None:
        d = context.network.embedding_dim
        starts = []
        for r in range(self.restarts):
            if self.init == "random":
                generator = torch_rng(context.seed, "start", r)
                starts.append(random_start(self.n_clusters, d, generator))
            else:
                rng = numpy_rng(context.seed, "start", r)
                most = {"max_iter": 1} if self.init == "kmeans++" else {}
                found = kmeans(FlatRows(context.rows), self.n_clusters, rng=rng, n_init=1, **most)
                starts.append(start_from(found.centers))
        strength = strength_of(self.settings_.prior_strength, self.n_clusters)
        state = {"strength": strength, "best": torch.tensor(0)}
        context.head = Head(stack(starts), state)

    def loss(self, batch: Batch, head: Head) -> Terms:
        gamma = gamma_of(batch.z, head)
        terms = cm_terms(batch.z, gamma, centers_in(head))
        if self.merge_weight != 1:
            terms["merge"] = terms["merge"] * self.merge_weight
        return terms | {"prior": prior_term(batch.mean(gamma), head)}

    def reconstruct(self, X: Any) -> np.ndarray:
        """X through the module: the mixture of centres that stands for each row."""
        rows, centers = self._rows(X), self.head_.centers
        flat = self._map(rows, lambda z: self.network_.decode(self.assign(z, self.head_) @ centers))
        return self._to_input(flat)

    def restart_labels(self, X: Any) -> np.ndarray:  # (restarts, n) int
        """Labels by every restart, not only by the one that was kept."""
        return self._map(self._rows(X), lambda z: gamma_of(z, self.head_).argmax(2)).T


def strength_of(given: Any, k: int) -> torch.Tensor:  # -> () or (k,)
    """The prior's weight as a tensor: one number, or one for each cluster."""
    strength = torch.as_tensor(np.asarray(given, dtype=np.float32))
    if strength.ndim and len(strength) != k:
        raise ValueError(
            f"prior_strength has {len(strength)} values but n_clusters={k}; "
            "give one number, or one for each cluster"
        )
    return strength
