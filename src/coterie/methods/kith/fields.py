"""What a user may set of Kith, and what a field that is left open means for the data at hand."""

import math
from typing import Any

from ...estimator.fields import SCHEDULES, StepFields
from ...estimator.params import param
from ...math import features as kinds
from .row_features import usual_neighbours

FEW_STEPS, STEPS = 60, 550  # of training, for very few rows and for many, at least
REFINE_STEPS, LONGEST = 50, 600  # of learning the winner, at least and at most
EPOCHS, REFINE_EPOCHS = 4, 1  # at least: with 2 epochs on MNIST no direct head finds all digits
NARROWEST, WIDEST, MANY_ROWS = 32, 256, 30_000  # of the embedding, by rows


def even_batch(s: Any) -> int:
    """About `batch_size` rows, such that no tiny batch is left over."""
    return math.ceil(s.n / max(1, round(s.n / s.batch_size)))


def usual_steps(n: int) -> int:
    """Steps of training, at least: few rows are learned in fewer steps."""
    return min(STEPS, FEW_STEPS + n // 8)


def usual_embedding(directions: int, n: int) -> int:
    """Size of the embedding: 32 for up to 15 columns or clusters, doubled with them up to 128, or
    to 256 for many rows."""
    most = WIDEST if n >= MANY_ROWS else WIDEST // 2
    return max(NARROWEST, min(most, 2 ** int(math.log2(4 * directions))))


class KithFields(StepFields):
    """Features, graph, heads, views, network and steps of Kith."""

    kind: str = param("auto", "kind of data; decides the features", choices=("auto", *kinds.KINDS))
    sizes: str = param(
        "auto",
        "sizes of the clusters: equal (a direct head), free (a merged over-head), or auto (the "
        "best of all candidates, chosen without labels)",
        choices=("auto", "equal", "free"),
    )
    n_neighbors: int | None = param(
        None,
        "neighbours of each row; None: 10, or 5 below 2,000 rows",
        ge=1,
        rule=lambda s: usual_neighbours(s.n),
    )
    balance: float = param(2.0, "weight of the entropy term; more makes sizes more equal", ge=0)
    direct_heads: int = param(5, "heads with one output per cluster", ge=1)
    over_heads: int = param(3, "heads with more outputs than clusters", ge=1)
    outputs: int | None = param(
        None,
        "outputs of an over-head; None: four per cluster, but at least 40 and at most n / 5",
        ge=1,
        rule=lambda s: max(40, 4 * s.n_clusters),
    )
    mix: float = param(0.5, "how far a view may go towards a neighbour, from 0 to 1", ge=0, le=1)
    noise: float = param(0.1, "noise of a view, in standard deviations of each feature", ge=0)
    moved: bool = param(True, "images: half of the views are rotated and shifted a little")
    dropout: float | None = param(
        None, "share that a view loses; None: 0.7 of the words, 0.5 of the genes", ge=0, le=1
    )
    hidden: tuple[int, ...] | None = param(
        None,
        "hidden layers before the embedding; None: one of twice its size",
        ge=1,
        group="network",
    )
    embedding_dim: int | None = param(
        None, "size of the embedding; None: 32 to 256, by rows and columns", ge=1, group="network"
    )
    epochs: float | None = param(
        None,
        "epochs of training; None: 4, but at least 60 to 550 steps, by the number of rows",
        ge=0,
        group="training",
        rule=lambda s: s.length((EPOCHS, usual_steps(s.n)), even_batch(s)),
    )
    lr: float = param(5e-3, "peak learning rate", gt=0, group="training")
    schedule: str = param("onecycle", "learning-rate schedule", choices=SCHEDULES, group="training")
    optimizer: str = param("adamw", "optimiser", choices=("adamw", "adam", "sgd"), group="training")
    weight_decay: float = param(0.01, "decay of the weights", ge=0, group="training")
    refine_epochs: float | None = param(
        None,
        "most epochs of learning the chosen clusters; None: 1, or 600 steps if that is more",
        ge=0,
        group="training",
        rule=lambda s: s.length((REFINE_EPOCHS, LONGEST), even_batch(s)),
    )
    refine_lr: float = param(2e-3, "learning rate of refining", gt=0, group="training")
