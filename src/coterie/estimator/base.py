"""Clusterer: the estimator contract that every method shares (parameters, fit, predict, save)."""

import time
import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags  # pyrefly: ignore  (no types)
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..nets import Identity
from ..runtime.device import pick_device, place
from ..runtime.processes import all_gather, current, sharing
from ..runtime.rng import resolve_seed
from ..train.rows import Rows
from ..train.scaling import check_finite, fit_scaling
from ..train.settings import Look, Settings, resolve
from . import saving
from .counting import counts_again, counts_back, counts_first
from .docs import with_sections
from .labelling import Labelling
from .paper import published
from .params import check_params, param
from .picture import Pictured
from .raw import first_rows, further_rows, remember
from .result import Collector, Outcome, check_numbers, number_used_first
from .streams import guarded_draws
from .validate import check_rows


class Clusterer(Labelling, Pictured, ClusterMixin, TransformerMixin, BaseEstimator):
    """A clustering method: rows -> network -> embedding -> scores; the largest is the label.

    A subclass declares fields with `param` and fills `_fit`, which leaves `network_` and `head_`
    behind; `assign` turns latents and head into scores. Everything else is inherited, and
    `labels_` equals `predict(X)` because it is computed by it.
    """

    attributes: ClassVar[dict[str, str]] = {
        "labels_": "cluster of each row, what `predict` gives",
        "reject_below_": "score (`score_samples`) below which a row gets the label -1",
        "settings_": "what the fit was run with: a value for each parameter",
        "history_": "losses and cluster sizes of each epoch",
        "seconds_": "time that each phase took",
        "notes_": "remarks of the fit on its result",
        "recipe_": "how the rows were read, for `load_data(new, recipe=model.recipe_)`",
        "n_features_in_": "columns of a table; rows of an image",
        "device_": "device that the model uses now",
    }
    key: ClassVar[str] = ""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    variants: ClassVar[dict[str, dict]] = {}  # short names of the rows in the papers' tables
    tiny: ClassVar[dict] = {}  # settings under which a fit takes milliseconds, for tests
    words: ClassVar[int] = 2000  # that texts are described by, if the reader is not told otherwise

    n_clusters: int = param(8, "number of clusters", ge=1, kw_only=False)
    random_state: Any = param(None, "seed; None draws a new one for each fit", group="run")
    scale: str = param(
        "auto",
        "input scaling: auto (by the data), none, unit (divide by the largest value), symmetric "
        "(to -1..1), global (centre columns, one factor for all), standard (each column by itself)",
        choices=("auto", "none", "unit", "symmetric", "global", "standard"),
    )
    encoder: Any = param(
        None,
        "pretrained network that turns rows into vectors first: text, image, a .onnx file, a "
        "folder with a model, timm:NAME, st:NAME, in Python also a function or a module; auto, for "
        "texts: words or the encoder text, whichever gives the clearer clusters",
    )
    device: Any = param(
        "auto",
        "where to compute: cpu, cuda, cuda:1, mps; auto: an accelerator if there is one",
        group="run",
    )
    verbose: int | bool = param(0, "0 is silent, 1 shows progress", ge=0, group="run")

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("key"):
            cls.__doc__ = with_sections(cls)

    # -- hooks ------------------------------------------------------------------------------
    def _fit(self, rows: Rows) -> None:
        """Set `network_`, `head_`, and if there is something to tell `history_`, `seconds_`."""
        raise NotImplementedError

    def build_network(self, settings: Settings, generator: torch.Generator) -> nn.Module:
        return Identity(settings.shape)

    # -- the estimator ----------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None) -> "Clusterer":
        """Learn the clusters of X. `y` is there for scikit-learn and is ignored."""
        check_params(self)
        source = check_rows(self, first_rows(self, X), reset=True)
        if self.n_clusters != "auto" and source.shape[0] < self.n_clusters:
            raise ValueError(
                f"n_samples={source.shape[0]} should be >= n_clusters={self.n_clusters}; "
                "lower n_clusters or give more rows"
            )
        world = self._world()
        with sharing(world):
            self.seed_ = resolve_seed(self.random_state)
            if world.size > 1:  # each process has drawn its own: all take the leader's
                self.seed_ = int(all_gather(world, torch.tensor(self.seed_))[0])
            self._fit_source(source)
        remember(self, source, X)
        return self

    def fit_outcome(self, X: Any, store: Any = None) -> Outcome:
        """Fit; return labels, embedding and soft assignments of the rows, which are encoded once.

        `store(block, n)` takes the embedding block by block, in place of memory.
        """
        self._collector = Collector(store)
        try:
            self.fit(X)
            return self._collector.outcome
        finally:
            del self._collector

    def outcome(self, X: Any, store: Any = None) -> Outcome:
        """Labels, embedding and soft assignments of rows, which are encoded once."""
        rows, collector = self._rows(X), Collector(store)
        rows.hold_codes(self.network_)
        collector.collect(self, rows, self._labels(rows))
        return collector.outcome

    def _world(self) -> Any:
        """The processes that fit together: those of whoever calls, unless a method knows more."""
        return current()

    def _fit_source(self, source: Any) -> None:
        self.input_shape_, source = tuple(source.shape[1:]), counts_first(self, source)
        self.scaling_ = fit_scaling(source, self.scale)
        self.device_ = pick_device(self.device, current().size)
        rows = Rows(source, self.scaling_, self.device_)
        self.row_shape_ = rows.shape
        found = {"scale": self.scaling_.choice, "device": str(self.device_)}
        found["counts"] = "log" if hasattr(self, "counting_") else "raw"
        self._prepare(resolve(self, rows.n, rows.shape, self._look(rows), known=found))
        self.history_: list[dict] = []
        self.seconds_: dict[str, float] = {}
        self.notes_: list[str] = []
        begin = time.perf_counter()
        with guarded_draws(self):
            self._fit(rows)
        self._place()
        check_numbers(self)
        if told := vars(self).pop("_told", None):
            self.notes_ = [told, *self.notes_]
        self.seconds_ = self.seconds_ or {"fit": time.perf_counter() - begin}
        self.reject_below_ = -np.inf
        collector: Collector | None = vars(self).get("_collector")
        if collector and current().size == 1:  # several share the encoding for labels
            rows.hold_codes(self.network_)
        self.labels_ = self._labels(rows)
        number_used_first(self, rows)
        for note, way_out in self._check_labels(rows):
            self.notes_.append(note)
            warnings.warn(f"{note}; {way_out}", stacklevel=3)
        self._after_labels(rows)
        self._place()
        if self.reject:
            self._calibrate(rows)
        if collector:
            collector.collect(self, rows, self.labels_)

    def _look(self, rows: Rows) -> Look:
        """What the rows' values tell the rules of open fields."""
        return Look(rows)

    def _after_labels(self, rows: Rows) -> None:
        """What follows from the labels, before any are rejected."""

    def _place(self) -> None:
        """Network and head on the device; baselines make theirs on the host."""
        place(self.network_, self.device_)
        place(self.head_, self.device_)

    def _prepare(self, settings: Settings) -> None:
        """What follows from the settings alone; before a fit and after a load."""
        self.settings_ = settings

    def transform(self, X: Any) -> np.ndarray:  # (n, d) float32
        """Embedding of each row."""
        return self._map(self._rows(X), self.embed)

    def embed(self, latents: torch.Tensor) -> torch.Tensor:
        """What `transform` returns of the embedding."""
        return latents

    @property
    def n_iter_(self) -> int:
        """Epochs of training, or iterations of a method that has no epochs."""
        check_is_fitted(self, "head_")
        if "n_iter" in self.head_:
            return int(self.head_.n_iter)
        return sum(record["phase"] == "train" for record in self.history_)

    @property
    def _n_features_out(self) -> int:
        with torch.inference_mode():
            latents = self.network_.encode(torch.zeros(2, *self.row_shape_, device=self.device_))
            return int(self.embed(latents).shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names for scikit-learn's pipelines: dec0, dec1, ..."""
        check_is_fitted(self, "head_")
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)

    def save(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write model.safetensors and model.json; `coterie.load(folder)` brings it back.

        An existing model is replaced only with `overwrite`, the model of a run folder never.
        """
        check_is_fitted(self, "head_")
        saving.save(self, folder, overwrite)

    @classmethod
    def paper(cls, dataset: str, *, variant: str | None = None, **overrides: Any) -> "Clusterer":
        """This method with the published settings for a data set, as in `DEC.paper("usps")`."""
        if variant and variant not in cls.variants:
            known = ", ".join(filter(None, cls.variants)) or "none"
            raise ValueError(f"{cls.__name__} has no variant {variant!r}; there are: {known}")
        single: Any = {"precision": "single"} if hasattr(cls, "precision") else {}
        return cls(**{**single, **published(cls, dataset, variant), **overrides})

    # -- helpers ----------------------------------------------------------------------------
    def _after_fit(self) -> None:
        """Attributes that can be read off network and head (also after load)."""

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self, "head_")
        source = check_rows(self, *further_rows(self, X))
        check_finite(source)
        return Rows(counts_again(self, source), self.scaling_, self.device_)

    def _map(self, rows: Rows, function: Any) -> np.ndarray:
        """Apply encode and a function to all rows in chunks; memory does not grow with n."""
        world = current()
        then = lambda z: function(z).cpu()  # noqa: E731
        return world.concat(
            rows.through(self.network_, *world.span(rows.n), then=then), rows.n
        ).numpy()

    def _to_input(self, x: np.ndarray) -> np.ndarray:
        """Channel-first scaled rows -> the user's shape and units."""
        if x.ndim == 4:
            x = x[:, 0] if len(self.input_shape_) == 2 else x.transpose(0, 2, 3, 1)
        return counts_back(self, self.scaling_.undo(x))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # pyrefly: ignore  (scikit-learn has no types)
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        # scikit-learn's sparse check reads this tag of whatever has predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=True)
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
