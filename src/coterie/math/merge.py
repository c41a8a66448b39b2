"""From many small clusters to few: which outputs of a network are neighbours of each other."""

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from coterie.runtime.device import to_numpy, wide_dtype

from .graph import smooth


@torch.no_grad()
def joint(p, graph, rows=None):  # (n, o), (n, k) -> (o, o) on the host
    """How often an edge of the graph joins outputs a and b: symmetric, sums to 1."""
    near = smooth(p, graph, rows)
    own = p if rows is None else p[rows]
    wider = wide_dtype(own.device)
    j = ((own.to(wider).T @ near.to(wider)) / len(own)).cpu()
    return (j + j.T) / 2


def spectral_merge(j, k, rng, n_init=20):  # (o, o) -> (o,) int64 in 0..k-1
    """Normalised cut of the graph of outputs: leading eigenvectors, then weighted k-means.

    Outputs without mass follow the others as well as they can; they carry no rows.
    """
    o = len(j)
    if k >= o:
        return torch.arange(o)
    mass = j.sum(1).clamp_min(1e-12)
    root = mass.sqrt()
    v = torch.linalg.eigh(j / root[:, None] / root).eigenvectors[:, -k:]
    v = v / v.norm(dim=1, keepdim=True).clamp_min(1e-12)
    best, found = np.inf, None
    for _ in range(n_init):
        labels, inertia = _weighted_kmeans(v.numpy(), mass.numpy(), k, rng)
        if inertia < best - 1e-12:
            best, found = inertia, labels
    return torch.from_numpy(found)


def _weighted_kmeans(v, mass, k, rng, max_iter=100):  # (o, k), (o,) -> (o,), float
    """Lloyd's iterations with k-means++ seeding for a few weighted points."""
    centers = v[[rng.choice(len(v), p=mass / mass.sum())]]
    for _ in range(k - 1):
        gap = np.maximum(_gaps(v, centers).min(1), 0) * mass + 1e-15
        centers = np.vstack([centers, v[rng.choice(len(v), p=gap / gap.sum())]])
    labels = None
    for _ in range(max_iter):
        gaps = _gaps(v, centers)
        new = gaps.argmin(1)
        for empty in np.setdiff1d(np.arange(k), new):
            # take the worst served point of a cluster that can spare one
            spare = np.bincount(new, minlength=k)[new] > 1
            worst = np.argmax(np.where(spare, gaps[np.arange(len(v)), new], -1))
            new[worst] = empty
        if labels is not None and (new == labels).all():
            break
        labels = new
        weight = np.eye(k)[labels] * mass[:, None]  # (o, k)
        centers = (weight.T @ v) / weight.sum(0)[:, None]
    return labels, float((_gaps(v, centers)[np.arange(len(v)), labels] * mass).sum())


def _gaps(v, centers):  # (o, d), (k, d) -> (o, k)
    return np.square(v[:, None] - centers).sum(2)


def greedy_merge(j, k, rule="mod"):  # (o, o) -> (o,) int64 in 0..k-1
    """Join the closest pair of outputs until k remain.

    "mod": largest J_ab / (d_a d_b), how much more often than by chance an edge joins the two.
    "ncut": largest J_ab / min(d_a, d_b), so that small outputs find a home first.
    """
    if rule not in ("mod", "ncut"):
        raise ValueError(f"rule={rule!r}: choose 'mod' or 'ncut'")
    j = j.double().numpy().copy()
    groups = [[a] for a in range(len(j))]
    while len(groups) > k:
        d = np.maximum(j.sum(1), 1e-15)
        score = j / (np.outer(d, d) if rule == "mod" else np.minimum.outer(d, d))
        score[np.tril_indices(len(j))] = -np.inf
        a, b = np.unravel_index(np.argmax(score), score.shape)
        j[a] += j[b]
        j[:, a] += j[:, b]
        j = np.delete(np.delete(j, b, 0), b, 1)
        groups[a] += groups.pop(b)
    labels = np.empty(sum(map(len, groups)), np.int64)
    for new, group in enumerate(groups):
        labels[group] = new
    return torch.from_numpy(labels)


def one_hot(labels, k):  # (o,) -> (o, k) float32
    return torch.nn.functional.one_hot(labels.long(), k).float()


def agreement(labellings):  # (h, n) -> (h, h) adjusted Rand index of each pair
    h = len(labellings)
    out = np.eye(h)
    for a in range(h):
        for b in range(a):
            out[a, b] = out[b, a] = adjusted_rand_score(labellings[a], labellings[b])
    return out


def normalised_cut(j):  # (k, k) -> float in 0..1
    """Share of the edges at a cluster that leave it, mean over clusters; an empty one counts 1.

    The measure by which Kith compares clusterings of one graph without labels.
    """
    d = j.sum(1)
    return float((1 - j.diagonal() / d.clamp_min(1e-12)).clamp(0, 1).mean())


def modularity(j):  # (k, k) -> float
    """Share of edges inside clusters, less what chance would put there (Newman, Girvan 2004)."""
    d = j.sum(1)
    return float((j.diagonal() - d * d).sum())


def edge_information(j):  # (k, k) -> float in 0..1
    """What one end of an edge tells of the cluster of the other, over all there is to tell.

    Mutual information of both ends over the entropy of one; 0 for a single cluster. A cut weighs
    every cluster alike, so a handful of rows that stand apart are worth as much as a third of the
    data; here they are worth what they hold.
    """
    d = j.sum(1)
    entropy = -float(torch.xlogy(d, d).sum())
    chance = torch.outer(d, d).clamp_min(1e-30)
    told = float(torch.xlogy(j, j / chance).sum())
    return told / entropy if entropy > 1e-12 else 0.0


def neighbours_kept(j):  # (k, k) -> float
    """Share of edges inside clusters beyond chance: 1 all of them, 0 as drawn by lot.

    Modularity over the most that these sizes allow; nan for a single cluster.
    """
    chance = float(j.sum(1).square().sum())
    return (float(j.trace()) - chance) / (1 - chance) if chance < 1 - 1e-9 else float("nan")


def stability(labellings):  # list of (n,) tensors -> float
    """Mean adjusted Rand index of all pairs; 1 for a single one."""
    table = agreement([to_numpy(labels) for labels in labellings])
    h = len(table)
    return float((table.sum() - h) / (h * (h - 1))) if h > 1 else 1.0
