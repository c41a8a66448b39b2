"""``coterie fit cells.h5ad --write out.h5ad``: the results beside the cells."""

from pathlib import Path

from coterie.storage import runs

from .method_args import UsageError


def check_write(source: str, target: Path, *, overwrite: bool) -> None:
    """Refuse before the work what could not be written after it."""
    if Path(source).suffix.lower() != ".h5ad":
        raise UsageError(f"--write adds clusters to an .h5ad file, and {source} is not one")
    if target.suffix.lower() != ".h5ad":
        raise UsageError(f"--write {target}: give a file that ends in .h5ad")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; choose another --write or use --overwrite")
    if not target.parent.is_dir():
        raise UsageError(f"--write {target}: there is no folder {target.parent}")


def write_h5ad(run: runs.Run, target: Path, *, overwrite: bool) -> None:
    """A copy of the run's data with clusters, embedding and settings, in one step."""
    import os

    import coterie
    from coterie.data.cells import open_h5ad
    from coterie.tl import write

    from .source import reload

    source = run.meta["data"]["source"]
    check_write(source, target, overwrite=overwrite)
    dataset, model = reload(run), coterie.load(run.path)
    adata = open_h5ad(Path(source))
    about = {"use_rep": dataset.recipe.use_rep or "", "layer": ""}
    write(adata, model, dataset.given_to(model), model.key, about)
    unfinished = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    try:
        adata.write_h5ad(unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
