"""Kith: rows and their neighbours belong together."""

import time
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ...data.chunks import epoch_steps
from ...estimator.deep import DeepClusterer
from ...math import features as kinds
from ...math.assign import kl
from ...math.graph import neighbours
from ...nets.feature_net import FeatureNet
from ...runtime.processes import join
from ...runtime.rng import numpy_rng
from ...train.batch import Batch, Terms
from ...train.head import Head
from ...train.plan import Call, Phase
from ...train.rows import Rows
from ...train.settings import Settings
from ...train.view import Context, View
from .choosing import choose, first_heads, update_norms
from .explained import Explained
from .fields import REFINE_EPOCHS, REFINE_STEPS, KithFields, even_batch, usual_embedding
from .heads import Families, candidates
from .judge import WORDED
from .row_features import LOST, all_features, find_kind, moved_features, thin_rows
from .start import random_heads
from .views import mixed, thinned

OWN_STEPS = 100  # of learning the winner, the most if it is a head of the network
LEARNED = 0.998  # share of rows on which network and winner agree when it ends
TINY = 1e-30  # below it a probability is none


class Kith(KithFields, Explained, DeepClusterer):
    """Rows and their nearest neighbours belong together.

    Fixed features (HOG and pixels, standardised columns, tf-idf of unit length; `math.features`)
    give a graph of nearest neighbours. A small network with several softmax heads then learns to
    give a row i and a random neighbour j the same output, and to use all outputs:
    mean of -log <p_i, p_j> minus balance times the entropy of the mean p, both rows as random
    views. There is no decoder and no pre-training. A view is a row that was shifted towards a
    neighbour, plus noise; half of the views of images are also rotated and shifted a little.

    Direct heads have one output per cluster; the entropy makes their clusters equal in size.
    Over-heads have about four times as many outputs, which are merged by how often an edge joins
    two of them (`math.merge`: spectral, mod, ncut), so that sizes are free. The way of merging
    on which the over-heads agree best (mean adjusted Rand index, less 0.04) is kept. Merges that
    end in a giant cluster (modularity 0.05 below that of the direct heads) are left out.

    Besides the heads there are other candidates: the `consensus` of all heads on the graph, k-means
    on the embedding and on the features, for narrow tables linkage and spectral clustering, for
    tables and vectors a mixture of Gaussians. If no richer density describes unseen rows better,
    the mixture is chosen (`density`), otherwise the candidate whose clusters the neighbour graph
    separates best; among those that are as good up to chance, the steadiest (`judge`). Of texts,
    the one is chosen whose clusters tell most about words (`math.vocabulary`). `candidates_` holds
    the labels of all, `agreements_` their adjusted Rand index with the chosen one, `stability_` how
    often each cluster reappears when the clustering is repeated on parts of the rows.

    Views of texts lose 70 % of their words, those of cells half of their genes.

    Finally `refine` trains the chosen head on its own assignment, averaged over the graph and
    sharpened as in DEC. If another candidate was chosen, it trains the network on its labels.
    """

    key = "kith"
    title = "Kith"
    summary = "neighbours belong together: a graph, a small network, many heads; no pre-training"
    reference = "coterie; after SCAN (Van Gansbeke et al. 2020) and DEC"
    cluster_axes = {"merge": 1, "overlaps": 1}
    tiny = {"hidden": (16,), "embedding_dim": 8, "epochs": 12, "refine_epochs": 1, "n_neighbors": 5}

    words: ClassVar[int] = 5000
    facts: ClassVar[tuple[str, ...]] = ("outside",)
    random_start: ClassVar[tuple[str, ...]] = WORDED  # kinds of data whose heads begin at random

    # -- network and plan -------------------------------------------------------------------
    def _fit(self, rows: Rows) -> None:
        self.kind_ = find_kind(rows, self.kind)
        self._rows_of_fit, self._words, self._labelled = rows, None, None
        try:
            super()._fit(rows)
        finally:
            # a model does not hold the data
            del self._rows_of_fit, self._words, self._labelled

    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        size = settings.embedding_dim
        if not hasattr(self, "kind_"):  # a loaded model
            self.kind_, size = kinds.KINDS[int(self.head_.kind)], len(self.head_.weight)
        features = kinds.Features(self.kind_, settings.shape)
        size = size or usual_embedding(max(features.size, settings.n_clusters), settings.n)
        hidden = (2 * size,) if settings.hidden is None else settings.hidden
        return FeatureNet(features, (*hidden, size), generator)

    def plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        network.share(join(self.devices, self.device))  # pyrefly: ignore  (a FeatureNet)
        s, batch = self.settings_, even_batch(self.settings_)
        epochs, refine = s.epochs, s.refine_epochs
        optim = self.optim(weight_decay=self.weight_decay)
        common = {"batch_size": batch, "sizes": False}
        train = self.phase("train", epochs, loss=self.loss, optim=optim, **common)
        decay = {"weight_decay": self.weight_decay}
        optim = self.optim(lr=self.refine_lr, schedule="constant", **decay)
        hooks = {"loss": self.refine_loss, "optim": optim}
        hooks |= {
            "update": self.update,
            "update_every": max(REFINE_STEPS, epoch_steps(s.n, batch) // 2),
        }
        plan = [Call(self._start, "graph"), train, Call(self._choose, "merge")]
        if not refine:
            return plan
        learn = self.phase("refine", refine, **common, **hooks)
        return [*plan, learn, Call(update_norms, "settle")]

    def _start(self, context: Context) -> None:
        """Features of all rows, their graph, and heads that begin at its smoothed features."""
        rows, network, world = context.rows, context.network, context.world
        begin = time.perf_counter()
        rows.features = z = all_features(network.features, rows, context.seed, world)
        rowwise = {"z": z}
        if self.moved and self.kind_ == "image":
            rowwise["moved"] = moved_features(
                network.features, rows, context.seed, world, self.settings_.outside
            )
        took = time.perf_counter() - begin
        context.count_apart("features", took)
        k = min(self.settings_.n_neighbors, rows.n - 1)
        rowwise["graph"] = neighbours(z, k, numpy_rng(context.seed, "graph"), world=world)
        outputs = max(self.settings_.n_clusters, min(self.settings_.outputs, rows.n // 5))
        heads = self.direct_heads * [self.settings_.n_clusters] + self.over_heads * [outputs]
        params = random_heads(network.embedding_dim, sum(heads), context.seed)
        state = {"kind": torch.tensor(kinds.KINDS.index(self.kind_)), "spread": z.std(0)}
        context.head = Head(params, state, whole=rowwise)
        if self.kind_ not in self.random_start:
            context.head = Head(first_heads(context, heads), state, whole=rowwise)
        if self.kind_ in LOST:
            self._thin(network, context.head)

    # -- training ---------------------------------------------------------------------------
    def loss(self, batch: Batch, head: Head) -> Terms:
        k = head.graph.shape[1]
        pair = lambda b, g: torch.randint(k, (b,), generator=g)  # noqa: E731
        if batch.network.features.kind in LOST:  # their words are on the host
            partner = self._thin(batch.network, head)[1][
                batch.index, batch.draw_on_host(pair, "pair")
            ]
        else:
            partner = head.graph[batch.rows, batch.draw(pair, "pair")]
        views = [self._view(batch, head, None, "own"), self._view(batch, head, partner, "j")]
        h = batch.network.body(torch.cat(views))
        near, even = [], []
        for logits in self._split(torch.addmm(head.bias, h, head.weight)):  # (2b, heads, outputs)
            p = logits.softmax(2)
            own, other = p.chunk(2)
            near.append(-(own * other).sum(2).clamp_min(TINY).log().mean(0))
            mean = batch.mean(p.view(2, -1, *p.shape[1:]).mean(0))
            even.append((mean * mean.clamp_min(TINY).log()).sum(1))
        return {
            "neighbours": torch.cat(near).mean(),
            "balance": self.balance * torch.cat(even).mean(),
        }

    def _split(self, t: torch.Tensor) -> list[torch.Tensor]:  # (b, all outputs)
        """Direct heads and over-heads: (b, heads, outputs) each."""
        direct = self.direct_heads * self.settings_.n_clusters
        parts = t.split([direct, t.shape[1] - direct], 1)
        return [
            p.reshape(len(t), c, -1) for p, c in zip(parts, (self.direct_heads, self.over_heads))
        ]

    def _view(self, batch: Batch, head: Head, rows: torch.Tensor | None, key: str) -> torch.Tensor:
        """A variant of rows, those of the batch if None."""
        kind = batch.network.features.kind
        if kind in LOST:
            lost = LOST[kind] if self.dropout is None else self.dropout
            words, _ = self._thin(batch.network, head)
            return thinned(batch, words, batch.index if rows is None else rows, key, lost)
        rows = batch.rows if rows is None else rows
        return mixed(batch, head, rows, key, self.mix, self.noise)

    def _thin(self, network: nn.Module, head: Head) -> tuple[Any, torch.Tensor]:
        """What views of texts and counts are made of, and the graph, on the host; made once."""
        if self._words is None:
            self._words = thin_rows(network.features, self._rows_of_fit), head.graph.cpu()
        return self._words

    # -- merging and choosing ---------------------------------------------------------------
    def candidates(
        self, h: torch.Tensor, head: Head, judged: torch.Tensor | None, rng: np.random.Generator
    ) -> Families:
        """Clusterings of all heads on the embedding h (n, e)."""
        direct, over = self._heads(head)
        return candidates(h, direct, over, head.graph, judged, self.settings_.n_clusters, rng)

    def _heads(self, head: Head) -> list[list[tuple[torch.Tensor, torch.Tensor]]]:
        """Weight and bias of each direct head and of each over-head."""
        weights, biases = self._split(head.weight.data), self._split(head.bias.data[None])
        return [list(zip(w.unbind(1), b[0].unbind(0))) for w, b in zip(weights, biases)]

    def outputs_of(self, h: torch.Tensor, head: Head) -> list[list[torch.Tensor]]:
        """Outputs (n, o) of all direct heads, and of all over-heads."""
        return [[(h @ w + b).softmax(1) for w, b in family] for family in self._heads(head)]

    def _choose(self, context: Context) -> None:
        update_norms(context)
        choose(self, context)

    # -- learning the winner ----------------------------------------------------------------
    def update(self, view: View, head: Head) -> bool:
        """Has the network learned the winner? Then the phase ends."""
        network = view.network
        training = network.training
        network.eval()
        parts = zip(head.z.split(4096), head.target.split(4096))
        hits = sum(
            int((self.assign(network.body(z), head).argmax(1) == t.argmax(1)).sum())
            for z, t in parts
        )
        network.train(training)
        if not self._is_labelled(head) and view.step >= max(
            OWN_STEPS, REFINE_EPOCHS * self._batches()
        ):
            return True  # a head of its own has only to be sharpened
        return view.step >= REFINE_STEPS and hits >= LEARNED * view.n

    def _is_labelled(self, head: Head) -> bool:
        """Was the winner none of the network's heads? Read once: it stays for the whole phase."""
        if self._labelled is None:
            self._labelled = bool(head.labelled)
        return self._labelled

    def _batches(self) -> int:
        return epoch_steps(self.settings_.n, even_batch(self.settings_))

    def refine_loss(self, batch: Batch, head: Head) -> Terms:
        if self._is_labelled(head):  # another's borders may be finer than the steps of a view
            z = head.z.index_select(0, batch.rows)
        else:
            z = self._view(batch, head, None, "own")
        return {"kl": kl(head.target[batch.rows], self.assign(batch.network.body(z), head))}

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, e) -> (n, k)
        if "merge" not in head:  # still training: the first direct head stands for all
            k = self.settings_.n_clusters
            return (latents @ head.weight[:, :k] + head.bias[:k]).softmax(1)
        return (latents @ head.weight + head.bias).softmax(1) @ head.merge
