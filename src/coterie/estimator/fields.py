"""Fields that methods share, in groups: a method inherits the groups that it has a use for.

The rules below say what a field that is left open means for the data at hand.
"""

import dataclasses
from typing import Any

from ..nets import ACTIVATIONS, INITIALIZERS
from ..runtime.precision import quick_bfloat16
from .params import Fields, param

OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("constant", "polynomial", "onecycle")
AUGMENT = ("none", "affine", "rigid")

MANY_ROWS, WIDE_ROWS = 20_000, 256  # from here on an mlp is pre-trained as in the papers
NETWORK, LARGE_NETWORK = (512, 512), (500, 500, 2000)
WIDE_LAYER = 256  # from here on products in half precision gain time
CODE, WIDEST_CODE = 10, 64  # sizes of the embedding
FULL_WEIGHT = 256  # features from which on a clustering term weighs as much as the reconstruction


def _net(s: Any) -> str:
    return "conv" if s.images and min(s.shape[1:]) >= 4 else "mlp"


def is_large(s: Any) -> bool:
    """Many wide rows for an mlp: the network and the pre-training of the papers."""
    from_kith = s.init == "pretrained" and s.pretrain == "kith"
    return s.net == "mlp" and s.n >= MANY_ROWS and s.features >= WIDE_ROWS and not from_kith


def _embedding_dim(s: Any) -> int:
    """Ten; where no image tells the network what is near what, one for each cluster beyond."""
    return CODE if s.images else max(CODE, min(s.n_clusters, s.features, WIDEST_CODE))


def _hidden(s: Any) -> tuple[int, ...]:
    return LARGE_NETWORK if is_large(s) else NETWORK


def _precision(s: Any) -> str:
    """Half where it gains time (`benchmarks/precision.py --steps`) and was seen to cost no quality.

    Other devices and the conv net were not studied.
    """
    plain = s.net == "mlp" and not (s.init == "pretrained" and s.pretrain == "kith")
    wide = min(s.hidden, default=0) >= WIDE_LAYER
    on_cpu = str(s.device) == "cpu"
    return "half" if plain and wide and on_cpu and quick_bfloat16() else "single"


def _pretrain_epochs(s: Any) -> float:
    if s.pretrain == "kith":
        rule = s.method.decoder_rule
    else:
        rule = s.method.large_pretrain_rule if is_large(s) else s.method.pretrain_rule
    return s.length(rule, s.pretrain_batch_size)


def _epochs(s: Any) -> float:
    return s.length(s.method.train_rule, s.batch_size)


def _update_every(s: Any) -> float:
    return float(s.length(s.method.update_rule, s.batch_size))


def clustering_weight(s: Any) -> float:
    """A 256th for each feature, at most 1.

    The reconstruction is a sum over features. With few of them a weight of 1 wins before there is
    anything to cluster.
    """
    return min(1.0, s.features / FULL_WEIGHT)


def net_param(default: str) -> Any:
    help = "network: mlp, conv, auto (conv for images), or a module"
    return param(default, help, group="network", rule=_net)


def centers_param() -> Any:
    return param(
        "kmeans",
        "first centres: k-means on the embedding, or random ones (glorot, or uniform in -1..1)",
        choices=("kmeans", "glorot", "uniform"),
        group="training",
    )


def n_init_param(default: int = 10) -> Any:
    help = (
        "starts of k-means (of EM or SubKmeans in its place), of which the best one is kept; "
        "k-means with 100 clusters and more makes at most 1,000 / n_clusters"
    )
    return param(default, help, ge=1, group="training")


def restarts_param(default: int) -> Any:
    help = "trainings from different starts, of which the best one is kept"
    return param(default, help, ge=1, group="training")


def code_variance_param() -> Any:
    return param(
        50.0, "largest variance of the embedding when clustering begins; 0: no limit", ge=0
    )


class RunFields(Fields):
    """How a fit is run; none of these changes its result."""

    checkpoint_dir: Any = param(None, "folder for checkpoints; a fit resumes from it", group="run")
    checkpoint_seconds: float = param(30.0, "time between checkpoints", ge=0, group="run")
    time_budget: float | str | None = param(
        None, 'time that the fit may take: seconds, or such as "5m"', gt=0, group="run"
    )
    devices: int = param(1, "processes that share the work", ge=1, le=1024, group="run")
    callback: Any = param(None, "called with the record of each epoch", group="run")


RUN_FIELDS = tuple(f.name for f in dataclasses.fields(RunFields))


class NetworkFields(Fields):
    """The autoencoder."""

    counts: str = param(
        "auto",
        "counts of many columns (genes of cells): log (share of the row's total, logarithm, the "
        "2,000 most variable columns), raw; auto: log for whole numbers in 200 columns and more",
        choices=("auto", "log", "raw"),
    )
    net: Any = net_param("mlp")
    embedding_dim: int | None = param(
        None,
        "size of the embedding; None: 10; for rows that are not images one per cluster, if there "
        "are more than ten, up to 64",
        ge=1,
        group="network",
        rule=_embedding_dim,
    )
    hidden: tuple[int, ...] | None = param(
        None,
        "hidden layers of the mlp; None: 512-512, or 500-500-2000 for 20,000 or more rows of 256 "
        "or more values",
        ge=1,
        group="network",
        rule=_hidden,
    )
    channels: tuple[int, int, int] = param(
        (32, 64, 128), "channels of the conv net", ge=1, group="network"
    )
    activation: str = param(
        "relu", "activation of the mlp", choices=tuple(ACTIVATIONS), group="network"
    )
    initializer: str = param("xavier", "starting weights", choices=INITIALIZERS, group="network")
    precision: str = param(
        "auto",
        "precision of matrix products in training: single, or half (bfloat16); auto: half for an "
        "mlp with layers of 256 and more on a processor that multiplies bfloat16 itself",
        choices=("auto", "single", "half"),
        group="training",
        rule=_precision,
    )


class ScheduleFields(Fields):
    """Shared by pre-training and clustering."""

    decay_epochs: float | None = param(
        None, "epochs over which the schedule runs; None: the whole phase", gt=0, group="training"
    )


class PretrainFields(ScheduleFields):
    """Where the network comes from before clustering begins."""

    init: str = param(
        "pretrained", "start of the network", choices=("pretrained", "random"), group="training"
    )
    pretrain: str = param(
        "plain",
        "kind of pre-training; kith: Kith's features and network replace `net`",
        choices=("plain", "denoise", "layerwise", "kith"),
        group="training",
    )
    pretrain_epochs: float | None = param(
        None,
        "epochs of pre-training; None: by the number of rows",
        ge=0,
        group="training",
        rule=_pretrain_epochs,
    )
    pretrain_batch_size: int | None = param(
        None,
        "rows per step of pre-training; None: batch_size",
        ge=1,
        group="training",
        rule=lambda s: s.batch_size,
    )
    pretrain_lr: float | None = param(
        None,
        "learning rate of pre-training; None: 3e-3, or 1e-3 for many wide rows",
        gt=0,
        group="training",
        rule=lambda s: 1e-3 if is_large(s) else 3e-3,
    )
    pretrain_schedule: str | None = param(
        None,
        "learning-rate schedule of pre-training; None: onecycle, or constant for many wide rows",
        choices=(*SCHEDULES, None),
        group="training",
        rule=lambda s: "constant" if is_large(s) else "onecycle",
    )
    pretrain_optimizer: str = param(
        "adam", "optimiser of pre-training", choices=OPTIMIZERS, group="training"
    )
    pretrain_augment: bool = param(True, "use `augment` in pre-training too", group="training")
    augment: str = param(
        "none",
        "how images are changed in training: none, affine (rotated, shifted, scaled and sheared a "
        "little) or rigid (rotated and shifted a little)",
        choices=AUGMENT,
        group="training",
    )
    n_init: int = n_init_param()
    cache_dir: Any = param(None, "folder for pre-trained networks, shared by fits", group="run")


class StepFields(ScheduleFields):
    """Steps of gradient descent."""

    epochs: float | None = param(
        None,
        "most epochs of clustering; None: 20, or more for few rows",
        ge=0,
        group="training",
        rule=_epochs,
    )
    lr: float = param(1e-3, "learning rate of clustering", gt=0, group="training")
    schedule: str = param("constant", "learning-rate schedule", choices=SCHEDULES, group="training")
    optimizer: str = param("adam", "optimiser of clustering", choices=OPTIMIZERS, group="training")
    momentum: float = param(0.9, "momentum of sgd in clustering", ge=0, le=1, group="training")
    eps: float = param(1e-8, "epsilon of Adam in clustering", gt=0, group="training")
    clip: float | None = param(
        None, "largest norm of the gradient in clustering", gt=0, group="training"
    )


class UpdateFields(Fields):
    """Full-data updates between the steps, and when training ends."""

    update_every: int | float | None = param(
        None,
        "time between updates over all rows: a float counts epochs, an int batches; None: an "
        "epoch, but at least 20 batches",
        gt=0,
        group="training",
        rule=_update_every,
    )
    tol: float = param(
        1e-3,
        "training stops when the share of labels that changed between two updates is below this",
        ge=0,
        group="training",
    )
    empty: str = param(
        "reseed",
        "what to do with a cluster that lost all rows: start it elsewhere, keep it, raise an error",
        choices=("reseed", "keep", "raise"),
        group="training",
    )
