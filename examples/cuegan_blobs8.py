"""Eight blobs on a circle: what CueGAN's critic and classifier make of the plane.

    python examples/cuegan_blobs8.py                       # 0, 1, 2 and 4 noise variables, one seed
    python examples/cuegan_blobs8.py --noise 2 --steps 200 --out quick.png

Upper row: contour lines of the critic, real points (orange) and generated ones (green). Middle:
regions of the classifier. Lower row: the Earth Mover estimate over training. This is the figure of
the paper's supplement, one column for each number of noise variables.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from coterie import CueGAN, plot
from coterie.data.sets.toys import blobs8
from coterie.metrics import accuracy


def draw(axes: np.ndarray, model: CueGAN, X: np.ndarray, title: str) -> None:
    upper, middle, lower = axes
    plot.critic_contour(model, X, ax=upper)
    upper.set_title(title)
    plot.decision_surface(model, X[:400], ax=middle)
    plot.learning_curves(model, terms=["earth_mover"], ax=lower)
    lower.set_ylabel("Earth Mover estimate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noise", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument(
        "--steps", type=int, default=None, help="generator steps (default: CueGAN's)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", default="cuegan_blobs8.png")
    args = parser.parse_args()
    X, y = blobs8()
    settings = {} if args.steps is None else {"steps": args.steps}
    figure, axes = plt.subplots(3, len(args.noise), figsize=(3 * len(args.noise), 8), squeeze=False)
    for column, noise in enumerate(args.noise):
        for seed in args.seeds:
            model = CueGAN(8, n_noise=noise, random_state=seed, **settings).fit(X)
            score, seconds = accuracy(y, model.labels_), sum(model.seconds_.values())
            print(f"{noise} noise variables, seed {seed}: ACC {score:.3f} in {seconds:.0f} s")
        draw(axes[:, column], model, X, f"{noise} noise variables, ACC {score:.3f}")
    figure.tight_layout()
    figure.savefig(args.out, dpi=110)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
