"""What CM costs: a step beside a hand-written loop, and restarts as one model beside single runs.

    python benchmarks/cm_speed.py            # seconds of one core, ratios, and the limits

Both sides run in turns in one process on one thread, and processor time is counted, so that
other work on the machine hardly matters. The data are random numbers of the right shape: time
does not depend on their values.
"""

import time

import numpy as np
import torch
from torch import nn

from coterie import CM

ROUNDS = 7


def by_hand(X, batch_size, steps, k=10, strength=1.6, lr=1e-3):
    """The module as one would write it down from eq. 11 (CM itself sums k-by-k products)."""
    n, d = X.shape
    encoder = nn.Parameter(torch.randn(k, d) * 0.05)
    encoder_bias = nn.Parameter(torch.zeros(k))
    decoder = nn.Parameter(torch.randn(k, d) * 0.05)
    decoder_bias = nn.Parameter(torch.zeros(d))
    params = [encoder, encoder_bias, decoder, decoder_bias]
    optimizer = torch.optim.Adam(params, lr=lr, eps=1e-5, fused=True)
    log, done = np.zeros(4), 0
    while done < steps:
        order = torch.randperm(n)
        for start in range(0, n, batch_size):
            x = X[order[start : start + batch_size]]
            gamma = nn.functional.linear(x, encoder, encoder_bias).softmax(1)
            mu = decoder + decoder_bias
            gram = mu @ mu.T
            norms = gram.diagonal()
            terms = [
                (x - gamma @ mu).square().sum(1).mean(),
                ((gamma * (1 - gamma)) @ norms).mean(),
                -(gamma @ (gram - norms.diag()) * gamma).sum(1).mean(),
                -strength * (gamma.mean(0) + 1e-10).log().sum(),
            ]
            loss = sum(terms)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log += [t.item() for t in terms]
            done += 1
            if done == steps:
                break


def by_coterie(X, batch_size, steps, restarts=1):
    epochs = steps / -(-len(X) // batch_size)
    # no averaging epoch and no clustering of the result: steps are compared with steps
    model = CM(
        10, random_state=0, init="random", prior_strength=1.6, batch_size=batch_size,
        epochs=epochs, average_epochs=0, restarts=restarts, scale="none",
    )  # fmt: skip
    begin = time.process_time()
    model.fit(X)
    return time.process_time() - begin


def seconds(function, *args, **kwargs):
    begin = time.process_time()
    function(*args, **kwargs)
    return time.process_time() - begin


def per_step(function, X, batch_size, short=50, long=550, **kwargs):
    """Time of one step; the difference of two lengths leaves out set-up and the last pass."""
    few = seconds(function, X, batch_size, short, **kwargs)
    many = seconds(function, X, batch_size, long, **kwargs)
    return (many - few) / (long - short)


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    mnist = rng.random((20_000, 784), dtype=np.float32)
    pendigits = rng.random((10_992, 16), dtype=np.float32)
    by_coterie(pendigits, 80, 10)  # imports
    hand, ours, one, twenty, wide_twenty = [], [], [], [], []
    for _ in range(ROUNDS):
        hand.append(per_step(by_hand, torch.from_numpy(mnist), 111))
        ours.append(per_step(by_coterie, mnist, 111))
        one.append(per_step(by_coterie, pendigits, 80))
        twenty.append(per_step(by_coterie, pendigits, 80, restarts=20))
        wide_twenty.append(per_step(by_coterie, mnist, 111, long=150, restarts=20))
    hand, ours, one, twenty, wide = map(np.median, (hand, ours, one, twenty, wide_twenty))
    print(f"MNIST width, batch 111: by hand {1e6 * hand:.0f} us, CM {1e6 * ours:.0f} us a step")
    print(f"  ratio {ours / hand:.2f} (limit 1.2)")
    print(
        f"pendigits, batch 80: one restart {1e6 * one:.0f} us, twenty {1e6 * twenty:.0f} us a step"
    )
    print(f"  twenty restarts cost {twenty / (20 * one):.3f} of twenty single runs (limit 0.25)")
    print(f"MNIST width: twenty restarts cost {wide / (20 * ours):.3f} of twenty single runs")


if __name__ == "__main__":
    main()
