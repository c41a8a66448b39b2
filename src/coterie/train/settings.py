"""What the number and the shape of the rows decide about a deep method, where nothing is given."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch

from ..data.chunks import epoch_steps
from ..math.augment import affine, surround
from .rows import Rows

MANY_ROWS, WIDE_ROWS = 20_000, 256  # from here on an mlp is pre-trained as in the papers
CODE, WIDEST_CODE = 10, 64  # sizes of the embedding
SEEN_ROWS = 1000  # rows that tell what lies around images
FULL_WEIGHT = 256  # features from which on a default clustering weight is 1
HEAVIEST, NARROW = 3.0, 15.0  # default weight that images bear, and variance of the code that does


@dataclass(frozen=True)
class Recipe:
    """Network and pre-training where the estimator's own fields say nothing."""

    hidden: tuple[int, ...]
    epochs: tuple[int, int]  # or steps, whichever is longer
    lr: float
    schedule: str
    moved: bool  # images are moved and rebuilt unmoved, so that the code forgets where they stood


FEW = Recipe((512, 512), epochs=(20, 600), lr=3e-3, schedule="onecycle", moved=True)
# the papers' own network: with many wide rows a better place to start from, and the longer the
# better; MNIST, NMI of k-means on the code after 10, 20 and 30 epochs: .68, .75, .76 (one seed)
MANY = Recipe((500, 500, 2000), epochs=(30, 600), lr=1e-3, schedule="constant", moved=False)


class Sizing:
    """The part of a deep clusterer that knows how much of what its data want."""

    few_rows: ClassVar[Recipe] = FEW
    anchored: ClassVar[bool] = True  # what a moved image is pulled to comes from the unmoved one
    heavy: ClassVar[float] = 1.0  # default clustering weight of images that have 256 features
    n_clusters: int
    net: Any
    hidden: tuple[int, ...] | None
    embedding_dim: int | None
    init: str
    pretrain: str
    pretrain_lr: float | None
    pretrain_schedule: str | None
    batch_size: int
    augment: str
    row_shape_: tuple[int, ...]
    _n_rows: int
    _outside: str = "zeros"  # what lies around images

    def _look_at(self, rows: Rows) -> None:
        """Before a fit: what only the values of the rows can tell."""
        self._outside = surround(rows.slice(0, SEEN_ROWS)) if self._images else "zeros"

    @property
    def _images(self) -> bool:
        return len(getattr(self, "row_shape_", ())) == 3

    def code_size(self) -> int:
        """Ten, or as many as clusters (DKM), where no image tells the network what is near what.

        20 Newsgroups with 10 and 20, three seeds: ACC of k-means on the code .42 and .53, of IDEC
        .42 and .54. Twenty objects in images (COIL-20, three seeds): .72 and .67.
        """
        if self.embedding_dim is not None:
            return self.embedding_dim
        wanted = min(self.n_clusters, math.prod(self.row_shape_), WIDEST_CODE)
        return CODE if self._images else max(CODE, wanted)

    @property
    def _from_kith(self) -> bool:
        return self.init == "pretrained" and self.pretrain == "kith"

    def many(self) -> bool:
        """An mlp for many wide rows, which is that of the papers?"""
        mlp = self.net == "mlp" or (self.net == "auto" and len(self.row_shape_) == 1)
        many = self._n_rows >= MANY_ROWS and math.prod(self.row_shape_) >= WIDE_ROWS
        return mlp and many and not self._from_kith

    def recipe(self) -> Recipe:
        """Network and pre-training: the fields that are given, the rest by the size of the data."""
        recipe = MANY if self.many() else self.few_rows
        return replace(
            recipe,
            hidden=recipe.hidden if self.hidden is None else tuple(self.hidden),
            lr=self.pretrain_lr or recipe.lr,
            schedule=self.pretrain_schedule or recipe.schedule,
        )

    def epochs_of(self, given: float | None, rule: tuple[float, int]) -> float:
        """A length in epochs: as given, or by a rule of (epochs, steps)."""
        steps = epoch_steps(self._n_rows, self.batch_size)
        return max(rule[0], rule[1] / steps) if given is None else given

    def clustering_weight(self, given: float | None, latents: torch.Tensor) -> float:  # (n, d)
        """As given, or a 256th for each feature, at most 1; for pre-trained images at most 3.

        The reconstruction is a sum over features. With few of them a weight of 1 wins before there
        is anything to cluster.

        Images bear more, but not in a wide code, where distances are large anyway: MNIST, all rows
        (the code has variance 15), unmoved, DKM ends at NMI .82 with weight 1 and has .84 after
        eight epochs with 3; 20,000 rows (variance 30) fall from .65 to .58. Moved images, weights
        1, 2 and 3: MNIST, 784 features, .82, .85, .87 after four epochs (one seed); USPS, 256
        features, ACC .753, .752, .726 (five; with 3, moved images did not pull the centres).
        """
        if given is not None:
            return given
        share = math.prod(getattr(self, "row_shape_", (FULL_WEIGHT,))) / FULL_WEIGHT
        weight = min(1.0, share)
        if not self._images or self.init != "pretrained":
            return weight
        wide = max(1.0, float(latents.var(0).sum()) / NARROW)
        return max(weight, min(HEAVIEST, self.heavy * share) / wide)

    def _augmentation(self) -> Any:
        if self.augment == "affine" and not self._images:
            raise ValueError(
                f"augment='affine' turns images, but each row here has shape {self.row_shape_}; "
                "give X as (n, h, w) or use augment='auto'"
            )
        if not self._images or self.augment == "none":
            return None
        # DKM, MNIST, one seed, from a random network: ACC .56 moved, .78 unmoved
        known = (self.anchored and self.init == "pretrained") or self._knows_moved_images
        return partial(affine, outside=self._outside) if known or self.augment == "affine" else None

    @property
    def _knows_moved_images(self) -> bool:
        """Has the network seen moved images when it begins to cluster? If it is untrained, may it?

        A code that moves with its image needs that.
        """
        if self.init == "pretrained" and self.pretrain != "plain":
            return self._from_kith
        return self.recipe().moved
