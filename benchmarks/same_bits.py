"""Did a change of the code change a result? Fit every method and variant, digest all they made.

    python benchmarks/same_bits.py --out before.json        # on the old code
    python benchmarks/same_bits.py --against before.json    # on the new code

Each method is fitted with its quick settings on a table, on images and on sparse rows. Labels,
embedding, network weights and the head's tensors are compared bit by bit.
"""

import argparse
import hashlib
import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.datasets import load_digits, make_blobs

from coterie import registry

torch.set_num_threads(1)


def data() -> dict:
    table, _ = make_blobs(150, 6, centers=3, cluster_std=0.8, random_state=3)
    images = load_digits().images[:150] * 15
    rng = np.random.default_rng(0)
    words = rng.poisson(0.15 + 1.5 * (np.arange(40) // 14 == rng.integers(3, size=(150, 1))))
    return {
        "table": table.astype(np.float32),
        "images": images.astype(np.uint8),
        "sparse": sp.csr_matrix(words.astype(np.float32)),
    }


def digest(array) -> str:
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).hexdigest()


def fitted(key: str, variant: str | None, X) -> dict[str, str]:
    cls = registry.get(key)
    settings = (cls.variants[variant] if variant else {}) | cls.tiny
    try:
        model = cls(3, random_state=0, **settings).fit(X)
    except (ValueError, TypeError, RuntimeError) as err:
        return {"error": f"{type(err).__name__}: {err}"}
    made = {"labels": model.labels_, "embedding": model.transform(X)}
    made |= {f"network.{k}": v.numpy() for k, v in model.network_.state_dict().items()}
    made |= {f"head.{k}": v.numpy() for k, v in model.head_.tensors(("param", "state")).items()}
    return {name: digest(value) for name, value in made.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="write the digests to this file")
    parser.add_argument("--against", help="compare with the digests of this file")
    parser.add_argument("--keys", default=",".join(registry.METHODS), help="methods, by commas")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for key in args.keys.split(","):
        for variant in (None, *registry.get(key).variants):
            for kind, X in data().items():
                name = f"{key}{':' + variant if variant else ''} on {kind}"
                print(f"\r{name:40}", end="", file=sys.stderr, flush=True)
                found[name] = fitted(key, variant, X)
    if args.out:
        with open(args.out, "w") as file:
            json.dump(found, file, indent=1)
    if not args.against:
        print(f"{len(found)} fits")
        return 0
    with open(args.against) as file:
        before = json.load(file)
    differ = 0
    for name, made in found.items():
        old = before.get(name, {"error": "no such fit before"})
        if made != old:
            differ += 1
            parts = [k for k in sorted(made.keys() | old.keys()) if made.get(k) != old.get(k)]
            said = made.get("error") or old.get("error") or ", ".join(parts)
            print(f"differs: {name}: {said}")
    print(f"{len(found)} fits, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
