"""Reading a model whose head rotates the embedding, and a decoder for it after the fit."""

from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...estimator.streams import guarded_draws
from ...math.assign import squared_error
from ...runtime.device import to_numpy
from ...train.batch import Batch, Terms
from ...train.head import Head
from ...train.plan import Call, Phase
from ...train.pretrain import pretrain_optim
from ...train.view import Context
from ..autoencoder import JointClusterer


class Rotated(JointClusterer):
    """The head holds `rotation` (axes in columns), their `eigenvalues`, and the mark `decoder`."""

    attributes: ClassVar[dict[str, str]] = {
        "rotation_": "(e, e), axes in columns, that of the largest scatter last",
        "eigenvalues_": "variance within clusters along each axis",
        "kmeans_share_": "share of the time that k-means took",
    }

    def _after_fit(self) -> None:
        self.rotation_ = to_numpy(self.head_.rotation)  # (e, e), axes in columns
        # within-cluster variance of each axis
        self.eigenvalues_ = to_numpy(self.head_.eigenvalues)

    def transform(self, X: Any, space: str = "embedding") -> np.ndarray:  # (n, e) float32
        """Embedding of each row, as it is or "rotated": the axis of the largest scatter last."""
        if space not in ("embedding", "rotated"):
            raise ValueError(f"space={space!r}: choose 'embedding' or 'rotated'")
        check_is_fitted(self, "head_")
        if space == "embedding":
            return super().transform(X)
        return self._map(self._rows(X), lambda z: z @ self.head_.rotation)

    # -- a decoder after the fit --------------------------------------------------------------
    def train_decoder(self, X: Any, epochs: float = 10) -> Self:
        """Train the decoder on the finished embedding, so that centres can be looked at.

        The embedding and the clusters do not change: only the decoder gets a gradient.
        """
        rows = self._rows(X)
        with guarded_draws(self):
            engine = self._run(rows, self.network_, self.decoding(epochs), head=self.head_)
        self.history_ += engine.history
        for name, seconds in engine.seconds.items():
            self.seconds_[name] = self.seconds_.get(name, 0.0) + seconds
        return self

    def decoding(self, epochs: float) -> list[Phase | Call]:
        """The phase that trains a decoder for an embedding which stays as it is."""

        def loss(batch: Batch, head: Head) -> Terms:
            network = batch.network.eval()  # layers that learn from what they see must not here
            with torch.no_grad():
                z = network.encode(batch.fed)
            rebuilt = network.train().decode(z)
            return {"reconstruction": squared_error(batch.clean, rebuilt)}

        def mark(context: Context) -> None:
            context.head.decoder.fill_(1)

        optim = pretrain_optim(self.settings_)
        phase = self.phase("decoder", epochs, loss=loss, augment=None, optim=optim)
        return [phase, Call(mark, "decoder")]
