"""How C-Net is trained: the module on a frozen embedding, then everything; restarts of all."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ...estimator.fields import StepFields
from ...math.cm import cm_terms, near_frame, start_from
from ...nets.rescale import move_code
from ...runtime.duration import seconds
from ...runtime.rng import derive
from ...train.batch import Batch, Terms
from ...train.head import Head
from ...train.plan import Call, Phase
from ...train.rows import Rows
from ...train.settings import Settings
from ...train.view import Context
from ..autoencoder import AutoencoderClusterer
from ..cm import Generative, centers_in, gamma_of, prior_term


class ModuleTraining(Generative, StepFields, AutoencoderClusterer):
    """The phases around an objective that is a Clustering Module (`make_objective`, `loss`)."""

    # -- hooks ------------------------------------------------------------------------------
    def make_objective(self, settings: Settings) -> Any:
        raise NotImplementedError

    def loss(self, batch: Batch, head: Head) -> Terms:
        raise NotImplementedError

    # -- phases -----------------------------------------------------------------------------
    def _prepare(self, settings: Settings) -> None:
        super()._prepare(settings)
        self.objective_ = self.make_objective(settings)

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        return self.objective_.init_head(latents, rng)

    def training(self) -> list[Phase | Call]:
        s, plan = self.settings_, []
        optim = self.optim(eps=s.eps, betas=(s.beta1, 0.999))
        if self.objective_.centers == "kmeans":
            if s.match_code:
                plan.append(Call(self._match, "init"))
            if s.module_epochs:

                def head_only(network: nn.Module, head: Head) -> dict:
                    return {"main": (list(head.parameters()), replace(optim, schedule="constant"))}

                hooks = {"loss": self.module_loss, "optimizers": head_only}
                plan.append(self.phase("module", s.module_epochs, **hooks))
        hooks = {"loss": self.loss, "optim": optim, "average": s.average_epochs}
        hooks["augment"] = self.augmentation()
        train = self.phase("train", s.epochs + s.average_epochs, **hooks)
        return [*plan, train, Call(self._finish, "finish")]

    def _match(self, context: Context) -> None:
        """Move the code to where orthonormal centres are.

        Its length is arbitrary and the module wants centres of length 1: left to the loss, the
        code would shrink first and lose its clusters on the way.
        """
        head, rate = context.head, self.objective_.rate
        centers = rate * centers_in(head)[0].detach()
        middle, scale, to = near_frame(centers)
        if not move_code(context.network, middle, scale, to):
            return
        start = start_from((centers - middle) * scale + to)
        for name, tensor in start.items():
            getattr(head, name).data.copy_(tensor / rate)
        head.codes.sub_(middle).mul_(scale).add_(to)

    def module_loss(self, batch: Batch, head: Head) -> Terms:
        """CM alone (eq. 11) on the embedding of the pre-trained network, which stays as it is."""
        z, head = head.codes[batch.rows], self.objective_.module(head)
        gamma = gamma_of(z, head)
        return cm_terms(z, gamma, centers_in(head)) | {"prior": prior_term(batch.mean(gamma), head)}

    def _finish(self, context: Context) -> None:
        for tensor in context.head.parameters():
            tensor.data.mul_(self.objective_.rate)
        super()._finish(context)

    # -- restarts ---------------------------------------------------------------------------
    def _fit(self, rows: Rows) -> None:
        """Plain repetition: seeds differ, the run with the lowest L_sp stays."""
        asked, runs = self.settings_, []
        if asked.restarts == 1:
            return super()._fit(rows)
        budget = seconds(asked.time_budget)
        best: Any = None
        for r in range(asked.restarts):
            if r:
                self.seed_ = derive(runs[0][0], "restart", r)
            changes = {}
            if asked.checkpoint_dir is not None:
                changes["checkpoint_dir"] = f"{asked.checkpoint_dir}/restart-{r}"
            if budget is not None:
                changes["time_budget"] = budget / asked.restarts
            self._prepare(asked.replace(**changes))
            super()._fit(rows)
            score = float(self.restart_scores_[0])
            runs.append((self.seed_, score, self.seconds_))
            if best is None or score < best["score"]:
                names = ("network_", "head_", "history_", "notes_")
                best = {"score": score, "fit": {n: getattr(self, n) for n in names}}
        self._prepare(asked)
        self.seed_ = runs[0][0]
        self.seconds_ = {
            phase: sum(spent.get(phase, 0.0) for _, _, spent in runs) for phase in runs[0][2]
        }
        for name, value in best["fit"].items():
            setattr(self, name, value)
        head = self.head_
        state = {n: getattr(head, n) for n in head.kinds["state"]}
        state["scores"] = torch.tensor([score for _, score, _ in runs])
        self.head_ = Head({n: getattr(head, n) for n in head.kinds["param"]}, state)
        self._after_fit()
