"""Reading a model whose embedding is split into a cluster space and a shared space."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...math.axes import CLUSTER_AXIS, betas, masked, rotated, unrotated
from ...runtime.device import on_host, to_numpy, wide_dtype
from ...runtime.processes import row_count, sum_parts
from ...train.view import Context
from ..autoencoder import JointClusterer

SPACES = ("embedding", "full", "cluster", "shared")


class TwoSpaces(JointClusterer):
    """Pictures and coordinates of both spaces; the head holds V, b, shared, spread and centers.

    Axes are in the order of their beta, so the first columns of `transform(X, space="full")` are
    a scatter plot of the clusters that needs no t-SNE.
    """

    keeps_decoder = True
    attributes: ClassVar[dict[str, str]] = {
        "beta_": "weight of each axis in the cluster space, descending",
        "rotation_": "(d, d), axes in columns, in the order of `beta_`",
        "cluster_dims_": "number of axes that count as cluster space",
    }

    def finish_spaces(self, context: Context) -> None:
        """State of the finished network; axes in the order of their beta, clusters first."""
        head = context.head
        with torch.no_grad():
            order = torch.argsort(head.b, descending=True, stable=True)
            head.V.copy_(head.V[:, order].clone())
            head.b.copy_(head.b[order].clone())
            context.labels = self.update(context, head)
            u = rotated(context.latents - head.shared, head).to(wide_dtype(context.device))
            head.spread.copy_(sum_parts(u.T @ u) / row_count(u))

    def _after_fit(self) -> None:
        self.beta_ = to_numpy(betas(self.head_))  # (d,) descending
        self.rotation_ = to_numpy(self.head_.V)  # (d, d), axes in columns
        self.cluster_dims_ = max(1, int((self.beta_ > CLUSTER_AXIS).sum()))

    def transform(self, X: Any, space: str = "embedding") -> np.ndarray:  # (n, d) float32
        """Embedding z; "full": V'Pz; its "cluster" axes, the clearest first; its "shared" axes."""
        check_is_fitted(self, "head_")
        if space == "embedding":
            return super().transform(X)
        axes = self._axes(space)
        return self._map(self._rows(X), lambda z: rotated(z, self.head_)[:, axes])

    def reconstruct(self, X: Any, space: str = "full") -> np.ndarray:
        """X rebuilt from all axes, or from one space while the other holds the mean of all rows."""
        check_is_fitted(self, "head_")
        keep = torch.zeros(len(self.beta_), device=self.device_)
        keep[self._axes("full" if space == "embedding" else space)] = 1
        return self._to_input(self._map(self._rows(X), lambda z: self._decode(z, keep)))

    def traverse(
        self, cluster: int, component: int = 0, steps: int = 8, reach: float = 2.0
    ) -> np.ndarray:  # (steps, *shape of a row)
        """Decoded walk through the shared space with the cluster kept (figure 3).

        From `reach` standard deviations below the mean to as many above it, along a principal
        component of the shared space.
        """
        check_is_fitted(self, "head_")
        head, axes = self.head_, self._axes("shared")
        n_shared = len(self.beta_) - self.cluster_dims_
        if not 0 <= cluster < self.n_clusters or not 0 <= component < n_shared:
            raise ValueError(
                f"cluster={cluster}, component={component}: there are {self.n_clusters} clusters "
                f"and {n_shared} shared axes; choose smaller numbers, counted from 0"
            )
        with torch.no_grad():
            values, vectors = on_host(
                lambda t: tuple(torch.linalg.eigh(t)), head.spread[axes, axes]
            )
            along = vectors[:, -1 - component] * values[-1 - component].clamp_min(0).sqrt()
            walk = rotated(head.centers[cluster], head).repeat(steps, 1)
            t = torch.linspace(-reach, reach, steps, device=walk.device)[:, None]
            walk[:, axes] = rotated(head.shared, head)[axes] + t * along
            return self._to_input(to_numpy(self.network_.decode(unrotated(walk, head))))

    def _axes(self, space: str) -> slice:
        if space not in SPACES:
            raise ValueError(f"space={space!r}: choose one of {', '.join(SPACES)}")
        m = self.cluster_dims_
        return {"cluster": slice(0, m), "shared": slice(m, None)}.get(space, slice(None))

    def _decode(self, latents: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        keep = latents.new_ones(latents.shape[1]) if keep is None else keep
        return self.network_.decode(masked(latents, self.head_, keep))
