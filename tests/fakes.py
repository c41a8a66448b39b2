"""Small stand-ins for fitted models and data sets, for tests of what is drawn from them."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer

from coterie.data.dataset import Dataset

ATTACK = "<script>alert(1)</script>"


@dataclass
class FakeModel:
    """k-means on the first principal components, with the surface of a fitted estimator."""

    n_clusters: int = 8
    random_state: int = 0
    title: str = "Fake clustering"
    summary: str = "k-means on principal components"
    reference: str = "nobody"
    seconds_: dict = field(default_factory=lambda: {"pretrain": 1.5, "train": 2.5})

    def get_params(self, deep=True):
        return {"n_clusters": self.n_clusters, "random_state": self.random_state}

    def fit(self, X):
        flat = self._flat(X)
        d = min(10, *flat.shape)
        self.pca_ = PCA(d, random_state=0).fit(flat)
        self.kmeans_ = KMeans(self.n_clusters, n_init=1, random_state=0).fit(self.transform(X))
        self.labels_, self.seed_ = self.kmeans_.labels_, 7
        self.shape_ = tuple(X.shape[1:])
        self.history_ = [
            {"phase": "pretrain", "epoch": e, "recon": 10.0 / (e + 1), "seconds": 0.1}
            for e in range(20)
        ] + [
            {"phase": "train", "epoch": e, "recon": 0.5, "kl": 1.0 / (e + 1), "clusters_used": 8}
            for e in range(20)
        ]
        return self

    @staticmethod
    def _flat(X):
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        return X.reshape(len(X), -1).astype(np.float64)

    def transform(self, X):
        return self.pca_.transform(self._flat(X)).astype(np.float32)

    def predict(self, X):
        return self.kmeans_.predict(self.transform(X))

    def predict_proba(self, X):
        squared = self.kmeans_.transform(self.transform(X)) ** 2
        weight = np.exp(-(squared - squared.min(1, keepdims=True)) / (squared.mean() / 4))
        return weight / weight.sum(1, keepdims=True)


class FakeDecoder(FakeModel):
    """The same with pictures: centres, ways between them, samples."""

    def _decode(self, z):
        return self.pca_.inverse_transform(z).reshape(len(z), *self.shape_)

    def centers_in_input_space(self):
        return self._decode(self.kmeans_.cluster_centers_)

    def interpolate(self, a, b, steps):
        c = self.kmeans_.cluster_centers_
        t = np.linspace(0, 1, steps)[:, None]
        return self._decode((1 - t) * c[a] + t * c[b])

    def sample(self, cluster, n):
        rng = np.random.default_rng(cluster)
        c = self.kmeans_.cluster_centers_[cluster]
        return self._decode(c + 4 * rng.normal(size=(n, len(c))))


class FakeSpaces(FakeDecoder):
    """And with ACe/DeC's two spaces."""

    beta_ = np.array([0.9, 0.8, 0.3, 0.1])
    cluster_dims_ = 2

    def reconstruct(self, X, space="full"):
        return self._decode(self.transform(X) * (1.0 if space == "full" else 0.5))

    def traverse(self, cluster, component, steps):
        return self.interpolate(cluster, (cluster + 1) % self.n_clusters, steps)


def images(attack=False):
    X, y = load_digits(return_X_y=True)
    X = (X.reshape(-1, 8, 8)[:900] * 15.9).astype(np.uint8)
    X = X.repeat(2, axis=1).repeat(2, axis=2)
    ids = [f"scan-{i:04d}.png" for i in range(len(X))]
    if attack:
        ids[3] = ATTACK + ".png"
    name = f"digits {ATTACK}" if attack else "digits"
    return Dataset(X=X, ids=ids, kind="image", name=name, labels=y[: len(X)])


WORDS = {
    "space": [
        "orbit",
        "moon",
        "rocket",
        "launch",
        "satellite",
        "shuttle",
        "crew",
        "mission",
        "nasa",
        "telescope",
    ],
    "cars": [
        "engine",
        "dealer",
        "brakes",
        "mileage",
        "turbo",
        "sedan",
        "wheel",
        "clutch",
        "tyre",
        "gearbox",
    ],
    "food": [
        "butter",
        "onion",
        "garlic",
        "oven",
        "recipe",
        "flour",
        "sugar",
        "bake",
        "simmer",
        "salt",
    ],
    "chess": [
        "bishop",
        "knight",
        "opening",
        "castle",
        "pawn",
        "endgame",
        "gambit",
        "queen",
        "rook",
        "mate",
    ],
}


def texts(attack=False):
    rng = np.random.default_rng(0)
    topics = list(WORDS)
    y = rng.integers(0, len(topics), 240)
    lines = [" ".join(rng.choice(WORDS[topics[t]], 12)) + " the and of it" for t in y]
    if attack:
        lines[:40] = [f"{ATTACK} alert script {line}" for line in lines[:40]]
    X = TfidfVectorizer().fit_transform(lines).astype(np.float32)
    return Dataset(
        X=X,
        ids=[str(i) for i in range(len(lines))],
        kind="text",
        name="notes",
        texts=lines,
        labels=y,
        label_names=topics,
    )


def table(attack=False):
    wine = load_wine()
    columns = [str(c) for c in wine.feature_names]
    if attack:
        columns[0] = columns[6] = ATTACK
    return Dataset(
        X=wine.data,
        ids=[f"bottle {i}" for i in range(len(wine.data))],
        kind="table",
        name="wine",
        columns=columns,
        labels=wine.target,
        label_names=[ATTACK if attack else "Barolo", "Grignolino", "Barbera"],
    )
