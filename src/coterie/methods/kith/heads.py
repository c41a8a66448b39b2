"""Clusterings by the heads of the network, and the best of them, told without labels.

A candidate is a dict with a head's weight and bias, how its outputs merge into clusters, labels
(n,), the normalised cut of the neighbour graph, and modularity.
Candidates come in families: direct heads, and over-heads under each way of merging.
"""

import numpy as np
import torch

from ...math.merge import (
    greedy_merge,
    joint,
    modularity,
    normalised_cut,
    one_hot,
    spectral_merge,
    stability,
)

STABLE = 0.8  # merged heads that agree by this adjusted Rand index have found something
ALIKE = 0.04  # ways of merging whose heads agree as well as this are judged by their cuts
FAR_LOWER = 0.7  # a merged cut below this share of the direct one needs no such agreement
GIANT = 0.05  # loss of modularity against equal sizes that gives a giant cluster away

Families = dict[str, list[dict]]


def candidates(
    h: torch.Tensor,  # (n, e)
    direct: list[tuple[torch.Tensor, torch.Tensor]],
    over: list[tuple[torch.Tensor, torch.Tensor]],
    graph: torch.Tensor,
    judged: torch.Tensor | None,
    k: int,
    rng: np.random.Generator,
) -> Families:
    """Clusterings of the direct heads, and of the over-heads under three ways of merging.

    Parameters
    ----------
    direct, over : weight (e, outputs) and bias (outputs,) of each head
    judged : rows whose edges decide; None: all
    """

    def judge(weight, bias, q, merge) -> dict:
        labels = q.argmax(1)
        j = joint(one_hot(labels, k), graph, judged)
        graded = {"labels": labels, "cut": normalised_cut(j), "modularity": modularity(j)}
        return {"weight": weight, "bias": bias, "merge": merge, **graded}

    found: Families = {"direct": [], "spectral": [], "mod": [], "ncut": []}
    for w, b in direct:
        found["direct"].append(judge(w, b, h @ w + b, torch.eye(k, device=h.device)))
    for w, b in over:
        p = (h @ w + b).softmax(1)
        j = joint(p, graph, judged)
        ways = {"spectral": spectral_merge(j, k, rng)}
        ways |= {rule: greedy_merge(j, k, rule) for rule in ("mod", "ncut")}
        for way, names in ways.items():
            merge = one_hot(names, k).to(p)
            found[way].append(judge(w, b, p @ merge, merge))
    return found


def finalists(found: Families) -> tuple[dict[str, dict], float]:
    """The best direct and the best merged candidate, and how well over-heads agree on the latter.

    The way of merging on which over-heads agree best wins; ways that are alike in that, and heads
    of one way, are told apart by the lowest cut.
    """
    merged = without_giants(found)
    firm = {family: stability([c["labels"] for c in found[family]]) for family in merged}
    top = max(firm.values())
    best = [_lowest(made) for family, made in merged.items() if firm[family] >= top - ALIKE]
    return {"direct": _lowest(found["direct"]), "merged": _lowest(best)}, top


def without_giants(found: Families) -> Families:
    """Merged candidates, but not those that hide half of the data in one cluster.

    A giant cluster has few edges that leave it, and over-heads agree about it: cut and stability
    like it. Modularity does not: chance alone would keep most of its edges inside.
    """
    merged = {family: made for family, made in found.items() if family != "direct"}
    sound = {
        f: [c for c in made if not is_giant(c["modularity"], found)] for f, made in merged.items()
    }
    return {f: made for f, made in sound.items() if made} or merged


def is_giant(own: float, found: Families) -> bool:
    """Whether a modularity is so far below that of clusters of equal size."""
    return own < max(c["modularity"] for c in found["direct"]) - GIANT


def verdict(sizes: str, direct: float, merged: float, firm: float) -> str:
    """The lower cut wins, unless merging came out differently each time and gains too little."""
    if sizes != "auto":
        return {"equal": "direct", "free": "merged"}[sizes]
    trusted = firm >= STABLE or merged <= FAR_LOWER * direct
    return "merged" if merged < direct and trusted else "direct"


def _lowest(made: list[dict]) -> dict:
    return min(made, key=lambda c: c["cut"])
