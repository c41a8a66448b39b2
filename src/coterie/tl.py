"""Methods for AnnData: ``coterie.tl.kith(adata, n_clusters=10, use_rep="X_pca")``, in place.

There is one function for each method, named by its key. Each writes

    adata.obs[KEY]             the clusters, as categories "0", "1", ...
    adata.obsm["X_" + KEY]     the embedding
    adata.obsm[KEY + "_proba"] the soft assignment
    adata.uns[KEY]             method, parameters, seed, notes and version

and returns the fitted model, which predicts new cells.
"""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .estimator.saving import plain_params
from .methods import METHODS

__all__ = [*METHODS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in METHODS:
        raise AttributeError(f"module 'coterie.tl' has no method {name!r}")
    function = partial(cluster, name)
    function.__doc__ = f"Cluster the cells of an AnnData with {name!r}; see `coterie.tl`."
    return function


def __dir__() -> list[str]:
    return sorted(__all__)


def cluster(
    method: str,
    adata: Any,
    n_clusters: int | str = 8,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str | None = None,
    **params: Any,
) -> Any:
    """Fit a method on the cells of `adata` and write what it finds beside them.

    Parameters
    ----------
    method : key of a method, as `coterie methods` lists them.
    use_rep : key of `adata.obsm`; None: the matrix itself, sparse as it is.
    layer : key of `adata.layers` in place of `adata.X`.
    key_added : name of the results; None: the key of the method.
    params : of the method, such as `random_state`.

    A representation is an embedding: methods that ask for the kind of data take it as "vector".
    """
    from .registry import get

    cls: Any = get(method)
    X = matrix(adata, use_rep, layer)
    if use_rep is not None and "kind" in cls.__dataclass_fields__:
        params = {"kind": "vector"} | params
    model = cls(n_clusters, **params).fit(X)
    about = {"use_rep": use_rep or "", "layer": layer or ""}
    write(adata, model, X, key_added or method, about)
    return model


def matrix(adata: Any, use_rep: str | None = None, layer: str | None = None) -> Any:
    """The rows of an AnnData as an array or a CSR matrix, without gaps."""
    if not hasattr(adata, "obsm"):
        raise TypeError(
            f"coterie.tl takes an AnnData, not {type(adata).__name__}; for other rows use a class, "
            "such as coterie.Kith(3).fit(X)"
        )
    if use_rep is not None and layer is not None:
        raise ValueError(f"use_rep={use_rep!r} and layer={layer!r}: give one of them")
    place, key = ("obsm", use_rep) if use_rep is not None else ("layers", layer)
    if key is not None and key not in getattr(adata, place):
        has = ", ".join(map(repr, getattr(adata, place))) or "nothing"
        raise ValueError(f"adata.{place} has no {key!r}; it has {has}")
    where = "adata.X" if key is None else f"adata.{place}[{key!r}]"
    if getattr(adata, "isbacked", False) and use_rep is None:
        raise ValueError(
            f"adata is backed: {where} lies in {adata.filename}. Read it with adata.to_memory(), "
            "or give use_rep= for a representation that fits into memory"
        )
    X = adata.X if key is None else getattr(adata, place)[key]
    if X is None:
        raise ValueError("adata.X is empty; give use_rep= or layer=")
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    gaps = int(np.count_nonzero(~np.isfinite(X.data if sp.issparse(X) else X)))
    if gaps:
        raise ValueError(
            f"{where} has {gaps} values that are NaN or infinite; fill them, or leave out those "
            "cells or genes"
        )
    return X


def write(adata: Any, model: Any, X: Any, key: str, about: dict) -> None:
    """Put clusters, embedding, soft assignment and settings into `adata`."""
    import pandas as pd  # comes with anndata

    names = pd.Index([str(i) for i in np.unique(model.labels_)])  # 10 after 9, not after 1
    adata.obs[key] = pd.Categorical([str(label) for label in model.labels_], categories=names)
    adata.obsm[f"X_{key}"] = model.transform(X)
    if hasattr(model, "predict_proba"):
        adata.obsm[f"{key}_proba"] = model.predict_proba(X)
    from . import __version__

    params = {k: v if v is not None else "None" for k, v in plain_params(model).items()}
    adata.uns[key] = {
        "method": model.key,
        "params": params,
        "seed": model.seed_,
        "notes": list(model.notes_),
        "version": __version__,
        **about,
    }
