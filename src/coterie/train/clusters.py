"""Clusters in the middle of training: those that lost their rows, and how large the others are."""

from typing import TYPE_CHECKING

import torch

from ..math.centers import reseed_empty
from ..runtime.processes import all_gather
from ..runtime.rng import numpy_rng
from .batch import TrainingError

if TYPE_CHECKING:
    from .engine import Engine

SAMPLE_ROWS = 1000  # rows that tell the cluster sizes of an epoch when no update does


def reseed_lost(engine: "Engine", labels: torch.Tensor, k: int) -> bool:  # (part,)
    """Do with clusters that have no rows what `empty` says; True where centres were moved."""
    counts = engine.world.sum(torch.bincount(labels, minlength=k))
    if engine.empty == "keep" or bool((counts > 0).all()):
        return False
    gone = torch.nonzero(counts == 0).flatten().tolist()
    where = f"in phase {engine.phase.name!r}, epoch {engine.epoch}"
    if engine.empty == "raise":
        raise TrainingError(
            f"clusters {gone} of {k} have no rows {where}; "
            "lower n_clusters, or use empty='reseed' or empty='keep'"
        )
    rng = numpy_rng(engine.seed, engine.phase.name, engine.step, "empty")
    whole = engine.world.concat(engine.encode_all(), engine.rows.n)  # seldom needed
    centers, moved = reseed_empty(engine.head.centers.data, counts, whole, rng)
    engine.head.centers.data.copy_(centers)
    engine.notes.append(f"clusters {moved} lost all rows {where} and were re-seeded")
    return bool(moved)


@torch.no_grad()
def cluster_sizes(engine: "Engine") -> dict[str, float]:
    """Number of clusters with rows, and shares of the smallest and the largest of them."""
    labels, n, world = engine.labels, engine.rows.n, engine.world
    if labels is None:
        index = torch.linspace(0, n - 1, min(SAMPLE_ROWS, n)).long()
        engine.network.eval()
        scores = engine.assign(engine.network.encode(engine.feed(index)), engine.head)
        engine.network.train()
        counts = torch.bincount(scores.argmax(1).cpu())
    else:
        k = int(all_gather(world, labels.max()).max()) + 1
        counts = world.sum(torch.bincount(labels.cpu(), minlength=k))
    shares = counts.double() / counts.sum()
    engine.progress.sizes(shares.tolist())
    used = shares[shares > 0]
    return {
        "clusters_used": len(used),
        "smallest_share": round(used.min().item(), 4),
        "largest_share": round(used.max().item(), 4),
    }
