"""One declaration per parameter gives constructor, flag, config key, range check and docs."""

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, dataclass_transform

from ..runtime.hints import did_you_mean
from ..storage.renamed import RENAMED

# type of a field -> what is accepted, and what the message calls it
KINDS = {
    bool: (bool, "True or False"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "a word"),
    tuple: ((tuple, list), "a tuple of numbers"),
    type(None): (type(None), "None"),
}


def param(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    choices: tuple | None = None,
    group: str = "method",
    rule: Callable[[Any], Any] | None = None,
    kw_only: bool = True,
) -> Any:
    """A dataclass field that carries its help text and its legal values.

    Parameters
    ----------
    rule : what the field means when it is left open (None or "auto"); see `train.settings`
    """
    limits = {"ge": ge, "gt": gt, "le": le, "choices": choices}
    metadata = {"help": help, "group": group, "rule": rule, **limits}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass_transform(kw_only_default=True, field_specifiers=(param, dataclasses.field))
class Fields:
    """Makes every subclass a dataclass, so that a field is declared once and nowhere repeated."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
        cls.__init__ = _with_advice(cls.__init__)


# what other libraries call our fields
ELSEWHERE = {
    "learning_rate": "lr",
    "max_epochs": "epochs",
    "n_epochs": "epochs",
    "latent_dim": "embedding_dim",
    "hidden_dims": "hidden",
    "hidden_layer_sizes": "hidden",
    "seed": "random_state",
    "k": "n_clusters",
    "n_components": "n_clusters",
}


def _with_advice(init: Callable) -> Callable:
    """A constructor that says which field was meant by a name that it does not know."""

    @functools.wraps(init)
    def advised(self: Any, *args: Any, **given: Any) -> None:
        known = {f.name for f in dataclasses.fields(self)}
        for name in given.keys() - known:
            renamed = RENAMED.get(getattr(self, "key", ""), {})
            meant = renamed.get(name, ELSEWHERE.get(name))
            hint = f"; did you mean {meant}?" if meant in known else did_you_mean(name, known)
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}{hint}")
        init(self, *args, **given)

    return advised


def simple_types(hint) -> list | None:
    """The plain types of a field, those of KINDS, or None when there are none."""
    members = [hint]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = list(typing.get_args(hint))
    found = []
    for member in members:
        if member in KINDS and member is not tuple:
            found.append(member)
        elif member in (tuple, list) or typing.get_origin(member) in (tuple, list):
            found.append(tuple)
        elif typing.get_origin(member) is typing.Literal:
            found.extend({type(value): None for value in typing.get_args(member)})
    return found if any(kind is not type(None) for kind in found) else None


@functools.cache
def _kinds(cls: type) -> dict[str, list | None]:
    return {name: simple_types(hint) for name, hint in typing.get_type_hints(cls).items()}


@functools.cache
def _members(cls: type) -> dict[str, type]:
    """What the tuples of a field hold."""
    found = {}
    for name, hint in typing.get_type_hints(cls).items():
        for part in (hint, *typing.get_args(hint)):
            if typing.get_origin(part) is tuple:
                found[name] = typing.get_args(part)[0]
    return found


def member_type(cls: type, name: str) -> type | None:
    """What the tuple of a field holds; None for a field that holds no tuple."""
    return _members(cls).get(name)


MOST = 2**63 - 1  # what compiled code can count to


def check_params(estimator: Any) -> None:
    """Raise TypeError or ValueError for the first field of another type or outside its range."""
    for f in dataclasses.fields(estimator):
        value, meta = getattr(estimator, f.name), f.metadata
        if not meta:
            continue
        name = f"{type(estimator).__name__}({f.name}={value!r})"
        kinds = _kinds(type(estimator))[f.name]
        if f.name == "n_clusters" and isinstance(value, str):
            _check_auto(name, value, kinds)
        flag = kinds and bool in kinds and str(getattr(value, "dtype", "")) == "bool"  # numpy's
        array = kinds and tuple in kinds and hasattr(value, "__array__")  # without importing numpy
        known = flag or array
        if kinds and not known and not _is_one_of(value, kinds):
            wanted = " or ".join(KINDS[kind][1] for kind in kinds)
            raise TypeError(f"{name}: must be {wanted}, not {type(value).__name__}")
        if value is None:
            continue
        figures = _figures(value) if kinds else []
        if any(isinstance(v, numbers.Integral) and abs(int(v)) > MOST for v in figures):
            raise ValueError(f"{name}: must be at most {MOST:,}")
        if any(isinstance(v, numbers.Real) and not math.isfinite(v) for v in figures):
            raise ValueError(f"{name}: must be finite")
        if kinds and tuple in kinds and not isinstance(value, str):
            member = _members(type(estimator))[f.name]
            if not all(_is_one_of(v, [member]) for v in figures):
                raise TypeError(f"{name}: each entry must be {KINDS[member][1]}")
        if meta["choices"] is not None and value not in meta["choices"]:
            raise ValueError(f"{name}: choose one of {', '.join(map(repr, meta['choices']))}")
        for bound, bad, words in (
            ("ge", lambda v, b: v < b, "at least"),
            ("gt", lambda v, b: v <= b, "more than"),
            ("le", lambda v, b: v > b, "at most"),
        ):
            if meta[bound] is None or isinstance(value, str):
                continue
            if any(bad(v, meta[bound]) for v in figures):
                raise ValueError(f"{name}: must be {words} {meta[bound]}")


def _check_auto(name: str, value: str, kinds: list | None) -> None:
    """A word for the number of clusters: "auto", and only where a method finds it by itself."""
    if value != "auto":
        raise ValueError(f"{name}: give a whole number, or 'auto' with the method kith")
    if kinds is not None and str not in kinds:
        raise ValueError(
            f"{name}: 'auto' is only for kith; find the number with coterie select-k "
            "(coterie.select_k), or with Kith('auto') and its n_clusters_, and give it here"
        )


def _is_one_of(value: Any, kinds: list) -> bool:
    if isinstance(value, bool):  # Python counts True as a whole number
        return bool in kinds
    return any(isinstance(value, KINDS[kind][0]) for kind in kinds)


def _figures(value: Any) -> list:
    """The value itself, or what a tuple or an array holds."""
    several = isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) > 0
    return list(value) if several else [value]


def as_tuples(value: Any) -> Any:
    """Lists of JSON and TOML as the tuples that parameters have."""
    return tuple(value) if isinstance(value, list) else value
