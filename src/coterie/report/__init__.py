"""The report: one page on which a person can look at the clusters.

`write` makes the page of one run, `compare` a page over several.
"""

from typing import Any

__all__ = ["compare", "write"]


def write(run_dir, model, dataset, labels=None, out=None, verbose=0) -> Any:
    """Write ``report.html`` of a run and return its path; see `coterie.report.page.write`."""
    from .page import write as write_page

    return write_page(run_dir, model, dataset, labels, out, verbose)


def compare(results, out) -> Any:
    """Write a page that compares runs; see `coterie.report.comparison.compare`."""
    from .comparison import compare as write_comparison

    return write_comparison(results, out)
