"""What can be said about a clustering without labels: sizes, confidence, gaps, doubts."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import silhouette_samples

from coterie.common_ground import Ground
from coterie.estimator.raw import further_rows

from .maps import sample_rows

NO_BREAK = "\u00a0"  # a space at which no line ends
LEAST_ROWS = 20  # fewer have no neighbourhoods
LINKS = 10  # links of nearest rows across a border below which nothing joins two clusters
SILHOUETTE_ROWS = 4000
BORDER = 0.5  # a row is borderline when its second choice has at least half the first one's weight
NO_GAP = 0.85  # density half-way between two centres, relative to the density at the centres

NOUNS = {"image": "picture", "text": "text", "table": "row", "vector": "row"}


@dataclass
class Facts:
    """The numbers behind the page. Clusters without members keep their place with size 0."""

    n: int
    k: int
    kind: str
    name: str
    ids: list
    labels: np.ndarray  # (n,)
    confidence: np.ndarray  # (n,) weight of the first choice
    rivalry: np.ndarray  # (n,) second choice over first, 0 = no rival, 1 = a tie
    rival: np.ndarray  # (n,) the second choice
    z: np.ndarray  # (n, d)
    sizes: np.ndarray  # (k,)
    centers: np.ndarray  # (k, d) means of the members, nan for empty clusters
    silhouette: np.ndarray  # (k,) mean over a sample, nan where unknown
    nearest: list = field(default_factory=list)  # per cluster: [(other, distance, gap), ...]
    reasons: list = field(default_factory=list)  # per cluster: why to look twice
    ground: Ground | None = None  # the data's own features; None where nothing can be compared
    left_out: int = 0  # rows with the label -1, here in the cluster that they would have had
    probabilities: np.ndarray | None = None  # (n, k)
    fits: np.ndarray | None = None  # (n,) how well each row fits; None: ask the model

    @property
    def noun(self):
        return NOUNS[self.kind]

    @property
    def used(self):
        return int((self.sizes > 0).sum())

    @property
    def has_rivals(self):
        return self.k > 1 and bool((self.rivalry > 0).any())

    def verdict(self, j):
        """ "empty", "clear", "check" or "doubtful"."""
        if self.sizes[j] == 0:
            return "empty"
        return ("clear", "check", "doubtful")[min(2, len(self.reasons[j]))]


def gather(model, dataset, embedding=None, seed=0, outcome=None):
    """Ask a fitted model about its data set once (`outcome`: the answer), and derive the rest."""
    X = dataset.given_to(model)
    n = X.shape[0]
    labels = np.asarray(getattr(model, "labels_", ()))
    known = embedding is not None and len(embedding) == n
    if outcome is None and hasattr(model, "outcome") and not known:
        outcome = model.outcome(X)
    if labels.shape != (n,):
        labels = np.asarray(model.predict(X)) if outcome is None else outcome.labels
    labels = labels.astype(np.int64)
    if outcome is not None:
        z, proba = outcome.embedding, outcome.probabilities
    else:
        z = embedding if known else model.transform(X)
        proba = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    z = np.asarray(z, dtype=np.float32).reshape(n, -1)
    asked = getattr(model, "n_clusters_", getattr(model, "n_clusters", 0))
    k = max(int(asked or 0), int(labels.max()) + 1)
    if proba is not None:
        k = max(k, proba.shape[1])
    left_out = labels < 0
    if left_out.any():
        labels = np.where(left_out, proba.argmax(1) if proba is not None else 0, labels)
    confidence, rivalry, rival = _choices(proba, labels)
    sizes = np.bincount(labels, minlength=k)
    facts = Facts(
        n=n,
        k=k,
        kind=kind_of(dataset),
        name=str(getattr(dataset, "name", None) or "data"),
        ids=list(dataset.ids) if getattr(dataset, "ids", None) is not None else list(range(n)),
        labels=labels,
        confidence=confidence,
        rivalry=rivalry,
        rival=rival,
        z=z,
        sizes=sizes,
        centers=_means(z, labels, k),
        silhouette=_silhouette(z, labels, k, seed),
        left_out=int(left_out.sum()),
        probabilities=proba,
        fits=None if outcome is None else outcome.fits,
    )
    facts.nearest = _nearest(facts)
    if 2 <= facts.used <= n // 2 and n >= LEAST_ROWS:
        seen = X if getattr(model, "encoder", None) is None else further_rows(model, X)[0]
        facts.ground = Ground(seen, facts.used, seed)
    apart = _apart(facts)
    facts.reasons = [_reasons(facts, j, apart) for j in range(k)]
    return facts


def kind_of(dataset):
    """How to show a row: as image, text, table (named columns) or vector."""
    if dataset.kind in ("image", "text"):
        return dataset.kind
    return "table" if dataset.columns is not None else "vector"


def _choices(proba, labels):  # (n, k) -> weight of first choice, second over first, second choice
    n = len(labels)
    if proba is None or proba.shape[1] < 2:
        return np.ones(n), np.zeros(n), labels.copy()
    rows = np.arange(n)
    first = proba[rows, labels]
    others = proba.copy()
    others[rows, labels] = -np.inf
    rival = others.argmax(1)
    second = others[rows, rival]
    tie = np.clip(second / np.maximum(first, 1e-12), 0, 1)
    return np.clip(first, 0, 1), tie, rival


def _means(z, labels, k):  # (n, d), (n,) -> (k, d)
    total = np.zeros((k, z.shape[1]))
    np.add.at(total, labels, z)
    count = np.bincount(labels, minlength=k)[:, None]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _silhouette(z, labels, k, seed):
    out = np.full(k, np.nan)
    rows = sample_rows(len(z), SILHOUETTE_ROWS, seed)
    present = np.unique(labels[rows])
    if 2 <= len(present) < len(rows):
        values = silhouette_samples(z[rows], labels[rows])
        for j in present:
            out[j] = values[labels[rows] == j].mean()
    return out


def _nearest(facts, most=3):
    """The nearest clusters of each, with the gap between them (see `gap`)."""
    centers = facts.centers
    squares = (centers**2).sum(1)
    distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * centers @ centers.T, 0))
    np.fill_diagonal(distance, np.nan)
    order = np.argsort(facts.labels, kind="stable")
    ends = np.cumsum(facts.sizes)
    rows = [order[e - s : e][:3000] for s, e in zip(facts.sizes, ends)]
    gaps, out = {}, []
    for j in range(facts.k):
        near = []
        for i in np.argsort(distance[j])[:most]:
            if np.isnan(distance[j, i]):
                continue
            pair = (min(i, j), max(i, j))
            if pair not in gaps:
                a, b = pair
                gaps[pair] = gap(facts.z[rows[a]], facts.z[rows[b]], centers[a], centers[b])
            near.append((int(i), float(distance[j, i]), gaps[pair]))
        out.append(near)
    return out


def gap(za, zb, a, b):  # (na, d), (nb, d), (d,), (d,) -> float
    """How crowded it is half-way between two centres, relative to the centres themselves.

    Both clusters are projected on the line through their centres. Near 0 there is empty space
    between the clusters; at 1 and more nothing separates them: one crowd that was cut in two.
    """
    line = b - a
    length = float(line @ line)
    if length < 1e-20:
        return np.inf  # the same place
    t = np.concatenate([(za - a) @ line, (zb - a) @ line]) / length
    at_a, at_b = (abs(t) < 0.15).sum(), (abs(t - 1) < 0.15).sum()
    middle = (abs(t - 0.5) < 0.15).sum()
    return float(middle / max(1, min(at_a, at_b)))


def raw_parts(facts, raw_labels):
    """Clusters that plain k-means on the data cuts apart: {cluster: (largest part, second)}.

    Not a reason to distrust (better methods differ from k-means), but the place to look first:
    an embedding is shaped by its method and shows even a wrong merger as one tidy island.
    """
    out = {}
    for j in np.flatnonzero(facts.sizes):
        parts = np.sort(np.bincount(raw_labels[facts.labels == j]))[::-1] / facts.sizes[j]
        if parts[0] < 0.6 and len(parts) > 1:
            out[int(j)] = (float(parts[0]), float(parts[1]))
    return out


def _apart(facts):
    """Pairs of clusters that hardly any two nearest rows join.

    `gap` looks along a line: clusters that are not round can overlap there and have a gap.
    """
    borders = facts.ground.borders(facts.labels) if facts.ground else []
    return {frozenset((a, b)) for _, links, a, b in borders if links < LINKS}


def _reasons(facts, j, apart):
    """Plain words on why cluster `j` deserves a second look."""
    size = int(facts.sizes[j])
    if size == 0:
        return ["nothing was put here"]
    reasons = []
    if size < 0.25 * facts.n / facts.k:
        reasons.append(f"small: {count(size, facts.noun)}, less than a quarter of an equal share")
    elif size < 3:
        reasons.append(f"small: only {count(size, facts.noun)}")
    elif facts.k > 2 and size > 0.5 * facts.n:
        reasons.append(f"holds {percent(size / facts.n)} of all rows; may hide several clusters")
    mine = facts.labels == j
    torn = float((facts.rivalry[mine] >= BORDER).mean())
    if torn > 0.3:
        rivals = np.bincount(facts.rival[mine & (facts.rivalry >= BORDER)], minlength=facts.k)
        reasons.append(
            f"{percent(torn)} of its members could belong to another cluster, "
            f"mostly cluster {int(rivals.argmax())}"
        )
    crowded = [i for i, _, g in facts.nearest[j] if g > NO_GAP and frozenset((i, j)) not in apart]
    if crowded:
        reasons.append(f"no gap to {cluster_list(crowded)}: may be one cluster cut in two")
    if facts.silhouette[j] < 0.05:
        reasons.append("loose: its members are no closer to each other than to other clusters")
    return reasons


def count(n, noun):
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def cluster_list(numbers, most=6):
    """ "cluster 3", "clusters 3 and 8", "clusters 1, 2, 3, 4, 5, 6 and 9 more"."""
    numbers = [str(int(i)) for i in numbers]
    if len(numbers) == 1:
        return f"cluster {numbers[0]}"
    if len(numbers) > most:
        return f"clusters {', '.join(numbers[:most])} and {len(numbers) - most} more"
    return f"clusters {', '.join(numbers[:-1])} and {numbers[-1]}"


def percent(share):
    """A share for reading: 12 %, 0.4 %, under 0.1 %; number and sign stay on one line."""
    value = 100 * share
    if 0 < value < 0.1:
        return f"under{NO_BREAK}0.1{NO_BREAK}%"
    return f"{value:.{0 if value >= 1 or value == 0 else 1}f}{NO_BREAK}%"
