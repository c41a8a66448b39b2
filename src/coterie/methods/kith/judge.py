"""Which of the candidates is the result? Two questions, both without labels.

1. Are k Gaussians all there is to say about the rows (`density`)? Then their components are the
   clusters, however much they overlap. Asked of tables and of embeddings; features of images, texts
   and counts are no Gaussians.
2. If not, clusters are what the neighbour graph keeps apart: the candidate wins for which one end
   of an edge tells most of the other (`math.merge.edge_information`). In many columns graphs are
   noisier, and a giant cluster with a few strays is a cheap way to be told well: there modularity,
   which chance gives nothing, counts as much.
"""

from dataclasses import dataclass

import torch

from ...math.merge import edge_information, joint, modularity, normalised_cut, one_hot

ADEQUATE = 0.03  # nats a row by which richer densities may be better than k Gaussians
GAUSSIAN_KINDS = ("table", "vector")
HEADS = ("direct", "merged")
FEW_COLUMNS = 10  # up to here distances mean the same everywhere, and shapes may be thin


@dataclass(frozen=True)
class Verdict:
    """Name of the winner, the second, the merits of all, and why."""

    winner: str
    second: str
    merits: dict[str, float]
    cuts: dict[str, float]
    why: str


def decide(
    labels: dict[str, torch.Tensor],  # (n,) each, by the name of the candidate
    own: str,  # the network's own choice of its heads
    graph: torch.Tensor,
    judged: torch.Tensor | None,  # rows whose edges count; None: all
    k: int,
    columns: int,  # of a table, 0 for other kinds
    gap: float,  # to richer densities; nan: not asked
) -> Verdict:
    """The verdict on all candidates."""
    few = 0 < columns <= FEW_COLUMNS
    joints = {name: joint(one_hot(v, k), graph, judged) for name, v in labels.items()}
    merits = {name: merit(j, few) for name, j in joints.items()}
    cuts = {name: normalised_cut(j) for name, j in joints.items()}
    order = sorted(merits, key=lambda name: (-merits[name], name != own))
    if not few:  # between its heads the network has chosen: equal sizes please modularity
        order.sort(key=lambda name: name in HEADS and name != own)
    if "mixture" in labels and gap < ADEQUATE:
        second = next(name for name in order if name != "mixture")
        why = (
            f"no richer density describes the rows better than {k} Gaussians "
            f"({max(gap, 0):.3f} nats a row, less than {ADEQUATE:g})"
        )
        return Verdict("mixture", second, merits, cuts, why)
    why = (
        "its clusters follow the neighbour graph best "
        f"({100 * cuts[order[0]]:.1f} % of the edges leave a cluster)"
    )
    if "mixture" in labels:
        why += (
            f", and {k} Gaussians do not describe the rows (richer densities gain {gap:.2f} nats "
            "a row)"
        )
    return Verdict(order[0], order[1], merits, cuts, why)


def merit(j: torch.Tensor, few: bool) -> float:  # (k, k) -> float
    """How well the neighbour graph keeps clusters apart; larger is better."""
    return edge_information(j) + (0.0 if few else modularity(j))
