"""Reference documentation of an estimator, made from its fields."""

import dataclasses
import types
import typing
from typing import Any


def with_sections(cls: type) -> str:
    """The class docstring with Parameters, Attributes and an example, in numpydoc form."""
    text = (cls.__dict__.get("__doc__") or "").rstrip()
    if text.startswith(f"{cls.__name__}("):  # what dataclasses write where there is no docstring
        text = ""
    parts = [text or f"{getattr(cls, 'title', cls.__name__)}."]
    fields = sorted(dataclasses.fields(cls), key=lambda f: f.name != "n_clusters")  # that one first
    parts.append(_section("Parameters", [_parameter(cls, f) for f in fields]))
    fitted = {}
    for base in reversed(cls.__mro__):
        fitted |= base.__dict__.get("attributes", {})
    parts.append(_section("Attributes", [f"{k}\n    {v}" for k, v in fitted.items()]))
    example = [
        f">>> from coterie import {cls.__name__}",
        f">>> labels = {cls.__name__}(3, random_state=0).fit_predict(X)",
    ]
    return "\n\n".join([*parts, _section("Examples", example)]) + "\n"


def _section(title: str, entries: list[str]) -> str:
    lines = [title, "-" * len(title), *"\n".join(entries).split("\n")]
    return "\n".join(f"    {line}" if line else "" for line in lines)


def _parameter(cls: type, f: dataclasses.Field) -> str:
    hint = typing.get_type_hints(cls).get(f.name, Any)
    return f"{f.name} : {_type(hint)}, default={f.default!r}\n    {f.metadata.get('help', '')}"


def _type(hint: Any) -> str:
    if hint is Any:
        return "object"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_type(part) for part in typing.get_args(hint))
    if hint is type(None):
        return "None"
    if typing.get_origin(hint) is tuple:
        return f"tuple of {_type(typing.get_args(hint)[0])}"
    return getattr(hint, "__name__", str(hint))
