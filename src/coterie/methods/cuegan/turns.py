"""A step of CueGAN: critic, classifier and generator take turns (algorithm 1)."""

from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import cross_entropy, linear

from ...data.chunks import epoch_steps
from ...math.augment import affine, feature_noise, jitter, recolour
from ...math.gan import (
    critic_terms,
    draw_clusters,
    generator_terms,
    learn_prior_,
    moving_average_,
    ramp,
    staircase,
)
from ...math.losses import gradient_penalty, interpolate_rows
from ...nets.gan import GAN
from ...train.batch import Batch, Step
from ...train.head import Head
from ...train.optim import Optim
from .sampling import Sampling

LEARN_AFTER = 0.5  # share of the steps before a prior is learned from what the ids mean by then
STAIRS = 30  # steps of eta in the paper: 900,000 / 30,000, and for ORL 30,000 / 1,000


def length_of(s: Any) -> int:
    """Generator steps of a training."""
    return max(1, round(s.epochs * epoch_steps(s.n, s.batch_size)))


class Turns(Sampling):
    """The three losses, and what they share: generated rows, what is seen of them, slow copies."""

    def train_step(self, step: Step, head: Head) -> None:
        """Critic, classifier, generator (algorithm 1)."""
        s = self.settings_
        late = s.double_after is not None and step.step >= s.double_after * length_of(s)
        n_critic, n_class = s.n_critic * (1 + late), s.n_class * (1 + late)
        for turn in range(n_critic):
            self._critic_turn(step, head, turn, n_critic)
        for turn in range(n_class):
            self._classifier_turn(step, head, turn, n_class)
        self._generator_turn(step, head)
        self._follow(step, head)

    def _critic_turn(self, step: Step, head: Head, turn: int, turns: int) -> None:
        s, network = self.settings_, step.network
        batch = step.draw(s.batch_size, turn)
        with torch.no_grad():
            fake, _, weight = self._fakes(step, head, "critic", turn)
            both = self._seen(torch.cat([batch.clean, fake]), step, "critic", turn)
        real, fake = both.split(len(fake))
        share, _ = step.part(torch.rand(s.batch_size, generator=step.stream("share", turn)))
        penalty = gradient_penalty(network.critique, interpolate_rows(real, fake, share))
        d_real, d_fake = network.critique(both).split(len(fake))
        terms = critic_terms(d_real, d_fake, penalty, s.penalty)
        step.log({"earth_mover": -terms["critic"]}, weight, turns)
        # one optimizer step on the whole loss: a penalty on its own would need a second message
        step.optimize("critic", terms, weight, turns)
        if turn == turns - 1 and step.step >= LEARN_AFTER * length_of(s):
            self._learn_prior(batch, head)

    def _classifier_turn(self, step: Step, head: Head, turn: int, turns: int) -> None:
        with torch.no_grad():
            fake, clusters, weight = self._fakes(step, head, "classifier", turn)
            fake = self._seen(fake, step, "classifier", turn)
        logits = linear(step.network.classifier(fake), head.weight, head.bias)
        terms = {"classifier": cross_entropy(logits, clusters)}
        step.optimize("classifier", terms, weight, turns)

    def _generator_turn(self, step: Step, head: Head) -> None:
        s, network = self.settings_, step.network
        fake, clusters, weight = self._fakes(step, head, "generator")
        fake = self._seen(fake, step, "generator")
        logits = linear(network.classifier(fake), head.weight, head.bias)
        eta = staircase(s.eta, s.eta_growth, s.eta_every, step.step)
        eta *= ramp(step.step / length_of(s), s.eta_wait)
        terms = generator_terms(network.critique(fake), logits, clusters, eta)
        bound = cross_entropy(logits.detach(), clusters)
        right = (logits.argmax(1) == clusters).float().mean()
        step.log({"entropy_bound": bound, "fake_accuracy": right}, weight)
        step.optimize("generator", terms, weight)

    def _fakes(
        self, step: Step, head: Head, *keys: Any
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """This process's generated rows, the clusters asked for, and their weight in the batch."""
        stream, b = step.stream("fake", *keys), self.settings_.batch_size
        clusters = draw_clusters(head.prior, b, stream)
        noise, weight = step.part(torch.randn(b, self.settings_.n_noise, generator=stream))
        clusters, _ = step.part(clusters)
        return step.network.generator(self._inputs(clusters, noise)), clusters, weight

    def _seen(self, x: torch.Tensor, step: Step, *keys: Any) -> torch.Tensor:
        """What critic and classifier see of rows: changed in ways that do not matter."""
        s = self.settings_
        light, colour = (s.brightness, s.contrast), (s.saturation, s.hue)
        if s.augment == "none" and not any((*light, *colour, s.noise)):
            return x
        stream = step.stream("augment", *keys)
        if s.augment == "affine":
            x = affine(x, stream, outside=s.outside)
        if any(light):
            x = jitter(x, stream, *light)
        if any(colour) and x.ndim == 4 and x.shape[1] == 3:
            x = recolour(x, stream, *colour)
        return feature_noise(x, stream, s.noise)

    @torch.no_grad()
    def _learn_prior(self, batch: Batch, head: Head) -> None:
        s = self.settings_
        if isinstance(s.prior, str) and s.prior == "learned":
            logits = linear(batch.network.classifier(batch.clean), head.weight, head.bias)
            learn_prior_(head.prior, batch.mean(torch.softmax(logits, 1)), s.prior_rate)

    def _follow(self, step: Step, head: Head) -> None:
        memory = self.settings_.slow
        if memory:
            pairs = step.network.pairs()
            pairs += [(head.slow_weight, head.weight), (head.slow_bias, head.bias)]
            moving_average_(pairs, memory, step.step)

    def optimizers(self, network: GAN, head: Head) -> dict[str, tuple[list, Optim]]:
        optim = self.optim(betas=tuple(self.settings_.betas))
        own = replace(optim, lr=self.settings_.generator_lr)
        classifier = list(network.classifier.parameters())
        critic = classifier if network.critic is None else list(network.critic.parameters())
        return {
            "critic": ([*critic, *network.critic_last.parameters()], optim),
            "classifier": ([*classifier, head.weight, head.bias], optim),
            "generator": (list(network.generator.parameters()), own),
        }
