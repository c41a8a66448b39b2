"""Which numbers of the image encoder have the clearest clusters?

    COTERIE_DATA=... python benchmarks/image_layers.py gtsrb_test fashion_mnist orl_faces

Means of the last blocks and of the layer of the classifier, the classifier's scores, each as it is,
with its square root, about its mean, and summed with that of the mirrored image. For each: NMI of
k-means, NMI of spectral clustering, and the share of a row's ten nearest rows that are of its
class. One line a rule; labels are for the scores alone.
"""

import argparse

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from torch.nn import functional as F

import coterie
from coterie.encoders.embed import unit_length
from coterie.encoders.images import to_batch
from coterie.encoders.lite0 import Conv, Lite0
from coterie.metrics import nmi

NEAR, STARTS, SEEDS = 10, 2, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--side", type=int, default=96)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.data:
        data = coterie.load_data(name)
        rows = np.sort(np.random.default_rng(0).permutation(len(data))[: args.rows])
        layers, y = means(np.asarray(data.X[rows]), args.side), np.asarray(data.labels)[rows]
        for rule, vectors in rules(layers).items():
            print(f"{name:14} {rule:28} {judged(unit_length(vectors), y)}", flush=True)


@torch.inference_mode()
def means(images: np.ndarray, side: int) -> dict[str, np.ndarray]:
    """Layer -> (n, d), of the images and, after "m ", of the mirrored ones."""
    encoder = Lite0()
    state = torch.load(encoder.path, map_location="cpu", weights_only=True)
    top = Conv(state, "_conv_head", "_bn1")
    unit, found = encoder.settings(images)["unit"], {}
    for start in range(0, len(images), 32):
        x = to_batch(images[start : start + 32], (side, side), unit)
        x = (x - encoder.mean[0]) / encoder.std[0]
        for mark, z in (("", x), ("m ", x.flip(3))):
            z = F.relu6(encoder.network.stem(z))
            for number, block in enumerate(encoder.network.blocks):
                z = block(z)
                if number == len(encoder.network.blocks) - 2:
                    found.setdefault(f"{mark}last but one", []).append(z.mean((2, 3)))
            last = F.relu6(top(z)).mean((2, 3))
            found.setdefault(f"{mark}last block", []).append(z.mean((2, 3)))
            found.setdefault(f"{mark}classifier's layer", []).append(last)
            scores = F.linear(last, state["_fc.weight"], state["_fc.bias"])
            found.setdefault(f"{mark}scores", []).append(scores)
    return {layer: torch.cat(parts).numpy() for layer, parts in found.items()}


def rules(layers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for layer in ("classifier's layer", "last block", "last but one", "scores"):
        both = layers[layer] + layers[f"m {layer}"]
        for mark, v in (("", layers[layer]), (", mirrored", both)):
            found[layer + mark] = v
            found[f"{layer}{mark}, centred"] = v - v.mean(0)
            if layer == "classifier's layer":  # the only one without negative numbers
                found[f"{layer}{mark}, root"] = np.sqrt(v)
    return found


def judged(v: np.ndarray, y: np.ndarray) -> str:
    k = len(np.unique(y))
    cuts = [KMeans(k, n_init=STARTS, random_state=s).fit_predict(v) for s in range(SEEDS)]
    near = np.argsort(-(v @ v.T) + 9 * np.eye(len(v)), axis=1)[:, :NEAR]
    n = len(v)
    graph = sp.csr_matrix((np.ones(n * NEAR), (np.repeat(np.arange(n), NEAR), near.ravel())))
    graph = (graph + graph.T) / 2
    scale = sp.diags(1 / np.sqrt(np.asarray(graph.sum(1)).ravel()))
    axes = unit_length(eigsh(scale @ graph @ scale, k=k, which="LA", v0=np.ones(n))[1])
    spectral = KMeans(k, n_init=5, random_state=0).fit_predict(axes)
    kept = (y[near] == y[:, None]).mean()
    kmeans = np.mean([nmi(y, cut) for cut in cuts])
    return f"k-means {kmeans:.3f}  spectral {nmi(y, spectral):.3f}  of one class {kept:.3f}"


if __name__ == "__main__":
    main()
