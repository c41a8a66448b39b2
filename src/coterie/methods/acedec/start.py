"""How ACe/DeC finds its first space and its first centres, by either start."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ...math.assign import squared_distances, squared_error
from ...math.axes import (
    axis_scatter,
    fit_space,
    logits,
    random_rotation,
    rotated,
    space_map,
    unrotated,
    whitening,
)
from ...math.centers import cluster_sums, kmeans
from ...math.subspace import beta_optimum
from ...runtime.processes import current, row_count, row_mean, rows_at, sum_parts
from ...train.batch import Step
from ...train.head import Head
from ...train.plan import Call, Phase, init_head
from ...train.settings import Settings
from ...train.view import Context

if TYPE_CHECKING:
    from .method import ACeDeC


START_ROWS = 20_000  # rows that the start is found on, at most
FIXED_SPACE = ("dec", "idec", "dekm")  # objectives that see a copy of the space; see `ACeDeC`
Frame = tuple[torch.Tensor, torch.Tensor]  # a fixed linear map of the codes and its inverse


def first_head(method: "ACeDeC", z: torch.Tensor, rng: np.random.Generator) -> Head:  # (n, d)
    """Start "settled": closed forms on whitened codes; "random": k-means on random axes."""
    s, d = method.settings_, z.shape[1]
    if s.start == "settled":
        frame, n, world = whitening(z), row_count(z), current()
        white = (z - row_mean(z)) @ frame[0]
        some = torch.from_numpy(np.sort(rng.permutation(n)[:START_ROWS])).to(z.device)
        some = rows_at(world, white, some, n)
        # among many axes half of them are seldom the right ones
        V, beta, centers = fit_space(some, s.n_clusters, rng, n_init=max(s.n_init, d))
        world.broadcast([V, beta, centers])
        labels = squared_distances(white @ (V * beta), centers @ (V * beta)).argmin(1)
        return make_head(method, z, labels, frame, V, rng)
    eye = torch.eye(d, dtype=z.dtype, device=z.device)
    frame, V = (eye, eye.clone()), random_rotation(d, rng).to(z)
    half = z @ V[:, : max(1, d // 2)]
    labels = kmeans(half, s.n_clusters, rng=rng, n_init=s.n_init, part=True).labels
    return make_head(method, z, labels, frame, V, rng)


def make_head(
    method: "ACeDeC",
    z: torch.Tensor,  # (n, d)
    labels: torch.Tensor,  # (n,)
    frame: Frame,
    V: torch.Tensor,  # (d, d)
    rng: np.random.Generator,
) -> Head:
    """Centres of the labels, the best beta for them, and the objective's own tensors."""
    s, inner = method.settings_, method.objective_.init_head(z, rng)
    kinds = {k: {n: getattr(inner, n).data for n in names} for k, names in inner.kinds.items()}
    sums, counts = map(sum_parts, cluster_sums(z, labels, s.n_clusters))
    centers = sums / counts[:, None].clamp_min(1)
    scatter = axis_scatter(z, labels, centers, frame[0] @ V, row_mean(z))
    beta = beta_optimum(*map(sum_parts, scatter))
    kinds["param" if "centers" in kinds["param"] else "state"]["centers"] = centers
    kinds["param"] |= {"V": V, "b": logits(beta)}
    kinds["state"] |= {"frame": frame[0], "unframe": frame[1], "shared": row_mean(z)}
    kinds["state"] |= {"counts": counts, "spread": torch.zeros_like(V)}
    if s.objective in FIXED_SPACE:
        kinds["state"]["held"] = frame[0] @ (V * beta)
    head = Head(kinds["param"], kinds["state"], kinds["rows"])
    hold_scale(s, z, head)
    return head


def hold_scale(s: Settings, z: torch.Tensor, head: Head) -> None:  # (n, d)
    """Stretch or shrink the frame until the codes vary in it as much as the rows do."""
    held = s.held_variance * s.sampled_variance
    seen = float(row_mean(((z - row_mean(z)) @ head.frame).square()).sum())
    if s.start == "settled" and seen > 0 and held > 0:
        factor = (held / seen) ** 0.5
        head.frame.mul_(factor)
        head.unframe.div_(factor)


def space_phase(method: "ACeDeC") -> list[Phase | Call]:
    """Start "random", as in the paper: V and beta by gradient, then k-means in their space."""
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
            found = kmeans(u, method.n_clusters, rng=rng, n_init=method.n_init, part=True)
            frame = head.frame, head.unframe
            return make_head(method, z, found.labels, frame, head.V.data, rng)

        init_head(make, "recluster").function(context)

    phase = method.phase("space", method.space_epochs, train_step=space_step, augment=None)
    phase.optimizers = alone
    return [phase, Call(recluster, "recluster")]
