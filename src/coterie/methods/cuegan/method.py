"""CueGAN: the cluster is the precise feature from which a generator can rebuild the data."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ...data.chunks import epoch_steps
from ...estimator.params import param
from ...math.assign import log_odds
from ...math.augment import affine, feature_noise, jitter, recolour
from ...math.gan import (
    check_range,
    critic_terms,
    diverged,
    draw_clusters,
    eased,
    follow_,
    generator_terms,
    learn_prior_,
    prior_shares,
    staircase,
)
from ...math.losses import gradient_penalty, interpolate_rows
from ...nets.gan import GAN
from ...train.batch import Batch, Step
from ...train.head import Head
from ...train.optim import Optim
from ...train.plan import Call, Phase, init_head
from ...train.rows import Rows
from ...train.settings import Settings
from .sampling import Sampling

LEARN_AFTER = 0.5  # share of the steps before a prior is learned from what the ids mean by then
STAIRS = 30  # steps of eta in the paper: 900,000 / 30,000, and for ORL 30,000 / 1,000
DENSE = {"net": "mlp", "hidden": (512, 512), "steps": 40_000}  # for small images
NETS, ENDS = ("auto", "conv", "mlp"), ("auto", "sigmoid", "tanh", "linear")


def _length(s: Any) -> int:
    """Generator steps of a training."""
    return max(1, round(s.epochs * epoch_steps(s.n, s.batch_size)))


class CueGAN(Sampling):
    """A WGAN whose generator is told a cluster id, and a classifier that must recover the id.

    Critic: L_D = E D(fake) - E D(real) + 100 E(|grad D| - 1)^2. Classifier: cross-entropy of the
    ids of generated rows, an upper bound of the entropy H(cluster | row). Generator: look real and
    keep that entropy low. The classifier, applied to real rows, is the clusterer. Nothing here
    measures distances between rows, so the cue may be a single pixel.

    Work is counted in generator steps. Where text and authors' code differ, and what we do:

    - lambda = 100 and eta = 10 are the text's; the code has 10 and 1, but a critic with ten
      outputs, which is the same up to a factor of ten in the whole loss.
    - eta climbs thirty stairs, each times 1.2, in both experiments of the paper: a setting here
      (`eta_growth`, 1.2 in `CueGAN.paper`); by default eta stays as it is.
    - `double_after=1/3` doubles the turns, as the code does and the text does not.
    - Critic, classifier, generator take turns in this order (text); the code begins with the last.

    Ours: weaker weights for vectors, so that the critic can follow a quick generator; slow copies
    of generator and classifier, which speak for them; a learned prior, which follows the mean
    assignment of real rows (the M-step of EM: the classifier is trained under that prior) in the
    second half of the training.

    Experimental on images: a CPU gives too few steps. Two variants for small ones, with dense
    networks, which take about ten times as many steps in the same time as convolutions: "dense"
    keeps eta = 10 from the start, so the id takes the strongest cue on which generator and
    classifier agree; "fine" waits (`eta_wait`) until the generator can draw, so that a weak but
    precise cue has its chance.
    """

    key = "cuegan"
    title = "CueGAN"
    summary = "a generator told the cluster id, a critic, and a classifier that recovers the id"
    reference = (
        "Gan, Dong, Zhou, Gao, Dong: Learning the precise feature for cluster assignment, 2021"
    )
    variants = {
        "plain": {},
        "star": {"augment": "affine"},
        "gender": {},
        "dense": {**DENSE, "width": 0.5, "n_noise": 8},
        "fine": {**DENSE, "penalty": 10.0, "eta_wait": 0.3},
    }
    tiny = {"hidden": (16,), "channels": (4, 6), "steps": 5, "batch_size": 32, "n_noise": 2}
    scores_are_probabilities = False
    cluster_axes = dict.fromkeys(("weight", "bias", "slow_weight", "slow_bias", "prior"), 0)

    facts = ("outside",)

    net: str = param(
        "auto",
        "auto (conv for images), conv or mlp",
        choices=NETS,
        group="network",
        rule=lambda s: "conv" if s.images else "mlp",
    )
    hidden: tuple[int, ...] = param((512, 512, 512), "mlp units at width 1", ge=1, group="network")
    channels: tuple[int, ...] = param(
        (64, 128, 256), "conv channels at width 1", ge=1, group="network"
    )
    width: float = param(0.25, "factor on the size of every layer", gt=0, group="network")
    output: str = param(
        "auto",
        "range of generated rows; auto: sigmoid for images",
        choices=ENDS,
        group="network",
        rule=lambda s: "sigmoid" if s.images else "linear",
    )
    share_trunk: bool = param(False, "one trunk for critic and classifier (worse)", group="network")
    n_noise: int | None = param(
        None,
        "noise variables; None: 16, at most one per feature",
        ge=0,
        rule=lambda s: min(16, s.features),
    )
    prior: str | tuple[float, ...] = param(
        "uniform", "share of each cluster: uniform, learned, or one number per cluster"
    )
    prior_rate: float = param(0.05, "learned prior: weight of the newest batch", gt=0, le=1)
    # in a plane a strong penalty keeps the critic from turning round when the generator moves
    penalty: float | None = param(
        None,
        "weight of the gradient penalty (lambda); None: 100 for images, 1 for vectors",
        ge=0,
        rule=lambda s: 100.0 if s.images else 1.0,
    )
    eta: float | None = param(
        None,
        "weight of the entropy; None: a tenth of lambda, at least 1",
        ge=0,
        rule=lambda s: max(1.0, s.penalty / 10),
    )
    eta_growth: float = param(1.0, "factor on eta at each stair", gt=0)
    eta_every: int | None = param(
        None,
        "steps per stair; None: a thirtieth of all",
        ge=1,
        rule=lambda s: max(1, _length(s) // STAIRS),
    )
    eta_wait: float = param(
        0.0, "share of the steps at eta 0; eta then rises for as long", ge=0, le=0.5
    )

    batch_size: int = param(64, "rows per turn", ge=1, group="training")
    steps: int = param(20_000, "generator steps", ge=1, group="training")
    epochs: float | None = param(
        None,
        "passes over the rows, in place of steps",
        gt=0,
        group="training",
        rule=lambda s: s.steps / epoch_steps(s.n, s.batch_size),
    )
    n_critic: int = param(2, "critic turns per generator step", ge=1, group="training")
    n_class: int = param(1, "classifier turns per generator step", ge=1, group="training")
    double_after: float | None = param(
        None,
        "share of the steps after which n_critic and n_class double",
        ge=0,
        le=1,
        group="training",
    )
    lr: float = param(5e-4, "learning rate of critic and classifier", gt=0, group="training")
    generator_lr: float | None = param(
        None,
        "learning rate of the generator; None: the same as lr",
        gt=0,
        group="training",
        rule=lambda s: s.lr,
    )
    betas: tuple[float, float] = param((0.5, 0.9), "the two decay rates of Adam", group="training")
    slow: float = param(0.999, "memory of the slow copies; 0: none", ge=0, le=1, group="training")
    augment: str = param(
        "none",
        "affine: turning or shifting an image must not change its cluster",
        choices=("none", "affine"),
        group="training",
    )
    brightness: float = param(
        0.0, "change of brightness that must not change a cluster", ge=0, group="training"
    )
    contrast: float = param(
        0.0, "change of contrast that must not change a cluster", ge=0, group="training"
    )
    saturation: float = param(
        0.0, "change of saturation that must not change a cluster", ge=0, group="training"
    )
    hue: float = param(
        0.0,
        "change of hue that must not change a cluster, in turns",
        ge=0,
        le=0.5,
        group="training",
    )
    noise: float = param(
        0.0, "noise that must not change a cluster, as a standard deviation", ge=0, group="training"
    )

    # -- hooks ------------------------------------------------------------------------------
    def _fit(self, rows: Rows) -> None:
        self._check_settings(rows)
        super()._fit(rows)
        if diverged([r["earth_mover"] for r in self.history_ if "earth_mover" in r]):
            few = f"use fewer noise variables than n_noise={self.settings_.n_noise}, or fewer steps"
            self.notes_.append(f"the Earth Mover estimate fell and rose again: {few}")
            warnings.warn(self.notes_[-1], stacklevel=4)

    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        s = settings
        sizes = s.channels if s.net == "conv" else s.hidden
        return GAN(
            s.shape,
            s.n_clusters + s.n_noise,
            kind=s.net,
            sizes=tuple(max(1, round(size * s.width)) for size in sizes),
            output=s.output,
            share_trunk=s.share_trunk,
            slow=s.slow > 0,
            generator=generator,
        )

    def init_head(self, latents: torch.Tensor, rng: np.random.Generator) -> Head:
        """The classifier's last layer, Glorot-uniform, and the prior."""
        k, f = self.n_clusters, latents.shape[1]
        drawn = rng.uniform(-1, 1, (k, f)) * np.sqrt(6 / (k + f))
        weight, bias = torch.from_numpy(drawn.astype(np.float32)), torch.zeros(k)
        state = {"prior": prior_shares(self.prior, k)}
        if self.slow:
            state |= {"slow_weight": weight, "slow_bias": bias}
        return Head(params={"weight": weight, "bias": bias}, state=state)

    def plan(self, network: nn.Module, fingerprint: str) -> list[Phase | Call]:
        s = self.settings_
        self._length = _length(s)
        epochs = (self._length - 0.5) / epoch_steps(s.n, s.batch_size)  # the engine rounds up
        hooks = {"train_step": self.train_step, "optimizers": self._optimizers}
        return [init_head(self.init_head), self.phase("train", epochs, **hooks)]

    def assign(self, latents: torch.Tensor, head: Head) -> torch.Tensor:  # (n, f) -> (n, k)
        weights = (head.slow_weight, head.slow_bias) if self.slow else (head.weight, head.bias)
        return linear(latents, *weights)

    def fit_of(self, scores: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        return log_odds(scores.softmax(1))  # logits of a classifier, no densities

    # -- turns ------------------------------------------------------------------------------
    def train_step(self, step: Step, head: Head) -> None:
        """Critic, classifier, generator (algorithm 1)."""
        late = self.double_after is not None and step.step >= self.double_after * self._length
        n_critic, n_class = self.n_critic * (1 + late), self.n_class * (1 + late)
        for turn in range(n_critic):
            self._critic_turn(step, head, turn, n_critic)
        for turn in range(n_class):
            self._classifier_turn(step, head, turn, n_class)
        self._generator_turn(step, head)
        self._follow(step, head)

    def _critic_turn(self, step: Step, head: Head, turn: int, turns: int) -> None:
        network, batch = step.network, step.draw(self.batch_size, turn)
        with torch.no_grad():
            fake, _, weight = self._fakes(step, head, "critic", turn)
            both = self._seen(torch.cat([batch.clean, fake]), step, "critic", turn)
        real, fake = both.split(len(fake))
        share, _ = step.part(torch.rand(self.batch_size, generator=step.stream("share", turn)))
        penalty = gradient_penalty(network.critique, interpolate_rows(real, fake, share))
        d_real, d_fake = network.critique(both).split(len(fake))
        terms = critic_terms(d_real, d_fake, penalty, self.settings_.penalty)
        step.log({"earth_mover": -terms["critic"]}, weight, turns)
        # one optimizer step on the whole loss: a penalty on its own would need a second message
        step.optimize("critic", terms, weight, turns)
        if turn == turns - 1 and step.step >= LEARN_AFTER * self._length:
            self._learn_prior(batch, head)

    def _classifier_turn(self, step: Step, head: Head, turn: int, turns: int) -> None:
        with torch.no_grad():
            fake, clusters, weight = self._fakes(step, head, "classifier", turn)
            fake = self._seen(fake, step, "classifier", turn)
        logits = linear(step.network.classifier(fake), head.weight, head.bias)
        terms = {"classifier": cross_entropy(logits, clusters)}
        step.optimize("classifier", terms, weight, turns)

    def _generator_turn(self, step: Step, head: Head) -> None:
        network = step.network
        fake, clusters, weight = self._fakes(step, head, "generator")
        fake = self._seen(fake, step, "generator")
        logits = linear(network.classifier(fake), head.weight, head.bias)
        s = self.settings_
        eta = staircase(s.eta, s.eta_growth, s.eta_every, step.step)
        eta *= eased(step.step / self._length, self.eta_wait)
        terms = generator_terms(network.critique(fake), logits, clusters, eta)
        bound = cross_entropy(logits.detach(), clusters)
        right = (logits.argmax(1) == clusters).float().mean()
        step.log({"entropy_bound": bound, "fake_accuracy": right}, weight)
        step.optimize("generator", terms, weight)

    def _fakes(
        self, step: Step, head: Head, *keys: Any
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """This process's generated rows, the clusters asked for, and their weight in the batch."""
        stream, b = step.stream("fake", *keys), self.batch_size
        clusters = draw_clusters(head.prior, b, stream)
        noise, weight = step.part(torch.randn(b, self.settings_.n_noise, generator=stream))
        clusters, _ = step.part(clusters)
        return step.network.generator(self._inputs(clusters, noise)), clusters, weight

    def _seen(self, x: torch.Tensor, step: Step, *keys: Any) -> torch.Tensor:
        """What critic and classifier see of rows: changed in ways that do not matter."""
        light, colour = (self.brightness, self.contrast), (self.saturation, self.hue)
        if self.augment == "none" and not any((*light, *colour, self.noise)):
            return x
        stream = step.stream("augment", *keys)
        if self.augment == "affine":
            x = affine(x, stream, outside=self.settings_.outside)
        if any(light):
            x = jitter(x, stream, *light)
        if any(colour) and x.ndim == 4 and x.shape[1] == 3:
            x = recolour(x, stream, *colour)
        return feature_noise(x, stream, self.noise)

    @torch.no_grad()
    def _learn_prior(self, batch: Batch, head: Head) -> None:
        if isinstance(self.prior, str) and self.prior == "learned":
            logits = linear(batch.network.classifier(batch.clean), head.weight, head.bias)
            learn_prior_(head.prior, batch.mean(torch.softmax(logits, 1)), self.prior_rate)

    def _follow(self, step: Step, head: Head) -> None:
        if self.slow:
            pairs = step.network.pairs()
            pairs += [(head.slow_weight, head.weight), (head.slow_bias, head.bias)]
            follow_(pairs, self.slow, step.step)

    # -- settings ---------------------------------------------------------------------------
    def _optimizers(self, network: GAN, head: Head) -> dict[str, tuple[list, Optim]]:
        optim = self.optim(betas=tuple(self.betas))
        own = replace(optim, lr=self.settings_.generator_lr)
        classifier = list(network.classifier.parameters())
        critic = classifier if network.critic is None else list(network.critic.parameters())
        return {
            "critic": ([*critic, *network.critic_last.parameters()], optim),
            "classifier": ([*classifier, head.weight, head.bias], optim),
            "generator": (list(network.generator.parameters()), own),
        }

    def _check_settings(self, rows: Rows) -> None:
        prior_shares(self.prior, self.n_clusters)
        image = len(rows.shape) == 3
        if not image and (self.augment != "none" or self.brightness or self.contrast):
            raise ValueError(
                f"augment, brightness and contrast are for images, but each row here has shape "
                f"{rows.shape}; give X as (n, h, w) or leave them out"
            )
        low = {"sigmoid": 0.0, "tanh": -1.0}.get(self.settings_.output)
        if low is not None:
            for start in range(0, rows.n, rows.chunk):
                check_range(rows.slice(start, start + rows.chunk), low)
