"""Several files of a folder replaced as one: written beside the old ones, then moved in.

The replacement grows in `.coterie-new`. One rename, to `.coterie-ready`, decides: before it the old
files stand as they were, after it whoever opens the folder moves the new ones in.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from .atomic import holding, sync_folder

NEW, READY = ".coterie-new", ".coterie-ready"
DROPPED = "dropped"  # a folder of empty files, named as old ones that have no successor


def begin(folder: Path) -> Path:
    """An empty folder for the replacement; what an earlier attempt left is given up."""
    complete(folder)
    new = folder / NEW
    remove(new)
    new.mkdir(parents=True)
    return new


def commit(new: Path, drop: Iterable[str] = ()) -> None:
    """Put the files in `new` in the place of the old ones; those named in `drop` go in any case."""
    folder = new.parent
    remove(new / DROPPED)  # of a commit that was killed
    (new / DROPPED).mkdir()
    for name in drop:
        if not (new / name).is_file() and os.path.lexists(folder / name):
            (new / DROPPED / name).touch()
    sync_folder(new / DROPPED)
    sync_folder(new)
    os.rename(new, folder / READY)
    sync_folder(folder)
    complete(folder)


def complete(folder: str | os.PathLike) -> None:
    """Finish a replacement that was decided; every step may be repeated, also after a kill.

    One process at a time: the slower of two would meet the files of the next replacement.
    """
    folder = Path(folder)
    ready = folder / READY
    with holding(ready) as there:
        if not there:
            return
        gone = contextlib.suppress(FileNotFoundError)  # without locks two may be at it
        with gone:
            for mark in list((ready / DROPPED).iterdir()):
                remove(folder / mark.name)
                mark.unlink()
        for file in [p for p in ready.iterdir() if p.is_file()]:
            with gone:
                if (folder / file.name).is_dir():  # in the place of a file of ours
                    remove(folder / file.name)
                os.replace(file, folder / file.name)
        sync_folder(folder)
        shutil.rmtree(ready, ignore_errors=True)


def remove(path: Path) -> None:
    """A file or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
