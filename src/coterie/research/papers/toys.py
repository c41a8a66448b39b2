"""Figures that need no ledger: a formula, or a fit of a second on a toy data set."""

from typing import Any

import numpy as np

from coterie import plot
from coterie.data import load
from coterie.math.cm import per_row
from coterie.palette import color
from coterie.registry import get
from coterie.storage.runs import threads_held

from .protocol import Item

# CM on the toy data, 2,000 standardised rows of 5 clusters: SGD, batches of 20, 50 epochs and
# alpha = 5 as in section 4.2; the paper gives no rate
RATE = {"optimizer": "sgd", "momentum": 0.0, "lr": 0.5, "schedule": "constant"}
SETTINGS = {**RATE, "init": "random", "restarts": 1, "scale": "none", "batch_size": 20}
PRIOR = per_row(5, 20)
EPOCHS = 50
ITERATES = 4  # steps of the last epoch that are shown one by one


def annealing(item: Item):
    """DKM, figure 2."""
    from coterie.methods.dkm import temperature_levels

    from .figures import canvas

    figure, axes = canvas()
    values, ax = temperature_levels(item.draw["levels"]), axes[0][0]
    ax.plot(range(1, len(values) + 1), values, color=color(0), marker="o", ms=3)
    ax.set(xlabel="n", ylabel="α", title="inverse temperature")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def averaging(item: Item):
    """C-Net, figure 1: centres after single steps are spread, their average is where it should be.

    An epoch has 100 steps. The fit is stopped after different numbers of steps of its last epoch
    (a fraction of an epoch), which gives the iterates that the averaging epoch takes the mean of.
    """
    from .figures import canvas

    X, y = _toy()
    figure, axes = canvas(size=(5.2, 4.2))
    ax = axes[0][0]
    ax.scatter(*X.T, s=4, color="0.82", linewidths=0)
    with threads_held(1):
        steps = [EPOCHS + (i + 1) / ITERATES for i in range(ITERATES)]
        spread = [_fit(X, 5, epochs=e, average_epochs=0) for e in steps]
        mean = _fit(X, 5, epochs=EPOCHS, average_epochs=1)
    every = np.concatenate([model.head_.centers.numpy() for model in spread])
    true = np.array([X[y == c].mean(0) for c in np.unique(y)])
    ax.plot(*every.T, "x", color=color(0), ms=6, label="after single steps")
    ax.plot(*mean.head_.centers.numpy().T, "s", color=color(1), ms=8, mfc="none", label="average")
    ax.plot(*true.T, "o", color="black", ms=4, label="true centres")
    ax.set(xticks=[], yticks=[])
    ax.legend(frameon=False, fontsize=8)
    return figure


def merging(item: Item):
    """C-Net, figure 8: what E3 does with twice as many centres as clusters."""
    from .figures import canvas

    X, _ = _toy()
    weights = item.draw["weights"]
    figure, axes = canvas(len(weights), size=(3.6, 3.2))
    noise = np.random.default_rng(0).normal(0, 0.03, (10, 2))  # so that pairs can be told apart
    with threads_held(1):
        for ax, weight in zip(axes[0], weights):
            model = _fit(X, 10, epochs=EPOCHS, average_epochs=1, merge_weight=weight)
            plot.decision_surface(model, X, ax=ax, steps=80)
            ax.plot(*(model.head_.centers.numpy() + noise).T, "s", color="black", ms=5, mfc="none")
            ax.set(xticks=[], yticks=[], title=f"E3 × {weight:g}")
    return figure


def _toy():
    data = load("cnet_toy")
    return np.asarray(data.X, np.float32), np.asarray(data.labels)


def _fit(X, k: int, **settings):
    given: dict[str, Any] = {**SETTINGS, "prior_strength": PRIOR, "random_state": 0, **settings}
    return get("cm")(k, **given).fit(X)
