"""What the number and the shape of the rows decide about a deep method, where nothing is given."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ..data.chunks import epoch_steps
from ..math.augment import affine, surround
from .rows import Rows

MANY_ROWS, WIDE_ROWS = 20_000, 256  # from here on an mlp is pre-trained as in the papers
CODE, WIDEST_CODE = 10, 64  # sizes of the embedding
SEEN_ROWS = 1000  # rows that tell what lies around images
FULL_WEIGHT = 256  # features from which on a default clustering weight is 1


@dataclass(frozen=True)
class Recipe:
    """Network and pre-training where the estimator's own fields say nothing."""

    hidden: tuple[int, ...]
    epochs: tuple[int, int]  # or steps, whichever is longer
    lr: float
    schedule: str


FEW = Recipe((512, 512), epochs=(20, 600), lr=3e-3, schedule="onecycle")
# the papers' own network: with many wide rows a better place to start from, and the longer the
# better; MNIST, NMI of k-means on the code after 10, 20 and 30 epochs: .68, .75, .76 (one seed)
MANY = Recipe((500, 500, 2000), epochs=(30, 600), lr=1e-3, schedule="constant")


class Sizing:
    """The part of a deep clusterer that knows how much of what its data want."""

    few_rows: ClassVar[Recipe] = FEW
    n_clusters: int
    net: Any
    hidden: tuple[int, ...] | None
    embedding_dim: int | None
    init: str
    pretrain: str
    pretrain_lr: float | None
    pretrain_schedule: str | None
    batch_size: int
    pretrain_batch_size: int | None
    pretrain_augment: bool
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

    def epochs_of(
        self, given: float | None, rule: tuple[float, int], batch_size: int | None = None
    ) -> float:
        """A length in epochs: as given, or by a rule of (epochs, steps)."""
        steps = epoch_steps(self._n_rows, batch_size or self.batch_size)
        return max(rule[0], rule[1] / steps) if given is None else given

    def clustering_weight(self, given: float | None) -> float:
        """As given, or a 256th for each feature, at most 1.

        The reconstruction is a sum over features. With few of them a weight of 1 wins before there
        is anything to cluster.
        """
        if given is not None:
            return given
        return min(1.0, math.prod(getattr(self, "row_shape_", (FULL_WEIGHT,))) / FULL_WEIGHT)

    def _augmentation(self) -> Any:
        """How images are changed before the network sees them; None: not at all."""
        if self.augment == "none":
            return None
        if not self._images:
            raise ValueError(
                f"augment={self.augment!r} turns images, but each row here has shape "
                f"{self.row_shape_}; give X as (n, h, w) or use augment='none'"
            )
        only = {"scale": 0.0, "shear": 0.0} if self.augment == "rigid" else {}
        return partial(affine, outside=self._outside, **only)

    @property
    def _moves_pretraining(self) -> bool:
        """Is plain pre-training to see the images that clustering sees?"""
        return self.augment != "none" and self.pretrain_augment
