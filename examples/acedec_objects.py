"""Shape and light told apart: ACe/DeC on rendered spheres, cubes and cylinders (its figure 1b).

    python examples/acedec_objects.py [rows] [picture.png]

Rows of the picture: the image, rebuilt from the cluster space (shape), from the shared space
(light), and a walk through the shared space with the cluster kept.
"""

import sys

import matplotlib
import numpy as np

from coterie import ACeDeC
from coterie.data.sets.objects import objects
from coterie.metrics import scores

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main(rows: int = 1000, picture: str = "acedec_objects.png") -> None:
    images, shapes = objects(rows)
    model = ACeDeC(3, augment="none", random_state=0).fit(images)
    found = {name: round(value, 3) for name, value in scores(shapes, model.labels_).items()}
    print(
        f"{found}; cluster axes {model.cluster_dims_} of {len(model.beta_)}: {model.beta_.round(2)}"
    )

    some = np.concatenate([np.flatnonzero(shapes == s)[:3] for s in range(3)])
    strips = {
        "image": images[some],
        "cluster space": model.reconstruct(images[some], space="cluster"),
        "shared space": model.reconstruct(images[some], space="shared"),
    }
    if model.cluster_dims_ < len(model.beta_):
        strips["walk, cluster 0"] = model.traverse(0, component=0, steps=len(some))
    figure, axes = plt.subplots(len(strips), len(some), figsize=(len(some), len(strips) * 1.1))
    for line, (name, strip) in zip(axes, strips.items()):
        line[0].set_title(name, loc="left", fontsize=8)
        for ax, image in zip(line, strip):
            ax.imshow(image, cmap="gray", vmin=0, vmax=255)
            ax.axis("off")
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*[int(sys.argv[1])] if len(sys.argv) > 1 else [], *sys.argv[2:3])
