"""coterie: deep clustering, an embedding and the clusters learned together.

>>> from coterie import DEC
>>> labels = DEC(10).fit_predict(images)
"""

from importlib import import_module
from typing import Any

from .methods import METHODS, OBJECTIVES

__version__ = "0.1.0"

# public name -> module; imported when first used, so that `import coterie` stays light
_PUBLIC = {
    "load": "registry",
    "list_methods": "registry",
    "load_data": "data",
    "report": "reporting",
    "compare": "reporting",
    "select_k": "number_of_clusters",
}
_PUBLIC |= {name: f"methods.{module}" for module, name in METHODS.values()}
_PUBLIC |= {name: f"methods.{module}" for module, name in OBJECTIVES.values()}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "tl":  # the functions for AnnData
        return import_module("coterie.tl")
    if name in _PUBLIC:
        module = import_module(f"coterie.{_PUBLIC[name]}")
        return getattr(module, {"load_data": "load"}.get(name, name))
    raise AttributeError(f"module 'coterie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
