"""DEC's objective in a training loop of one's own: no estimator, any encoder."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from coterie import DECObjective
from coterie.metrics import scores

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
decoder = nn.Sequential(nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 64))


def train(loss_of, parameters, epochs, each_epoch=lambda: None):
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _epoch in range(epochs):
        each_epoch()
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            loss_of(rows).backward()
            optimizer.step()


def reconstruction(rows):
    return (X[rows] - decoder(encoder(X[rows]))).square().sum(1).mean()


def refresh():  # the target of all rows, fixed for an epoch
    with torch.no_grad():
        objective.update(encoder(X), head)


train(reconstruction, [*encoder.parameters(), *decoder.parameters()], epochs=30)
objective = DECObjective(n_clusters=10)
head = objective.init_head(encoder(X).detach(), np.random.default_rng(0))
train(
    lambda rows: objective.loss(encoder(X[rows]), head, rows)["kl"],
    [*encoder.parameters(), *head.parameters()],
    epochs=10,
    each_epoch=refresh,
)
labels = objective.assign(encoder(X), head).argmax(1)
print({name: round(value, 3) for name, value in scores(y, labels.numpy()).items()})
