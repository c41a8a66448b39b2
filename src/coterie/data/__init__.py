"""Data in: files, folders, arrays, frames and named data sets, all as one `Dataset`."""

from __future__ import annotations

_HOMES = {
    "Dataset": "dataset",
    "fingerprint": "dataset",
    "DataError": "errors",
    "Recipe": "recipe",
    "load": "reading",
    "available": "sets.named",
    "describe": "sets.named",
    "fetch": "sets.download",
}

__all__ = [
    "DataError",
    "Dataset",
    "Recipe",
    "available",
    "describe",
    "fetch",
    "fingerprint",
    "load",
]


def __getattr__(name: str):
    # late, so that `import coterie` does not pay for scipy and the readers
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
