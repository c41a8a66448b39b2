"""From trained heads to the one clustering that the network then learns."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from ...math.graph import smooth
from ...math.merge import joint, normalised_cut, one_hot, stability
from ...runtime.rng import numpy_rng
from ...train.batch import Context
from ...train.head import Head
from .heads import finalists, verdict
from .judge import Verdict, decide
from .rivals import rivals

if TYPE_CHECKING:
    from .method import Kith

NAMES = ("direct", "merged", "kmeans", "mixture", "spectral", "linkage")
JUDGED_ROWS = 20_000  # rows whose edges decide about merging and choosing
DISAGREE = 0.6  # adjusted Rand index of winner and second below which the result says so
SAID = {
    "direct": "equal sizes (a direct head)",
    "merged": "free sizes (a merged head)",
    "kmeans": "k-means on the features",
    "mixture": "a mixture of Gaussians on the features",
    "spectral": "spectral clustering of the graph",
    "linkage": "linkage along the shortest links",
}


@torch.no_grad()
def choose(kith: "Kith", context: Context) -> None:
    """Ask all candidates, let the judge choose, and set up the head that learns the winner."""
    head, k, rng = context.head, kith.n_clusters, numpy_rng(context.seed, "merge")
    h = embed(context)
    judged = None
    if len(h) > JUDGED_ROWS:
        judged = torch.from_numpy(np.sort(rng.choice(len(h), JUDGED_ROWS, replace=False)))
    best, firm = finalists(kith.candidates(h, head, judged, rng))
    own = verdict(kith.sizes, best["direct"]["cut"], best["merged"]["cut"], firm)
    labels = {name: c["labels"] for name, c in best.items()}
    if kith.kind_ == "table" and kith.sizes == "auto" and len(h) > 2 * k:
        labels |= rivals(head.z, k, rng, list(labels.values()))
    cuts = {c: normalised_cut(joint(one_hot(v, k), head.graph, judged)) for c, v in labels.items()}
    told = Verdict(own, min(set(best) - {own}), float("nan"), "")
    if "mixture" in labels:
        told = decide(own, cuts, head.z, labels["mixture"], k, rng)
    winner, second = told.winner, told.second
    alike = stability([labels[winner], labels[second]])
    if winner in best:
        chosen = best[winner]
        params = {"weight": chosen["weight"], "bias": chosen["bias"]}
        merge = chosen["merge"]
        q = (h @ chosen["weight"] + chosen["bias"]).softmax(1) @ merge
        goal = target(q, head.graph, head.graph.shape[1])
    else:
        q, merge = one_hot(labels[winner], k), torch.eye(k)
        params, goal = fitted_head(h, q), target(q, head.graph, 1)
    state = {"kind": head.kind, "spread": head.spread, "merge": merge}
    state |= {f"{name}_labels": v.int() for name, v in labels.items()}
    state["agreement"] = torch.tensor(alike)
    state["labelled"] = torch.tensor(winner not in best)
    state["chosen"] = torch.tensor([NAMES.index(winner), NAMES.index(second)])
    state["cuts"] = torch.tensor([cuts[name] for name in NAMES if name in cuts])
    rowwise = {name: getattr(head, name) for name in head.kinds["rows"]}
    rowwise["target"] = goal
    context.head, context.labels = Head(params, state, rowwise), None
    if winner not in best:
        context.note(f"taken: {SAID[winner]}; {told.why}")
    if alike < DISAGREE:
        context.note(
            f"{SAID[winner]} and {SAID[second]} lead to different clusters (adjusted Rand index "
            f"{alike:.2f}); taken: {winner}; candidates_ has all"
        )


def embed(context: Context) -> torch.Tensor:  # (n, e)
    # filled in place: parts and their sum at once would be twice the memory
    z = context.head.z
    h = torch.empty(len(z), context.network.embedding_dim)
    for part, out in zip(z.split(4096), h.split(4096)):
        out.copy_(context.network.body(part))
    return h


def target(q: torch.Tensor, graph: torch.Tensor, weight: float) -> torch.Tensor:  # (n, k)
    """What the head learns: a row's assignment and, with a weight, that of its neighbours,
    sharpened by squaring."""
    mean = (q + weight * smooth(q, graph)).square()
    return mean / mean.sum(1, keepdim=True).clamp_min(1e-12)


def fitted_head(h: torch.Tensor, q: torch.Tensor) -> dict[str, torch.Tensor]:
    """Weight (e, k) and bias (k,) by least squares: where the learning of labels begins."""
    mean = h.mean(0)
    x = (h - mean).double()
    gram = x.T @ x / len(x)
    gram.diagonal().add_(1e-3 * float(gram.diagonal().mean()) + 1e-9)
    weight = torch.linalg.solve(gram, x.T @ (q - q.mean(0)).double() / len(x)).float()
    weight = 4 * weight  # fitted values 0 and 1 become logits that tell clusters apart
    return {"weight": weight, "bias": 4 * q.mean(0) - mean @ weight}
