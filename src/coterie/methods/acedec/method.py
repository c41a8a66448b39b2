"""ACe/DeC: the embedding split into what clusters and what does not (Miklautz et al. 2021)."""

from functools import partial
from typing import Any

import numpy as np
import torch

from ...estimator.params import param
from ...math.assign import squared_error
from ...math.axes import (
    Replaced,
    betas,
    gates,
    masked,
    nearest,
    rotated,
    space_map,
    unrotated,
)
from ...math.centers import cluster_sums, running_mean
from ...runtime.processes import row_mean, sum_parts
from ...train.batch import Batch, Step, Terms
from ...train.head import Head
from ...train.objective import Objective
from ...train.plan import Call, Phase
from ...train.settings import Settings
from ...train.view import View
from ..dcn import DCNObjective
from ..dec import DECObjective
from ..dekm import DEKMObjective
from ..dkm import DKMObjective
from .spaces import TwoSpaces
from .start import FIXED_SPACE, first_head, hold_scale, space_phase

OBJECTIVES = {
    "dcn": DCNObjective,
    "dec": DECObjective,
    "idec": partial(DECObjective, weight=25.0),
    "dkm": DKMObjective,
    "dekm": DEKMObjective,
}


class ACeDeC(TwoSpaces):
    """A space (V, beta) between an autoencoder and a centroid objective.

    Loss of a batch (eq. 5; sums over features, means over rows, no weight between the terms)::

        |V'z - V'c|^2_beta  +  |V'z - V'm|^2_(1-beta)  +  |x - dec(V V'z)|^2

    c is the centre of the row's cluster, m the mean of all rows, |u|^2_beta the sum of
    beta_j^2 u_j^2. Rows go to the centre that is nearest under the first norm. With A the scatter
    of an axis within the clusters and B about the mean, the best beta of the axis is B / (A + B):
    1/2 without clusters, near 1 where they stand apart. That is the start; gradients take over. V
    starts as a random rotation and is free; the reconstruction keeps it near one.

    Start "random" is the paper's: k-means on half of the random axes; phase "space" moves V and
    beta alone; k-means in the space they found. But an autoencoder fixes its embedding only up to
    a linear map, which the decoder undoes, and the scales it happened upon decide what k-means
    sees. Start "settled" puts a whitening before V and its inverse after V'; then V and beta have
    closed forms, and alternate with k-means until the labels settle. At each update the whitened
    embedding is stretched to 3 times the total variance of the rows: eq. 5 has no weights, so the
    scale of the embedding, which the decoder undoes, would be one by accident.

    Training: centres are running means of the rows they are given; one without rows in a batch
    stays. Each update sets them to the mean over all rows and restarts their counts.

    With ``shared_pull=False`` the second term trains V and beta only: an axis that does not
    separate clusters is still costly, but the embedding is no longer moved by it.

    Augmentation, with x' the changed row and z' its embedding: z' is pulled to the centre of z,
    and each space has its own picture to rebuild::

        |x  - dec(V [g * V'(z  - m)] + V V'm)|^2          g = clamp((beta - 0.55) / 0.45, 0, 1)
        |x' - dec(V [(1 - g) * V'(z' - m)] + V V'm)|^2

    Every term is the mean of a row's and its changed copy's.

    The paper does not define its masks. Plain 1 - beta would let at most half of an axis
    into the shared space, since beta >= 1/2; g runs from 0, where an axis counts as shared, to 1.
    Masked axes hold the mean, not 0.

    Other objectives than the paper's "dcn" see the weighted coordinates beta * V'z in place of the
    embedding, and replace the first term. DKM's is its relaxation. The terms of "dec", "idec" and
    "dekm" are not scatters, so they cannot be weighed against the second term and beta would go to
    1: they see the space as it was at the last update, and V and beta learn from eq. 5 as always.
    As in DEC, the encoder of "dec" learns nothing from the reconstruction.

    For few columns without nonlinear structure use a linear autoencoder of full width, as in
    the paper's SYNTH: ``hidden=(), embedding_dim=X.shape[1]``.
    """

    facts = ("outside", "sampled_variance")
    key = "acedec"
    title = "ACe/DeC"
    summary = "splits the embedding into a space with the clusters and one that all rows share"
    reference = "Miklautz et al.: Details (don't) matter: isolating cluster information, 2021"
    variants = {
        "plain": {"augment": "none"},
        "aug": {"augment": "affine"},
        "held": {"held_variance": 3.0, "shared_pull": False},
        **{name: {"objective": name} for name in OBJECTIVES},
    }
    cluster_axes = {"centers": 0, "counts": 0}
    tiny = {
        **{"hidden": (16,), "embedding_dim": 4, "n_init": 2},
        **{"pretrain_epochs": 2, "space_epochs": 1, "epochs": 2},
    }

    # the middle of the paper's three; at 1e-3 training undid a perfect start on OBJECTS
    lr: float = param(5e-4, "learning rate of clustering", gt=0, group="training")
    objective: str = param("dcn", "what forms the clusters", choices=tuple(OBJECTIVES))
    start: str = param(
        "settled",
        "settled (closed form on the whitened embedding) or random (the paper's)",
        choices=("settled", "random"),
    )
    space_epochs: float = param(
        5, "start=random: epochs of V and beta alone", ge=0, group="training"
    )
    space_lr: float = param(
        1e-2, "start=random: learning rate of V and beta", gt=0, group="training"
    )
    shared_pull: bool = param(
        True, "the second term moves the network too (the paper's)", group="training"
    )
    held_variance: float = param(
        0.0,
        "start=settled: variance at which the embedding is held, in multiples of that of the "
        "rows; 0: not held",
        ge=0,
        group="training",
    )

    # -- the start --------------------------------------------------------------------------
    def make_objective(self, settings: Settings) -> Objective:
        """What forms the clusters; IDEC keeps its weight, eq. 5 has none."""
        # only DEKM runs k-means after the start
        restarts = settings.n_init if settings.objective == "dekm" else 1
        return OBJECTIVES[settings.objective](settings.n_clusters, n_init=restarts)

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return first_head(self, latents, rng)

    def training(self) -> list[Phase | Call]:
        hooks: dict[str, Any] = {"train_step": self.train_step, "update": self.update}
        train = self.phase("train", self.settings_.epochs, **hooks)
        plan: list[Phase | Call] = [train, Call(self.finish_spaces, "finish")]
        return plan if self.start == "settled" else [*space_phase(self), *plan]

    # -- training ---------------------------------------------------------------------------
    def train_step(self, step: Step, head: Head) -> None:
        step.optimize("main", self.loss(step.batch, head), step.batch.weight)
        self.move_means(step.batch, head, centers=self.objective == "dcn")

    def loss(self, batch: Batch, head: Head) -> Terms:
        clean, rows = batch.z_clean, batch.rows
        changed = batch.x is not batch.clean
        z = torch.cat([clean, batch.z]) if changed else clean
        original = torch.cat([clean, clean]) if changed else clean
        W = head.held if self.objective in FIXED_SPACE else space_map(head)
        if self.objective == "dcn":  # rows are assigned afresh in each batch
            head.labels[rows] = nearest(clean, head)
        rows = torch.cat([rows, rows]) if changed else rows
        seen = Replaced(head, centers=head.centers @ W)
        terms = {
            "cluster": self._weight(z) * self._pull(z @ W, seen, rows),
            "shared": self.shared(z if self.shared_pull else z.detach(), head),
        }
        if self.objective in FIXED_SPACE:
            terms["space"] = self.distance(z.detach(), original.detach(), head)
        return terms | self.reconstruction(batch, head)

    def _pull(self, u: torch.Tensor, seen: Any, rows: torch.Tensor) -> torch.Tensor:
        terms = self.objective_.loss(u, seen, rows).values()
        return torch.stack(list(terms)).sum() if len(terms) > 1 else next(iter(terms))

    def distance(self, z: torch.Tensor, original: torch.Tensor, head: Head) -> torch.Tensor:
        """First term of eq. 5: to the centre that is nearest to the original row."""
        own = head.centers.detach()[nearest(original, head)]
        return ((z - own) @ space_map(head)).square().sum(1).mean()

    def shared(self, z: torch.Tensor, head: Head) -> torch.Tensor:
        """Second term of eq. 5: to the mean of all rows."""
        return (rotated(z - head.shared, head) * (1 - betas(head))).square().sum(1).mean()

    def reconstruction(self, batch: Batch, head: Head) -> Terms:
        decode = batch.network.decode
        z = batch.z_clean.detach() if self.objective == "dec" else batch.z_clean
        if not batch.moved:
            return {
                "reconstruction": squared_error(
                    batch.clean, decode(unrotated(rotated(z, head), head))
                )
            }
        changed = batch.z.detach() if self.objective == "dec" else batch.z
        g = gates(head).detach()  # beta says what clusters, not what is easy to rebuild
        clean, other = masked(z, head, g), masked(changed, head, 1 - g)
        return {  # a row and its changed copy count for half each, here as in the other terms
            "reconstruction": squared_error(batch.clean, decode(clean)) / 2,
            "augmented": squared_error(batch.x, decode(other)) / 2,
        }

    @torch.no_grad()
    def move_means(self, batch: Batch, head: Head, centers: bool = True) -> None:
        """Running means: of all rows, and of those nearest to each centre (mini-batch k-means)."""
        z = batch.z_clean.detach()
        whole = torch.zeros(len(z), dtype=torch.int64, device=z.device)
        mean, _ = running_mean(head.shared[None], head.counts.sum()[None], z, whole, batch.sum)
        head.shared.copy_(mean[0])
        if centers:
            moved = running_mean(head.centers.data, head.counts, z, nearest(z, head), batch.sum)
            head.centers.data.copy_(moved[0])
            head.counts.copy_(moved[1])

    def update(self, view: View, head: Head) -> torch.Tensor:
        """The objective's own update in the space; means and counts over all rows."""
        z = view.latents
        hold_scale(self.settings_, z, head)
        W = space_map(head).detach()
        seen: Any = Replaced(head, centers=head.centers.data @ W)
        labels: Any = self.objective_.update(z @ W, seen, view.rng, view.done)
        if self.objective in FIXED_SPACE:
            head.held.copy_(W)
        sums, counts = map(sum_parts, cluster_sums(z, labels, self.n_clusters))
        if "centers" in head.kinds["state"]:
            means = sums / counts[:, None].clamp_min(1)
            head.centers.copy_(torch.where(counts[:, None] > 0, means, head.centers))
        head.counts.copy_(counts)
        head.shared.copy_(row_mean(z))
        return labels

    # -- the result -------------------------------------------------------------------------
    def _weight(self, z: torch.Tensor) -> float:
        """DEKM takes the mean over axes; here every term is a sum."""
        return z.shape[1] if self.objective == "dekm" else 1.0

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, d) -> (n, k)
        """The objective's own scores in the space; the nearest centre has the highest."""
        W = space_map(head)
        seen: Any = Replaced(head, centers=head.centers @ W)
        return self.objective_.assign(latents @ W, seen)
