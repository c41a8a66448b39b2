"""DEKM: deep embedded k-means (Guo, Lin, Ye 2021), its full-batch twin and its five strategies."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..estimator.deep import DeepClusterer
from ..estimator.params import param
from ..estimator.streams import guarded_draws
from ..math.centers import KMeansResult, kmeans, within_scatter
from ..math.losses import squared_error
from ..train.batch import Batch, Terms, View
from ..train.head import Head
from ..train.plan import Call, Phase
from ..train.settings import FEW
from .baselines.kmeans import gaussian_scores

if TYPE_CHECKING:
    from ..train.engine import Engine

STRATEGIES = ("last", "random", "all", "random_raw", "all_raw")
CLEARLY = 1e-3  # a fresh k-means wins if its inertia is lower by this share


class DEKM(DeepClusterer):
    """Pull rows to their k-means centre along the axis where clusters are loosest.

    Between two runs of k-means the target of row i is frozen: V h_i of the last full pass, with
    one coordinate replaced by that of the row's centre. V holds the eigenvectors of the
    within-cluster scatter in ascending order, so the replaced one, the last, is the axis that
    tells clusters least apart. All other coordinates are anchored to their old values; without
    that anchor (a live target) the embedding collapses, since no decoder holds it.

    Loss of a batch: mean over rows of (1/e) |V f(x) - t|^2, e the size of the embedding (the
    authors' code takes the mean over dimensions and sums over the batch; Adam hides the
    difference). With augmentation f sees the changed row and t comes from the clean one; a part
    of each batch stays clean, or the scale of the embedding would run away.

    Strategies (figure 4): "last" axis of the rotated space; one "random" of its axes; "all" of
    them; "random_raw" and "all_raw" the same without rotation. A random axis is drawn anew at
    each update. "all" and "all_raw" are one loss, up to rounding.

    updating="minibatch" runs k-means after `update_every` mini-batches (the paper: 40 for images,
    10 for text), so only some rows have moved. updating="full" is DEKM_F: every row is moved once,
    one epoch, between two runs; the paper does not say whether it means that or one gradient
    step over all rows.

    Differences from the authors' code: rows are shuffled every epoch, not once; k-means starts
    from the previous centres instead of 2 n_iter restarts; eigh instead of eig; labels and centres
    belong to the finished network, not to the one of the last update.
    """

    key = "dekm"
    title = "DEKM"
    summary = "k-means on an embedding that is pulled together along its loosest axis"
    reference = "Guo, Lin, Ye: Deep embedded k-means clustering, 2021"
    variants = {
        "": {},
        "f": {"updating": "full"},
        **{s: {"strategy": s} for s in STRATEGIES},
    }
    tiny = {"hidden": (16,), "embedding_dim": 4, "pretrain_epochs": 2, "epochs": 2, "n_init": 2}
    align_labels = True
    few_rows = replace(FEW, epochs=(10, 500))
    train_rule = (15, 1100)
    update_rule = (0.5, 20)
    scores_are_probabilities = False

    strategy: str = param("last", "axes that are pulled to the centre", choices=STRATEGIES)
    updating: str = param(
        "minibatch",
        "k-means every update_every, or after each full epoch (DEKM_F)",
        choices=("minibatch", "full"),
    )
    fresh_runs: int = param(2, "fresh k-means runs that challenge the warm start", ge=0)
    fresh_every: int = param(5, "updates between two challenges", ge=1)
    clean_share: float = param(
        0.5, "share of each batch that is not augmented", ge=0, le=1, group="training"
    )
    decoder_epochs: float = param(
        0, "epochs of a decoder for the finished embedding", ge=0, group="training"
    )

    # -- training ---------------------------------------------------------------------------
    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        n, e = latents.shape
        begin = time.perf_counter()
        start = kmeans(latents, self.n_clusters, rng=rng, n_init=self.n_init)
        self._kmeans_seconds = time.perf_counter() - begin
        state = {
            "centers": start.centers,
            "variance": torch.ones(()),
            "rotation": torch.eye(e),
            "eigenvalues": torch.zeros(e),
            "updates": torch.zeros((), dtype=torch.int64),
            "decoder": torch.zeros((), dtype=torch.int64),
        }
        return Head(state=state, rows={"target": torch.zeros(n, e)})

    def training(self, network: nn.Module) -> list[Phase | Call]:
        hooks: dict[str, Any] = {"loss": self.loss, "update": self.update}
        if self.updating == "full":
            hooks["update_every"] = 1.0
        phase = self.phase("train", self.epochs, **hooks)
        plan: list[Phase | Call] = [phase, Call(self._finish, "finish")]
        return [*plan, *self._decoding(self.decoder_epochs)] if self.decoder_epochs else plan

    def _augmentation(self) -> Any:
        """Leave a part of each (shuffled) batch as it is.

        Targets come from clean rows. In trials where the network saw moved images only, the
        scale of the embedding grew from update to update (USPS: a thousandfold in 20 epochs)
        and the clusters with it; with a clean part it stood still.
        """
        change = super()._augmentation()
        if change is None:
            return None

        def some(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            clean = round(len(x) * self.clean_share)
            return torch.cat([x[:clean], change(x[clean:], generator)])

        return some

    def update(self, view: View, head: Head) -> torch.Tensor:
        """k-means, rotation and targets from the embedding of all rows."""
        z = view.latents
        begin = time.perf_counter()
        found = self._recluster(z, head, view.rng("kmeans"))
        self._kmeans_seconds = getattr(self, "_kmeans_seconds", 0.0) + time.perf_counter() - begin
        head.updates += 1
        head.centers.copy_(found.centers)
        head.variance.fill_(max(found.inertia / z.numel(), 1e-12))
        values, vectors = scatter_axes(z, found.labels, found.centers)
        if self.strategy.endswith("_raw"):
            vectors = torch.eye(z.shape[1])
            values = within_scatter(z, found.labels, found.centers).diagonal() / len(z)
        head.eigenvalues.copy_(values)
        head.rotation.copy_(vectors)
        axes = self._axes(z.shape[1], view.rng("axis"))
        head.target.copy_(rotated_target(z, found.labels, found.centers, head.rotation, axes))
        return found.labels

    def loss(self, batch: Batch, head: Head) -> Terms:
        return {"pull": self.clustering(batch.z, head, batch.rows)}

    def clustering(self, z: torch.Tensor, head: Head, rows: torch.Tensor) -> torch.Tensor:
        return (z @ head.rotation - head.target[rows]).square().mean(1).mean()

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, e) -> (n, k)
        return gaussian_scores(latents, head)

    def _recluster(self, z: torch.Tensor, head: Head, rng: np.random.Generator) -> KMeansResult:
        """Go on from the last centres; search afresh only if a few fresh runs do clearly better."""
        k = self.n_clusters
        warm = kmeans(z, k, rng=rng, init=head.centers)
        challenge = (int(head.updates) + 1) % self.fresh_every == 0
        if not self.fresh_runs or not challenge:
            return warm
        rival = kmeans(z, k, rng=rng, n_init=self.fresh_runs)
        if rival.inertia >= (1 - CLEARLY) * warm.inertia:
            return warm
        wide = kmeans(z, k, rng=rng, n_init=self.n_init)
        return min(rival, wide, key=lambda found: found.inertia)

    def _axes(self, e: int, rng: np.random.Generator) -> list[int]:
        if self.strategy.startswith("all"):
            return list(range(e))
        return [e - 1] if self.strategy == "last" else [int(rng.integers(e))]

    def _finish(self, engine: "Engine") -> None:
        """Centres, rotation and labels of the finished network."""
        self._last_update(engine)
        spent = sum(engine.seconds.values())
        if spent:
            share = self._kmeans_seconds / spent
            engine.progress.note(f"k-means took {share:.1%} of the time")
            self.kmeans_share_ = share

    # -- the decoder ------------------------------------------------------------------------
    def _decoding(self, epochs: float) -> list[Phase | Call]:
        def loss(batch: Batch, head: Head) -> Terms:
            network = batch.network.eval()  # layers that learn from what they see must not here
            with torch.no_grad():
                z = network.encode(batch.fed)
            rebuilt = network.train().decode(z)
            return {"reconstruction": squared_error(batch.clean, rebuilt)}

        def mark(engine: "Engine") -> None:
            engine.head.decoder.fill_(1)

        options = {"augment": None, "optim": self.pretrain_optim(), "update_every": 1.0}
        phase = self.phase("decoder", epochs, loss=loss, **options)
        return [phase, Call(mark, "decoder")]

    def train_decoder(self, X: Any, epochs: float = 10) -> "DEKM":
        """Train the decoder on the finished embedding, so that centres can be looked at.

        The embedding and the clusters do not change: only the decoder gets a gradient.
        """
        rows = self._rows(X)
        self._n_rows = rows.n
        with guarded_draws(self):
            engine = self._run(rows, self.network_, self._decoding(epochs), head=self.head_)
        self.history_ += engine.history
        for name, seconds in engine.seconds.items():
            self.seconds_[name] = self.seconds_.get(name, 0.0) + seconds
        return self

    @property
    def keeps_decoder(self) -> bool:
        """Pre-training's decoder no longer fits the embedding; a newly trained one does."""
        return "head_" in vars(self) and bool(self.head_.decoder)

    # -- looking inside ---------------------------------------------------------------------
    def _after_fit(self) -> None:
        self.rotation_ = self.head_.rotation.numpy()  # (e, e), axes in columns
        self.eigenvalues_ = self.head_.eigenvalues.numpy()  # within-cluster variance of each axis

    def transform(self, X: Any, space: str = "embedding") -> np.ndarray:  # (n, e) float32
        """Embedding of each row, as it is or "rotated": loosest axis of the clusters last."""
        if space not in ("embedding", "rotated"):
            raise ValueError(f"space={space!r}: choose 'embedding' or 'rotated'")
        check_is_fitted(self, "head_")
        if space == "embedding":
            return super().transform(X)
        return self._map(self._rows(X), lambda z: z @ self.head_.rotation)


def scatter_axes(z, labels, centers):  # (n, e), (n,), (k, e) -> (e,), (e, e)
    """Eigenvalues (ascending) and eigenvectors (columns) of the within-cluster scatter over n."""
    scatter = within_scatter(z.double(), labels, centers.double()) / len(z)
    values, vectors = torch.linalg.eigh(scatter)
    return values.clamp_min(0).to(z.dtype), vectors.to(z.dtype)


def rotated_target(z, labels, centers, rotation, axes):  # -> (n, e)
    """Rotated rows whose coordinates in `axes` are those of their centre (eq. 6)."""
    target = z @ rotation
    target[:, axes] = (centers @ rotation)[labels][:, axes]
    return target
