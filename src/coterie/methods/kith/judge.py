"""Which of the candidates is the result? Two questions, both without labels.

1. Are k Gaussians all there is to say about the rows (`density`)? Then their components are the
   clusters, however much they overlap. Asked of tables and of embeddings; features of images, texts
   and counts are no Gaussians.
2. If not, clusters are what the neighbour graph keeps apart: the candidate wins for which one end
   of an edge tells most of the other (`math.merge.edge_information`). In many columns graphs are
   noisier, and a giant cluster with a few strays is a cheap way to be told well: there modularity,
   which chance gives nothing, counts as much.

Graphs of texts are full of accidents: neighbours share a signature or a turn of phrase. There the
words decide: the candidate wins whose clusters make the words of an unseen text likeliest.

Where the rows are too few to tell two candidates apart, spectral clustering or linkage wins: they
hardly know of the seed. A candidate with a cluster that is empty, or nearly so, has answered
another question: a giant and a few strays are easily told apart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...math.merge import edge_information, joint, modularity, normalised_cut, one_hot
from ...math.vocabulary import word_information

ADEQUATE = 0.03  # nats a row by which richer densities may be better than k Gaussians
GAUSSIAN_KINDS = ("table", "vector")
WORDED = ("text",)  # kinds whose neighbours share accidents: words decide there, not the graph
STEADY = ("spectral", "linkage")
FINER = 1 / 3  # power of the entropy of sizes by which words count less
STRAYS = 0.05  # of the mean size: a smaller cluster is none
RESAMPLES, ERRORS = 20, 2.0  # draws of the rows, and standard errors that are noise
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
    graph: torch.Tensor,
    judged: torch.Tensor | None,  # rows whose edges count; None: all
    k: int,
    columns: int,  # of a table, 0 for other kinds
    gap: float,  # to richer densities; nan: not asked
    rng: np.random.Generator,
    words: Any = None,  # CSR (n, d) of texts
) -> Verdict:
    """The verdict on all candidates."""
    few = 0 < columns <= FEW_COLUMNS
    joints = {name: joint(one_hot(v, k), graph, judged) for name, v in labels.items()}
    if words is None:
        merits = {name: merit(j, few) for name, j in joints.items()}
    else:
        merits = {name: wording(v.numpy(), k, words) for name, v in labels.items()}
    cuts = {name: normalised_cut(j) for name, j in joints.items()}
    order = sorted(merits, key=lambda name: -merits[name])
    order.sort(key=lambda name: has_strays(labels[name], k))
    top = order[0]
    if top not in STEADY and any(name in labels for name in STEADY):
        noise = noises(labels, top, graph, judged, k, few, rng)
        taken = next((n for n in order if merits[top] - merits[n] <= noise.get(n, -1)), top)
        order = [taken] + [n for n in order if n != taken]
    if "mixture" in labels and gap < ADEQUATE:
        second = next(name for name in order if name != "mixture")
        why = (
            f"no richer density describes the rows better than {k} Gaussians "
            f"({max(gap, 0):.3f} nats a row, less than {ADEQUATE:g})"
        )
        return Verdict("mixture", second, merits, cuts, why)
    if words is not None:
        why = "its clusters tell most about the words of a text that they have not seen"
        return Verdict(order[0], order[1], merits, cuts, why)
    why = "its clusters follow the neighbour graph best "
    if order[0] != top:
        why = f"its clusters follow the graph as well as {top}'s and change less with the seed "
    why += f"({100 * cuts[order[0]]:.1f} % of its edges run between clusters)"
    if "mixture" in labels:
        why += (
            f", and {k} Gaussians do not describe the rows (richer densities gain {gap:.2f} nats "
            "a row)"
        )
    return Verdict(order[0], order[1], merits, cuts, why)


def has_strays(labels: torch.Tensor, k: int) -> bool:  # (n,)
    """Whether a cluster has fewer than a twentieth of the rows that equal sizes would give it."""
    return int(torch.bincount(labels.long(), minlength=k).min()) < STRAYS * len(labels) / k


def merit(j: torch.Tensor, few: bool) -> float:  # (k, k) -> float
    """How well the neighbour graph keeps clusters apart; larger is better."""
    return edge_information(j) + (0.0 if few else modularity(j))


def wording(labels: np.ndarray, k: int, words: Any) -> float:  # (n,), CSR (n, d)
    """How much clusters tell about words, less what finer ones always tell; larger is better."""
    shares = np.bincount(labels, minlength=k) / len(labels)
    entropy = max(-float((shares * np.log(np.maximum(shares, 1e-30))).sum()), 1e-12)
    return word_information(labels, k, words) / entropy**FINER


def noises(
    labels: dict[str, torch.Tensor],
    first: str,
    graph: torch.Tensor,
    judged: torch.Tensor | None,
    k: int,
    few: bool,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Steady candidates, and by how much chance alone may set their merit apart from the first's.

    The difference is taken anew on rows that are drawn with replacement.
    """
    rows = np.arange(len(graph)) if judged is None else judged.numpy()
    near = graph[rows].numpy()
    steady = [name for name in STEADY if name in labels]
    there = [first, *steady]
    ends = {name: labels[name].numpy().astype(np.int64) for name in there}
    codes = {name: (v[rows, None] * k + v[near]).ravel() for name, v in ends.items()}
    drawn = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), RESAMPLES)
    found = {name: [] for name in there}
    for times in drawn:
        weights = np.repeat(times / near.size, near.shape[1])
        for name, code in codes.items():
            j = torch.from_numpy(np.bincount(code, weights, k * k).reshape(k, k))
            found[name].append(merit((j + j.T) / 2, few))
    return {
        name: ERRORS * float(np.std(np.subtract(found[first], found[name]), ddof=1))
        for name in there[1:]
    }
