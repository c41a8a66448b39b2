"""Kith as the start of another method, in place of an autoencoder."""

from typing import Any

import torch

from ..nets.kith_encoder import BODY
from ..runtime.duration import seconds
from ..runtime.rng import torch_rng
from ..train.plan import Call
from ..train.view import Context
from .kith import Kith

KITH_SHARE = 0.5  # of a time budget


def from_kith(method: Any) -> Call:
    """Fit Kith on the rows and hand its features and body to the network."""

    def function(context: Context) -> None:
        cls: Any = Kith
        kith = cls(
            method.n_clusters,
            random_state=context.seed,
            scale=method.scale,
            device=context.device,
            kind=context.network.net.features.kind,
            hidden=BODY[:-1],
            embedding_dim=BODY[-1],
            time_budget=KITH_SHARE * (seconds(method.time_budget) or 0) or None,
        )
        kith.fit(context.rows.source)
        labels = torch.from_numpy(kith.labels_).long().to(context.device)
        stream = torch_rng(context.seed, "kith", "code")
        context.network.take_over(kith.network_, kith.head_.z, labels, stream)

    return Call(function, "kith")
