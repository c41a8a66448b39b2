"""DKM: deep k-means (Fard, Thonet, Gaussier 2020)."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..estimator.fields import clustering_weight, code_variance_param
from ..estimator.params import param
from ..math.assign import cosine_distances, fuzzy_membership, in_blocks, softmin, squared_distances
from ..math.centers import first_centers
from ..runtime.device import wide_dtype
from ..train.batch import Terms
from ..train.head import Head
from ..train.objective import Objective
from ..train.plan import Call, Phase
from ..train.settings import Settings
from .autoencoder import JointClusterer


def temperature_levels(levels: int, first: float = 0.1, last: float | None = None) -> list[float]:
    """Inverse temperatures of the annealed variant: 0.1, 0.423, 0.752, ..., 28.1 (40th).

    Printed as a_n+1 = 2^(1/ln(n)^2) a_n, which divides by 0 at n = 1; the authors start at n = 2.
    With `last`, as many values as it takes to reach it, and it is the last one (algorithm 1).
    """
    values = [first]
    while len(values) < levels if last is None else values[-1] < last:
        grown = values[-1] * 2 ** (1 / math.log(len(values) + 1) ** 2)
        values.append(grown if last is None else min(grown, last))
    return values


@dataclass
class DKMObjective(Objective):
    """weight * sum_k G_k(z) f(z, c_k), with G a softmax over -alpha f (property 3.1).

    Parameters
    ----------
    weight : lambda
    alphas : one inverse temperature, or a schedule that `update` walks along as `done` grows
    distance : f: "euclidean" (squared) or "cosine"
    membership : G: "softmax", or "fuzzy" with the fuzzifier 1 + 1 / alpha
    centers : first centres: "kmeans", or "uniform" in -1..1
    n_init : starts of k-means
    """

    n_clusters: int
    weight: float = 1.0
    alphas: tuple[float, ...] = (1000.0,)
    distance: str = "euclidean"
    membership: str = "softmax"
    centers: str = "kmeans"
    n_init: int = 10

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        centers = first_centers(latents, self.n_clusters, self.centers, rng, self.n_init)
        return Head(params={"centers": centers}, state={"alpha": torch.tensor(self.alphas[0])})

    @property
    def annealed(self) -> bool:
        return len(self.alphas) > 1

    def update(self, latents, head, rng=None, done=0.0) -> torch.Tensor:
        """The inverse temperature of the next stretch of training, and the nearest centres."""
        if self.annealed:
            level = round(done * len(self.alphas))
            head.alpha.fill_(self.alphas[min(level, len(self.alphas) - 1)])
        return in_blocks(lambda z: self.distances(z, head).argmin(1), latents, self.n_clusters)

    def loss(self, z, head, rows, clean=None, mean=None) -> Terms:
        """A changed row is pulled to where the row itself belongs, each for half."""
        f = self.distances(z if clean is None else clean, head)
        near = self.memberships(f, head.alpha)
        pull = self._expected(near, f)
        if clean is not None:
            # at a hard assignment the slope of G would meet the distances of another picture
            near = near if self.annealed else near.detach()
            pull = (pull + self._expected(near, self.distances(z, head))) / 2
        return {"clustering": pull}

    def _expected(self, near: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
        """Distance to a centre drawn by membership: (n, k), (n, k) -> ()."""
        return self.weight * (near * f).sum(1).mean()

    def distances(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        f = cosine_distances if self.distance == "cosine" else squared_distances
        return f(latents, head.centers)

    def memberships(self, f: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:  # (n, k) -> (n, k)
        if self.membership == "softmax":
            return softmin(f, alpha)
        fuzzifier = 1 + 1 / alpha.to(wide_dtype(alpha.device))
        return fuzzy_membership(f, fuzzifier, squared=self.distance == "euclidean")

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        return self.memberships(self.distances(latents, head), head.alpha)


class DKM(JointClusterer):
    """Reconstruction + weight * sum_k G_k(z) f(z, r_k), trained by gradients alone.

    G is a softmax over -alpha f, so that the k-means loss is differentiable in network and centres
    together; as alpha grows the loss becomes that of k-means. Algorithm 1 of the paper is
    `temperature_levels` (outer loop), `update` (next alpha) and `loss` (inner loop).

    Where text and authors' code differ, and what we do:

    - f is the *squared* Euclidean distance in the code ("Euclidean" in the text): squared here.
    - The gradient also flows through G, as in the code.
    - The code draws each batch at random, so an epoch misses a third of the rows; ours sees each
      row once. The code's labels are those of a row's last batch; ours are of the final network.
    - The code carries Adam's moments over from pre-training; here each phase starts afresh.
    - Fuzzy membership: the printed exponent 2/(m-1) is for plain distances; with squared ones it is
      1/(m-1). The fuzzifier is m = 1 + 1/alpha, so one schedule serves both memberships.

    `dkm:moved` pulls a changed image to the centre of the image itself, with its membership held
    fixed unless it is annealed. A pre-trained embedding whose total variance is above
    `code_variance` is shrunk to that, decoder included: centres move by Adam's rate, however large
    the embedding is.
    """

    key = "dkm"
    title = "DKM"
    summary = "k-means made differentiable: relaxed assignments, joint gradient steps"
    reference = "Fard, Thonet, Gaussier: Deep k-means, Pattern Recognition Letters 2020"
    variants = {
        "a": {"init": "random", "inverse_temperature": None},
        "p": {"init": "pretrained", "inverse_temperature": 1000.0},
        "moved": {"augment": "affine"},
    }
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "epochs": 2, "n_init": 2}
    keeps_decoder = True
    train_rule = (10, 2500)

    weight: float | None = param(
        None,
        "weight of the clustering term (lambda); None: 1, less below 256 features",
        ge=0,
        rule=clustering_weight,
    )
    code_variance: float = code_variance_param()
    inverse_temperature: float | None = param(
        1000.0, "alpha, hardness of the assignment; None: annealed over `levels`", gt=0
    )
    levels: int = param(40, "annealed: values of alpha, from `first_alpha` upwards", ge=1)
    first_alpha: float = param(0.1, "annealed: smallest alpha (m_alpha)", gt=0)
    last_alpha: float | None = param(
        None, "annealed: largest alpha (M_alpha); None: that of the last of `levels`", gt=0
    )
    epochs_per_level: float | None = param(
        None,
        "annealed: epochs at each value; None: 1, but at least 111 steps",
        gt=0,
        rule=lambda s: s.length((1, 111), s.batch_size),
    )
    distance: str = param(
        "euclidean", "euclidean (squared) or cosine", choices=("euclidean", "cosine")
    )
    membership: str = param("softmax", "softmax or fuzzy", choices=("softmax", "fuzzy"))

    def make_objective(self, settings: Settings) -> DKMObjective:
        """k-means on a pre-trained embedding, otherwise centres in -1..1 as in the paper."""
        s, alphas = settings, (settings.inverse_temperature,)
        if s.inverse_temperature is None:
            alphas = tuple(temperature_levels(s.levels, s.first_alpha, s.last_alpha))
        return DKMObjective(
            s.n_clusters,
            weight=s.weight,
            alphas=alphas,
            distance=s.distance,
            membership=s.membership,
            centers="kmeans" if s.init == "pretrained" else "uniform",
            n_init=s.n_init,
        )

    def training(self) -> list[Phase | Call]:
        if not self.objective_.annealed:
            return super().training()
        every = float(self.settings_.epochs_per_level)
        epochs = len(self.objective_.alphas) * every
        # tol 0: the schedule has to run its course
        schedule = {"update": self.update, "update_every": every, "keeps_updates": True, "tol": 0.0}
        return [self.phase("train", epochs, loss=self.loss, **schedule)]
