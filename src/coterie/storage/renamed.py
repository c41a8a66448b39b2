"""Parameters that had another name in files of earlier versions: models, runs and the ledger."""

from collections.abc import Mapping
from typing import Any

# method -> old name -> name of today
RENAMED = {
    "cm": {"n_init": "restarts"},
    "cnet": {"n_init": "restarts", "centers_init": "n_init"},
    "pca_kmeans": {"variance": "explained_variance"},
}


def current_names(method: Any, stored: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a fit, as a file holds them, under the names that they have today.

    An old name may be the new one of another parameter. A file is of today if it has a name that
    only today's files have.
    """
    new_name = RENAMED.get(method, {}) if isinstance(method, str) else {}
    only_today = set(new_name.values()) - set(new_name)
    if only_today & set(stored):
        return dict(stored)
    return {new_name.get(name, name): value for name, value in stored.items()}
