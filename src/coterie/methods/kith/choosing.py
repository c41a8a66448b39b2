"""From trained heads to the one clustering that the network then learns."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from ...math.graph import smooth
from ...math.merge import joint, modularity, one_hot
from ...math.merge import stability as rand_index
from ...runtime.rng import numpy_rng
from ...train.head import Head
from ...train.view import Context
from .consensus import VOICE_ROUNDS, consensus
from .density import describe
from .heads import Families, finalists, is_giant, verdict
from .judge import FEW_COLUMNS, GAUSSIAN_KINDS, WORDED, Verdict, decide
from .rivals import means, table_rivals
from .row_features import words_in
from .stability import Stability, repeat, way_of
from .start import fitted_head, smoothed, starting_heads
from .words import NAMES, told

if TYPE_CHECKING:
    from .method import Kith

STARTS = ("direct", "merged", "kmeans", "spectral", "linkage")  # from which EM begins
SOUND = ("spectral", "mod")  # ways of merging
AGREED = 0.95  # Rand index of direct and merged heads from which they need no consensus
HALF = 0.5  # weight of a row's neighbours in learned labels: they do not overrule its own
JUDGED_ROWS = 20_000  # rows whose edges decide about merging and choosing
NORM_ROWS = 20_000  # rows that normalisation takes its moments from, about


@torch.no_grad()
def choose(kith: "Kith", context: Context) -> None:
    """Ask all candidates, let the judge choose, and set up the head that learns the winner."""
    # on the host: most candidates go row by row, or count in float64
    head, rng = context.head.on_host(), numpy_rng(context.seed, "merge")
    fixed = numpy_rng(0, "rivals")  # what does not see the network is the same for every seed
    h, k = embed(context).cpu(), kith.settings_.n_clusters
    judged = None
    if len(h) > JUDGED_ROWS:
        judged = torch.from_numpy(np.sort(rng.choice(len(h), JUDGED_ROWS, replace=False)))
    families = kith.candidates(h, head, judged, rng)
    best, firm = finalists(families)
    own = verdict(kith.sizes, best["direct"]["cut"], best["merged"]["cut"], firm)
    words = words_in(context.rows) if kith.kind_ in WORDED else None
    # judged as the consensus is, by what a row and its neighbours say together; texts on their own
    rounds = VOICE_ROUNDS if words is None else 0
    said_by = {
        name: (h @ c["weight"] + c["bias"]).softmax(1) @ c["merge"] for name, c in best.items()
    }
    labels = {n: smoothed(q, head.graph, rounds).argmax(1) for n, q in said_by.items()}
    outputs = kith.outputs_of(h, head)
    voices = all_voices(outputs, families)
    shape, gap = "free", float("nan")
    columns = head.z.shape[1] if kith.kind_ == "table" else 0
    if kith.sizes == "auto" and len(h) > 2 * k:
        agreed = rand_index([c["labels"] for c in best.values()])
        if words is None and agreed < AGREED:
            common = consensus(voices, head.graph, k, rng)
            if not is_giant(modularity(joint(one_hot(common, k), head.graph, judged)), families):
                labels["consensus"] = common
        labels |= {"embedding": means(h, k, rng), "kmeans": means(head.z, k, fixed)}
        if 0 < columns <= FEW_COLUMNS:
            labels |= table_rivals(head.z, k, fixed)
        if kith.kind_ in GAUSSIAN_KINDS:
            starts = [labels[name] for name in STARTS if name in labels]
            found = describe(head.z, k, starts, fixed)
            labels["mixture"] = found.labels(head.z)
            shape, gap = found.mixture.shape, found.gap
    said = decide(labels, head.graph, judged, k, columns, gap, fixed, words)
    if kith.sizes != "auto":
        said = Verdict(own, min(set(best) - {own}), said.merits, said.cuts, "sizes were given")
    winner, second = said.winner, said.second
    state = {"kind": head.kind, "spread": head.spread}
    if winner in best:
        chosen = best[winner]
        params = {"weight": chosen["weight"], "bias": chosen["bias"]}
        state["merge"] = chosen["merge"]
        goal = target(said_by[winner], head.graph, head.graph.shape[1])
    else:
        q, state["merge"] = one_hot(labels[winner], k), torch.eye(k)
        params, goal = fitted_head(h, q), target(q, head.graph, HALF)
    refit = way_of(winner, k, head.z, h, head.graph, outputs, voices, shape)
    state["rand"], state["overlaps"] = repeat(labels[winner], k, refit, rng)
    state |= {f"{name}_labels": v.int() for name, v in labels.items()}
    alike = {name: rand_index([labels[winner], v]) for name, v in labels.items()}
    there = [name for name in NAMES if name in labels]
    state["alike"] = torch.tensor([alike[name] for name in there])
    state["agreement"] = torch.tensor(alike[second])
    over = best["merged"]
    state["over"] = (h @ over["weight"] + over["bias"]).argmax(1).int()
    state["labelled"] = torch.tensor(winner not in best)
    state["chosen"] = torch.tensor([NAMES.index(winner), NAMES.index(second)])
    state["cuts"] = torch.tensor([said.cuts[name] for name in there])
    rowwise = {name: getattr(head, name) for name in head.kinds["whole"]}
    rowwise["target"] = goal
    context.head, context.labels = Head(params, state, whole=rowwise), None
    for note in told(said, alike, Stability.of(state["rand"], state["overlaps"])):
        context.note(note)


def all_voices(
    outputs: list[list[torch.Tensor]], families: Families
) -> list[torch.Tensor]:  # (n, o) each
    """Outputs of all heads, and those of over-heads merged in the ways that make no giants."""
    merged = [p @ c["merge"] for way in SOUND for p, c in zip(outputs[1], families[way])]
    return [*outputs[0], *outputs[1], *merged]


@torch.no_grad()
def first_heads(context: Context, outputs: list[int]) -> dict[str, torch.Tensor]:
    """Heads with so many outputs each, fitted to the network as it begins."""
    update_norms(context)
    head = context.head.on_host()
    return starting_heads(embed(context).cpu(), head.z, head.graph, outputs)


def embed(context: Context) -> torch.Tensor:  # (n, e)
    # filled in place: parts and their sum at once would be twice the memory
    z = context.head.z
    h = z.new_empty(len(z), context.network.embedding_dim)
    for part, out in zip(z.split(4096), h.split(4096)):
        out.copy_(context.network.body(part))
    return h


def update_norms(context: Context) -> None:
    """Normalisation by the moments of clean rows, the same ones on every process."""
    z = context.head.z
    context.network.update_norms(z[:: math.ceil(len(z) / NORM_ROWS)])


def target(q: torch.Tensor, graph: torch.Tensor, weight: float) -> torch.Tensor:  # (n, k)
    """What the head learns: a row's assignment and, with a weight, that of its neighbours,
    sharpened by squaring."""
    mean = (q + weight * smooth(q, graph)).square()
    return mean / mean.sum(1, keepdim=True).clamp_min(1e-12)
