"""One declaration per parameter gives constructor, flag, config key, range check and docs."""

import dataclasses
from typing import Any


def param(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    choices: tuple | None = None,
    group: str = "method",
    kw_only: bool = True,
) -> Any:
    """A dataclass field that carries its help text and its legal values."""
    metadata = {"help": help, "ge": ge, "gt": gt, "le": le, "choices": choices, "group": group}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=metadata)


def check_params(estimator: Any) -> None:
    """Raise ValueError for the first field outside its range; None is always let through."""
    for f in dataclasses.fields(estimator):
        value, meta = getattr(estimator, f.name), f.metadata
        if not meta or value is None:
            continue
        name = f"{type(estimator).__name__}({f.name}={value!r})"
        if meta["choices"] is not None and value not in meta["choices"]:
            raise ValueError(f"{name}: choose one of {', '.join(map(repr, meta['choices']))}")
        for bound, bad, words in (
            ("ge", lambda v, b: v < b, "at least"),
            ("gt", lambda v, b: v <= b, "more than"),
            ("le", lambda v, b: v > b, "at most"),
        ):
            if meta[bound] is None or isinstance(value, str):
                continue
            try:
                outside = bad(value, meta[bound])
            except TypeError:
                raise TypeError(f"{name}: must be a number, not {type(value).__name__}") from None
            if outside:
                raise ValueError(f"{name}: must be {words} {meta[bound]}")
