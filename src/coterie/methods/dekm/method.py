"""DEKM: deep embedded k-means (Guo, Lin, Ye 2021), its full-batch twin and its five strategies."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from ...estimator.fields import net_param
from ...estimator.params import param
from ...math.assign import gaussian_scores, squared_error
from ...math.centers import KMeansResult, kmeans, within_scatter
from ...math.subspace import rotated_target, scatter_axes
from ...nets.rescale import UnitCode
from ...runtime.processes import row_count, sum_parts
from ...train.batch import Batch, Terms
from ...train.head import Head
from ...train.objective import Objective, no_seed
from ...train.plan import Call, Phase
from ...train.settings import Settings
from ...train.view import Context
from .rotated import Rotated

STRATEGIES = ("last", "random", "all", "random_raw", "all_raw")
CLEARLY = 1e-3  # a fresh k-means wins if its inertia is lower by this share


@dataclass
class DEKMObjective(Objective):
    """(1/e) |V z - t|^2, with t = V z of the last update but for the axes of `strategy`.

    There t has the coordinates of the row's k-means centre. V holds the eigenvectors of the
    within-cluster scatter, the loosest axis last (eqs. 3 to 6); e is the size of the embedding.

    Parameters
    ----------
    strategy : "last" axis, one "random" or "all"; "_raw": without the rotation
    fresh_runs, fresh_every : k-means runs from new starts beside the warm one, and how often
    n_init : starts of k-means
    """

    n_clusters: int
    strategy: str = "last"
    fresh_runs: int = 2
    fresh_every: int = 5
    n_init: int = 10
    kmeans_seconds: float = field(default=0.0, init=False)

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        n, e = latents.shape
        begin = time.perf_counter()
        start = kmeans(latents, self.n_clusters, rng=rng, n_init=self.n_init, part=True)
        self.kmeans_seconds += time.perf_counter() - begin
        state = {
            "centers": start.centers,
            "variance": torch.ones(()),
            "rotation": torch.eye(e),
            "eigenvalues": torch.zeros(e),
            "updates": torch.zeros((), dtype=torch.int64),
            "decoder": torch.zeros((), dtype=torch.int64),
        }
        return Head(state=state, rows={"target": torch.zeros(n, e)})

    def update(self, latents, head, rng=no_seed, done=0.0) -> torch.Tensor:
        """k-means, rotation and targets from the embedding of all rows."""
        z, begin = latents, time.perf_counter()
        found = self._recluster(z, head, rng("kmeans"))
        self.kmeans_seconds += time.perf_counter() - begin
        head.updates += 1
        head.centers.copy_(found.centers)
        n, e = row_count(z), z.shape[1]
        head.variance.fill_(max(found.inertia / (n * e), 1e-12))
        values, vectors = scatter_axes(z, found.labels, found.centers)
        if self.strategy.endswith("_raw"):
            vectors = torch.eye(e, device=z.device)
            scatter = sum_parts(within_scatter(z, found.labels, found.centers))
            values = scatter.diagonal() / n
        head.eigenvalues.copy_(values)
        head.rotation.copy_(vectors)
        axes = self._axes(e, rng("axis"))
        head.target.copy_(rotated_target(z, found.labels, found.centers, head.rotation, axes))
        return found.labels

    def loss(self, z, head, rows, clean=None, mean=None) -> Terms:
        return {"pull": (z @ head.rotation - head.target[rows]).square().mean(1).mean()}

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, e) -> (n, k)
        return gaussian_scores(latents, head)

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, 1)

    def fit_of(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.logsumexp(1)  # a mixture of round Gaussians

    def _recluster(self, z: torch.Tensor, head: Head, rng: np.random.Generator) -> KMeansResult:
        """Go on from the last centres; search afresh only if a few fresh runs do clearly better."""
        k = self.n_clusters
        warm = kmeans(z, k, rng=rng, init=head.centers, part=True)
        challenge = (int(head.updates) + 1) % self.fresh_every == 0
        if not self.fresh_runs or not challenge:
            return warm
        rival = kmeans(z, k, rng=rng, n_init=self.fresh_runs, part=True)
        if rival.inertia >= (1 - CLEARLY) * warm.inertia:
            return warm
        wide = kmeans(z, k, rng=rng, n_init=self.n_init, part=True)
        return min(rival, wide, key=lambda found: found.inertia)

    def _axes(self, e: int, rng: np.random.Generator) -> list[int]:
        if self.strategy.startswith("all"):
            return list(range(e))
        return [e - 1] if self.strategy == "last" else [int(rng.integers(e))]


class DEKM(Rotated):
    """Pull rows to their k-means centre along the axis where clusters are least compact.

    Between two runs of k-means the target of row i is frozen: V h_i of the last full pass, with
    one coordinate replaced by that of the row's centre. V holds the eigenvectors of the
    within-cluster scatter in ascending order, so the replaced one, the last, is the axis that
    tells clusters least apart. All other coordinates are held at their old values; without
    that (with a live target) the embedding collapses, since no decoder holds it.

    Loss of a batch: mean over rows of (1/e) |V f(x) - t|^2, e the size of the embedding (the
    authors' code takes the mean over dimensions and sums over the batch; Adam hides the
    difference). With augmentation f sees the changed row and t comes from the clean one; a part
    of each batch stays clean, or the scale of the embedding would run away.

    Strategies (figure 4): "last" axis of the rotated space; one "random" of its axes; "all" of
    them; "random_raw" and "all_raw" the same without rotation. A random axis is drawn anew at
    each update. "all" and "all_raw" are one loss, up to rounding.

    updating="minibatch" runs k-means after `update_every` mini-batches (the paper: 40 for images,
    10 for text), so only some rows have moved. updating="full" is DEKM_F: every row is moved
    between two runs, once or in `update_every` epochs; the paper does not say how often.

    From earlier versions of the authors' code: `recon_weight` keeps the decoder in the loss, with
    the mean over features of the squared error; `normalize` gives embeddings unit length.

    Differences from the authors' code: rows are shuffled every epoch, not once; k-means starts
    from the previous centres instead of 2 n_iter restarts; eigh instead of eig; labels and centres
    belong to the finished network, not to the one of the last update.
    """

    key = "dekm"
    title = "DEKM"
    summary = "k-means on an embedding that is tightened along the axis of largest scatter"
    reference = "Guo, Lin, Ye: Deep embedded k-means clustering, 2021"
    variants = {
        "": {},
        "f": {"updating": "full"},
        "moved": {"augment": "affine"},
        **{s: {"strategy": s} for s in STRATEGIES},
    }
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "epochs": 2, "n_init": 2}
    align_labels = True
    pretrain_rule = (10, 500)
    train_rule = (15, 1100)
    update_rule = (0.5, 20)

    net: Any = net_param("auto")
    strategy: str = param("last", "axes that are pulled to the centre", choices=STRATEGIES)
    updating: str = param(
        "minibatch",
        "k-means every update_every, or after each full epoch (DEKM_F)",
        choices=("minibatch", "full"),
    )
    fresh_runs: int = param(
        2,
        "k-means runs from new starts, beside the one from the previous centres; the best is kept",
        ge=0,
    )
    fresh_every: int = param(5, "updates between two such runs", ge=1)
    recon_weight: float = param(0.0, "weight of the reconstruction (mean over features)", ge=0)
    normalize: bool = param(False, "embeddings of unit length", group="network")
    clean_share: float = param(
        0.5, "share of each batch that is not augmented", ge=0, le=1, group="training"
    )
    decoder_epochs: float = param(
        0, "epochs of a decoder for the finished embedding", ge=0, group="training"
    )

    def make_objective(self, settings: Settings) -> DEKMObjective:
        s = settings
        return DEKMObjective(s.n_clusters, s.strategy, s.fresh_runs, s.fresh_every, s.n_init)

    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        network = super().build_network(settings, generator)
        return UnitCode(network) if settings.normalize else network

    def loss(self, batch: Batch, head: Head) -> Terms:
        terms = self.objective_.loss(batch.z, head, batch.rows)
        if not self.recon_weight:
            return terms
        error = squared_error(batch.clean, batch.x_hat) / batch.clean[0].numel()
        return terms | {"reconstruction": self.recon_weight * error}

    # -- training ---------------------------------------------------------------------------
    def training(self) -> list[Phase | Call]:
        s = self.settings_
        hooks: dict[str, Any] = {"loss": self.loss, "update": self.update}
        if s.updating == "full":
            hooks["update_every"] = s.update_every if isinstance(self.update_every, float) else 1.0
        plan = [self.phase("train", s.epochs, **hooks), Call(self._finish, "finish")]
        return [*plan, *self.decoding(s.decoder_epochs)] if s.decoder_epochs else plan

    def augmentation(self) -> Any:
        """Leave a part of each (shuffled) batch as it is.

        Targets come from clean rows: a network that sees moved images only lets the scale of the
        embedding grow from update to update.
        """
        change = super().augmentation()
        if change is None:
            return None

        def some(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            clean = round(len(x) * self.clean_share)
            return torch.cat([x[:clean], change(x[clean:], generator)])

        return some

    def changed_by(self) -> dict[str, Any]:
        return super().changed_by() | {"clean_share": self.clean_share}

    def _finish(self, context: Context) -> None:
        """Centres, rotation and labels of the finished network."""
        self.last_update(context)
        spent = sum(context.seconds.values())
        if spent:
            self.kmeans_share_ = self.objective_.kmeans_seconds / spent
            context.tell(f"k-means took {self.kmeans_share_:.1%} of the time")

    @property
    def keeps_decoder(self) -> bool:  # pyrefly: ignore  (it depends on the fit here)
        """Without a weight, pre-training's decoder no longer fits; a newly trained one does."""
        return self.recon_weight > 0 or ("head_" in vars(self) and bool(self.head_.decoder))
