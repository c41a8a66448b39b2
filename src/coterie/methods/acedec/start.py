"""The start of ACe/DeC's paper: V and beta by gradient on a fixed network, then k-means in them."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ...math.assign import squared_error
from ...math.axes import rotated, space_map, unrotated
from ...math.centers import kmeans
from ...train.batch import Step
from ...train.head import Head
from ...train.plan import Call, Phase, init_head
from ...train.view import Context

if TYPE_CHECKING:
    from .method import ACeDeC


def space_phase(method: "ACeDeC") -> list[Phase | Call]:
    optim = method.optim(lr=method.space_lr, schedule="onecycle")

    def alone(network: nn.Module, head: Head) -> dict:
        return {"main": ([head.V, head.b], optim)}

    def space_step(step: Step, head: Head) -> None:
        batch = step.batch
        batch.network.eval()  # it stays as it is, layers that learn from what they see included
        with torch.no_grad():
            z = batch.z_clean
        terms = {"cluster": method.distance(z, z, head), "shared": method.shared(z, head)}
        rebuilt = batch.network.decode(unrotated(rotated(z, head), head))
        terms["reconstruction"] = squared_error(batch.clean, rebuilt)
        step.optimize("main", terms, batch.weight)
        method.move_means(batch, head)

    def recluster(context: Context) -> None:
        def make(z: torch.Tensor, rng: np.random.Generator) -> Head:
            head = context.head
            u = z @ space_map(head).detach()
            found = kmeans(u, method.n_clusters, rng=rng, n_init=method.n_init)
            frame = head.frame, head.unframe
            return method.make_head(z, found.labels, frame, head.V.data, rng)

        init_head(make, "recluster").function(context)

    phase = method.phase("space", method.space_epochs, train_step=space_step, augment=None)
    phase.optimizers = alone
    return [phase, Call(recluster, "recluster")]
