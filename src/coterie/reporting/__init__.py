"""Pages on which a person can look at clusters.

`report` and `compare` are what Python users call; `write` and `write_comparison` are the same for
run folders.
"""

import contextlib
import warnings
from pathlib import Path
from typing import Any

__all__ = ["compare", "report", "write", "write_comparison"]


def report(model, X, out="report.html", *, labels=None, overwrite=False, verbose=0) -> Path:
    """Write the page of a fitted model, one file that is complete in itself.

    Parameters
    ----------
    model : fitted estimator
    X : the rows that it was fitted on, or what `coterie.load_data` returned: then the page shows
        names, texts and column names too
    out : path of the page
    labels : (n,) known classes, optional; shown in a section that is marked as evaluation only
    overwrite : replace a file that is there already
    verbose : 1 shows progress

    Returns
    -------
    path : pathlib.Path
    """
    from .page import write as write_page
    from .rows import as_dataset

    out, dataset = _free(out, overwrite), as_dataset(model, X)
    with _names_known():
        return write_page(None, model, dataset, labels, out, verbose)


def compare(models, X, out="compare.html", *, labels=None, overwrite=False) -> Path:
    """Write a page that compares fitted models on the same rows.

    Parameters
    ----------
    models : list of fitted estimators, or a dict from a name to one or several of them
    X : the rows that all of them were fitted on, or what `coterie.load_data` returned
    out, labels, overwrite : as for `report`

    Returns
    -------
    path : pathlib.Path
    """
    from .comparison import results_of
    from .comparison import write as write_page
    from .rows import as_dataset

    out = _free(out, overwrite)
    if not models:
        raise ValueError("there are 0 models to compare; give at least 1")
    first = next(iter(models.values())) if isinstance(models, dict) else models[0]
    dataset = as_dataset(first[0] if isinstance(first, (list, tuple)) else first, X)
    with _names_known():
        return write_page(results_of(models, dataset, labels), out, dataset.X)


def write(run_dir, model, dataset, labels=None, out=None, verbose=0, **seen) -> Path:
    """Write ``report.html`` of a run and return its path; see `coterie.reporting.page.write`."""
    from .page import write as write_page

    return write_page(run_dir, model, dataset, labels, out, verbose, **seen)


def write_comparison(results, out, X: Any = None) -> Path:
    """Write a page that compares runs; see `coterie.reporting.comparison.write`."""
    from .comparison import write as write_page

    return write_page(results, out, X)


@contextlib.contextmanager
def _names_known():
    """Columns were checked with the whole frame; its bare numbers follow in their order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


def _free(out, overwrite: bool) -> Path:
    out = Path(out)
    if out.is_dir():
        raise ValueError(f"{out} is a folder; name the page in it, such as {out / 'report.html'}")
    if out.exists() and not overwrite:
        raise ValueError(f"{out} exists; choose another name or give overwrite=True")
    return out
