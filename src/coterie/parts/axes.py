"""The space (V, b) of ACe/DeC: axes in the columns of V, how much each clusters in b.

`head` is anything with the tensors V (d, d), b (d,) and, for `masked`, the mean `shared` (d,).
"""

import torch

BETA_RATE = 10.0  # Adam moves all numbers at one pace: beta = sigmoid(10 b) learns 10 times faster


def betas(head):  # -> (d,)
    return torch.sigmoid(BETA_RATE * head.b)


def logits(beta):  # (d,) -> (d,), the inverse; kept away from 0 and 1, where no gradient flows
    return torch.logit(beta.clamp(0.02, 0.98)) / BETA_RATE


def space_map(head):  # -> (d, d)
    """Distances after z @ map are those of eq. 5 in the cluster space."""
    return head.V * betas(head)


def gates(head):  # -> (d,)
    """Share of each axis that belongs to the cluster space: 0 at beta = 1/2, 1 at beta = 1."""
    return (2 * betas(head) - 1).clamp(0, 1)


def masked(z, head, keep):  # (n, d), (d,) -> (n, d)
    """Code V V'z of which each axis keeps a share; the rest holds the mean of all rows."""
    V = head.V
    return ((z - head.shared) @ V * keep + head.shared @ V) @ V.T


def axis_scatter(z, labels, centers, V):  # -> (d,), (d,)
    """Scatter along each axis: within clusters, and about the mean of all rows."""
    within = ((z - centers[labels]) @ V).square().sum(0)
    return within, ((z - z.mean(0)) @ V).square().sum(0)


def error(x, rebuilt):  # -> (); sum over features, mean over rows
    return (x - rebuilt).square().flatten(1).sum(1).mean()
