"""What a generator step of CueGAN costs, how it splits, and the same beside a hand-written loop.

    python benchmarks/cuegan_turn.py            # milliseconds on one core, ratio, and the limit

Both sides run in turns in one process on one thread, and processor time is counted, so that
other work on the machine hardly matters. The data are random images of USPS's shape: time does
not depend on their values.
"""

import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy, linear, one_hot

from coterie import CueGAN
from coterie.nets.gan import GAN

ROUNDS, SHORT, LONG = 5, 5, 45
SETTINGS = {"n_critic": 2, "n_class": 1, "batch_size": 64, "n_noise": 16, "width": 0.25}
K, ROWS = 10, 3000  # an epoch is longer than LONG steps, so each run has one record


def by_hand(X, steps, *, n_critic, n_class, batch_size, n_noise, width):
    """The loop as one would write it down: same networks, same losses, a log of each term."""
    sizes = tuple(round(c * width) for c in (64, 128, 256))
    net = GAN(
        (1, 16, 16), K + n_noise, kind="conv", sizes=sizes, output="sigmoid", share_trunk=False,
        slow=True, generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    weight = torch.nn.Parameter(torch.randn(K, net.embedding_dim) * 0.05)
    bias = torch.nn.Parameter(torch.zeros(K))
    groups = (
        [*net.critic.parameters(), *net.critic_last.parameters()],
        [*net.classifier.parameters(), weight, bias],
        list(net.generator.parameters()),
    )
    adams = [torch.optim.Adam(g, lr=5e-4, betas=(0.5, 0.9), fused=True) for g in groups]
    slow_weight, slow_bias = weight.detach().clone(), bias.detach().clone()
    log = np.zeros(7)

    def descend(i, loss):
        for p, g in zip(groups[i], torch.autograd.grad(loss, groups[i])):
            p.grad = g
        adams[i].step()

    def draw():
        y = torch.randint(K, (batch_size,))
        return net.generator(
            torch.cat([one_hot(y, K).float(), torch.randn(batch_size, n_noise)], 1)
        ), y

    for _ in range(steps):
        for _ in range(n_critic):
            real = X[torch.randint(len(X), (batch_size,))]
            with torch.no_grad():
                fake, _ = draw()
            mixed = fake.lerp(real, torch.rand(batch_size, 1, 1, 1)).requires_grad_()
            (slope,) = torch.autograd.grad(net.critique(mixed).sum(), mixed, create_graph=True)
            norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
            penalty = 100 * (norm - 1).square().mean()
            d_real, d_fake = net.critique(torch.cat([real, fake])).split(batch_size)
            distance = d_fake.mean() - d_real.mean()
            log[:2] += distance.item(), penalty.item()
            descend(0, distance + penalty)
        for _ in range(n_class):
            with torch.no_grad():
                fake, y = draw()
            loss = cross_entropy(linear(net.classifier(fake), weight, bias), y)
            log[2] += loss.item()
            descend(1, loss)
        fake, y = draw()
        logits = linear(net.classifier(fake), weight, bias)
        reality, entropy = -net.critique(fake).mean(), 10 * cross_entropy(logits, y)
        right = (logits.argmax(1) == y).float().mean()
        log[3:6] += reality.item(), entropy.item(), right.item()
        descend(2, reality + entropy)
        with torch.no_grad():
            pairs = [*net.pairs(), (slow_weight, weight), (slow_bias, bias)]
            torch._foreach_lerp_([s for s, _ in pairs], [w for _, w in pairs], 1e-3)


def by_coterie(X, steps, **settings):
    CueGAN(K, random_state=0, steps=steps, scale="none", lr=5e-4, **settings).fit(X)


def seconds(function, *args, **kwargs):
    begin = time.process_time()
    function(*args, **kwargs)
    return time.process_time() - begin


def per_step(function, X, **settings):
    """Time of one step; the difference of two lengths leaves out set-up and the last pass."""
    few = seconds(function, X, SHORT, **settings)
    return (seconds(function, X, LONG, **settings) - few) / (LONG - SHORT)


def split(X):
    """Share of each network's turns in a step of ours."""
    spent = dict.fromkeys(("critic", "classifier", "generator"), 0.0)
    original = {name: getattr(CueGAN, f"_{name}_turn") for name in spent}

    def timed(name):
        def turn(*args):
            begin = time.process_time()
            original[name](*args)
            spent[name] += time.process_time() - begin

        return turn

    for name in spent:
        setattr(CueGAN, f"_{name}_turn", timed(name))
    by_coterie(X, LONG, **SETTINGS)
    for name, function in original.items():
        setattr(CueGAN, f"_{name}_turn", function)
    return {name: s / LONG for name, s in spent.items()}


def main():
    torch.set_num_threads(1)
    X = np.random.default_rng(0).random((ROWS, 16, 16), dtype=np.float32)
    tensor = torch.from_numpy(X).unsqueeze(1)
    by_coterie(X, 2, **SETTINGS)  # imports
    hand, ours = [], []
    with torch.random.fork_rng():
        for _ in range(ROUNDS):
            hand.append(per_step(by_hand, tensor, **SETTINGS))
            ours.append(per_step(by_coterie, X, **SETTINGS))
    a, b = np.median(hand), np.median(ours)
    print(f"16 x 16 images, {SETTINGS}")
    print(f"one generator step: by hand {1e3 * a:.1f} ms, CueGAN {1e3 * b:.1f} ms")
    print(
        f"  ratio {b / a:.2f}, median of pairs {np.median(np.divide(ours, hand)):.2f} (limit 1.1)"
    )
    parts = split(X)
    shown = ", ".join(f"{name} {1e3 * s:.1f} ms" for name, s in parts.items())
    print(f"  of which {shown}")


if __name__ == "__main__":
    main()
