"""Ask, resolve, train: from the fields that a user filled in to the settings of one fit.

A field may be left open (None, or "auto"). It then has a rule, declared beside it with
``param(..., rule=...)``, which decides by the number, the shape and the values of the rows.
`resolve` is the only code that calls rules; whatever trains reads `Settings`, where nothing is
open.
"""

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from ..data.chunks import epoch_steps
from ..math.augment import surround
from ..runtime.device import wide_dtype
from .rows import Rows

SEEN_ROWS = 1000  # rows that tell what lies around images


class Look:
    """What only the values of the rows can tell; measured when a rule asks for it."""

    def __init__(self, rows: Rows):
        self._rows = rows

    @cached_property
    def outside(self) -> str:
        """What lies around images when they are moved: "zeros", or their "border"."""
        images = len(self._rows.shape) == 3
        return surround(self._rows.slice(0, SEEN_ROWS)) if images else "zeros"

    @cached_property
    def variance(self) -> float:
        """Mean squared distance of the rows from their mean."""
        total, square, rows = 0.0, 0.0, self._rows
        for start in range(0, rows.n, rows.chunk):
            x = rows.slice(start, start + rows.chunk).flatten(1).to(wide_dtype(rows.device))
            total, square = total + x.sum(0), square + float(x.square().sum())
        return max(square / rows.n - float((total / rows.n).square().sum()), 0.0)

    @cached_property
    def sampled_variance(self) -> float:
        """The same from evenly spread rows."""
        return self._rows.sampled_variance()


FACTS = {"outside": "zeros", "variance": 1.0, "sampled_variance": 1.0, "number": 8}
# of rows that nobody has seen


class _Rows:
    """How many rows of which shape, and what follows from that alone."""

    n: int
    shape: tuple[int, ...]

    @property
    def images(self) -> bool:
        return len(self.shape) == 3

    @property
    def features(self) -> int:
        return math.prod(self.shape)

    def length(self, rule: tuple[float, float], batch_size: int) -> float:
        """A length by a rule of (epochs, steps), whichever is longer: a network learns by steps."""
        return max(rule[0], rule[1] / epoch_steps(self.n, batch_size))


@dataclasses.dataclass(frozen=True)
class Settings(_Rows):
    """What a fit is run with: a value for each field, and what was found out about the rows.

    Fields and facts are read as attributes. Both are stored with the model, which is built from
    them when it is loaded, whatever defaults and rules say by then.
    """

    n: int  # pyrefly: ignore  (frozen here)
    shape: tuple[int, ...]  # pyrefly: ignore  (frozen here)
    fields: Mapping[str, Any]
    facts: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        for found in ("fields", "facts"):
            values = self.__dict__.get(found, {})
            if name in values:
                return values[name]
        raise AttributeError(f"there is no setting {name!r}")

    def __reduce__(self) -> tuple:  # a mapping proxy cannot be pickled or copied
        return _settings, (self.n, self.shape, dict(self.fields), dict(self.facts))

    def replace(self, **changes: Any) -> "Settings":
        return dataclasses.replace(self, fields=MappingProxyType({**self.fields, **changes}))


def _settings(n: int, shape: tuple[int, ...], fields: dict, facts: dict) -> Settings:
    return Settings(n, shape, MappingProxyType(fields), MappingProxyType(facts))


class _Open(_Rows):
    """The fields of an estimator while they are resolved: what rules read.

    A field is resolved when it is first read, so that rules may build on each other.
    """

    def __init__(self, estimator: Any, n: int, shape: tuple, look: Any, known: Mapping):
        self.method, self.n, self.shape = type(estimator), n, shape
        self._estimator, self._look, self._facts = estimator, look, {}
        self._rules = {f.name: f.metadata.get("rule") for f in dataclasses.fields(estimator)}
        self._done = {name: value for name, value in known.items() if name in self._rules}

    def __getattr__(self, name: str) -> Any:
        if name in self._rules:
            if name not in self._done:
                value, rule = getattr(self._estimator, name), self._rules[name]
                is_open = value is None or (isinstance(value, str) and value == "auto")
                self._done[name] = rule(self) if rule and is_open else value
            return self._done[name]
        if name in FACTS:
            if name not in self._facts:
                self._facts[name] = getattr(self._look, name, FACTS[name])
            return self._facts[name]
        raise AttributeError(f"{self.method.__name__} has no field {name!r}")

    def resolved(self) -> Settings:
        fields = {name: getattr(self, name) for name in self._rules}
        for name in getattr(self.method, "facts", ()):
            getattr(self, name)
        return _settings(self.n, self.shape, fields, self._facts)


def resolve(
    estimator: Any,
    n: int,
    shape: tuple[int, ...],
    look: Any = None,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """The settings of a fit of `estimator` on n rows of a shape.

    Parameters
    ----------
    look : what the rows' values tell, a `Look`; without one rules see neutral values
    known : fields that are resolved already (a stored model's)
    """
    return _Open(estimator, n, tuple(shape), look, known).resolved()
