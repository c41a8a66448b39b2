"""The door through which all data come in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from . import options
from .arrays import from_array, read_npy, read_npz
from .dataset import Dataset
from .errors import DataError, did_you_mean
from .limits import check_regular
from .object_storage import is_url
from .options import Options
from .recipe import Recipe

_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]*(e[+-]?\d+)?$)", re.IGNORECASE)
_ENDINGS = (
    ".npy, .npz, .csv, .tsv, .xlsx, .parquet, .feather, .arrow, .txt, .jsonl, .h5ad, a .zip of "
    "images (.csv, .tsv, .txt and .jsonl also .gz)"
)


def load(
    source,
    *,
    recipe: Recipe | None = None,
    columns=None,
    drop=None,
    id_column: str | None = None,
    label_column: str | None = None,
    text_column: str | None = None,
    image_size=None,
    skip_bad: bool = False,
    embeddings: bool = False,
    words: int | None = None,
    use_rep: str | None = None,
    categorical: str | None = None,
    dates: str | None = None,
    missing: str | None = None,
    names=None,
    data_dir: str | Path | None = None,
    notice: Callable[[str], None] | None = None,
) -> Dataset:
    """Read data from anywhere.

    Parameters
    ----------
    source : str, path, array, sparse matrix, data frame, tensor, AnnData or list
        The name of a data set (see `available`), a file (.npy, .npz, .csv, .tsv, .xlsx, .parquet,
        .feather, .arrow, .txt, .jsonl, .h5ad, .zip of images), a folder of images, texts, parquet
        or 10x files, the address of parquet files in object storage (``s3://bucket/folder``,
        ``gs://``, ``abfs://``, ``hdfs://``), or an object in memory. A list holds texts, images of
        Pillow, or `Path`s of image files.
    recipe : Recipe, optional
        How the fitted data were read: the new data are read in the same way.
    columns, drop : list of str or "a,b", optional
        Columns of a table to use, or to leave out.
    id_column, label_column, text_column : str, optional
        Columns (or JSON keys) that name the rows, hold known classes (evaluation only), or hold
        documents. For a folder of images ``label_column="folder"`` takes the subfolders; for
        .npz files and named sets it names another label array.
    image_size : int or (height, width) or "HxW", optional
        Size to which images are resized; by default the most common size (files in a folder: shrunk
        to 64 pixels if the longer side has more than 128).
    skip_bad : bool
        Leave out unreadable images instead of stopping.
    embeddings : bool
        The rows are ready embeddings: vectors, not a table.
    words : int, optional
        Most words that texts are described by; 2,000 by default, as in the papers.
    use_rep : str, optional
        Of an .h5ad file: the representation (key of obsm) in place of the matrix.
    categorical, dates, missing : {"one-hot"}, {"numbers"}, {"median"}, optional
        Tables: words become columns of 0 and 1, dates the days since 1970, gaps the median of
        their column. Without them such cells are refused.
    names : list of str, or path of a text file with one name a line, optional
        Names of the columns of an array or sparse matrix, such as genes.
    data_dir : path, optional
        Folder of the named data sets; they are also looked for in ``$COTERIE_DATA`` and in the
        user's data folder.
    notice : callable, optional
        Told about everything that was changed on the way; a warning by default.

    Returns
    -------
    Dataset
        Rows in the order of the source.

    Raises
    ------
    DataError
        With the place of the trouble and what to do about it.
    """
    ask = Options(
        recipe=recipe,
        columns=options.names(columns) or None,
        drop=options.names(drop),
        id_column=id_column,
        label_column=label_column,
        text_column=text_column,
        image_size=options.size(image_size),
        skip_bad=skip_bad,
        embeddings=embeddings,
        words=options.count(words),
        use_rep=use_rep,
        categorical=options.choice("categorical", categorical),
        dates=options.choice("dates", dates),
        missing=options.choice("missing", missing),
        names=options.column_names(names),
        notice=notice or options.warn,
    )
    given = tuple(option for option in options.CHECKED if getattr(ask, option))
    ask = replace(ask, given=given).with_recipe()
    data = _read(source, ask, data_dir)
    twice = len(data.ids) - len(set(data.ids))
    if twice:
        ask.notice(f"{data.name}: {twice} rows have an id that another row has too")
    if not isinstance(data.ids, range):
        data.ids = _writable(data.ids, data.name, ask.notice)
        formulas = [name for name in map(str, data.ids) if _FORMULA.match(name)]
        if formulas:
            ask.notice(
                f"{data.name}: {len(formulas)} ids begin as a formula does ({formulas[0]!r:.40}); "
                "a spreadsheet would run them when it opens labels.csv: import ids as text"
            )
    return data


def _writable(ids, name: str, notice: Callable[[str], None]):
    """The ids as a file can hold them: JSON may have halves of characters, UTF-8 has not."""
    try:
        "".join(map(str, ids)).encode("utf-8", "surrogateescape")
        return ids
    except UnicodeEncodeError:
        halves = re.compile("[\ud800-\udc7f\udd00-\udfff]")
        changed = [halves.sub("\ufffd", str(i)) for i in ids]
        odd = sum(new != str(old) for new, old in zip(changed, ids))
        notice(f"{name}: {odd} ids hold half a character (a lone surrogate), written as \ufffd")
        return changed


def _read(source, ask: Options, data_dir) -> Dataset:
    """Tell the source by its type."""
    if isinstance(source, (str, Path)):
        try:
            return _from_string(source, ask, data_dir)
        except PermissionError as error:
            raise DataError(f"no permission to read {error.filename or source}") from None
        except OSError as error:
            raise DataError(f"cannot read {source}: {error}") from None
        except (DataError, ImportError):
            raise
        except MemoryError as error:
            raise DataError(f"{source} is too large for the memory there is: {error}") from None
        except Exception as error:  # whatever the parser of a format stumbles over
            raise DataError(
                f"{source} cannot be read; it is damaged, or not what its name says "
                f"({type(error).__name__}: {error})"
            ) from error
    from .cells import from_anndata, is_cells
    from .frames import from_frame, is_frame
    from .library_sets import from_hugging_face, is_hugging_face, is_torch_set, torch_rows
    from .pictures import as_pictures
    from .texts import as_texts

    if isinstance(source, Dataset):
        ask.only("data that were read already")
        return source
    if is_hugging_face(source):
        return from_hugging_face(source, ask)
    if is_torch_set(source):
        source = torch_rows(source)
    if is_cells(source):
        ask.only("an AnnData", "label_column", "use_rep")
        return from_anndata(source, ask, "cells")
    if is_frame(source):
        ask.only("a data frame", *options.TABLE)
        return from_frame(source, ask)
    pictures = as_pictures(source, strings=ask.recipe is not None and ask.recipe.kind == "image")
    if pictures is not None:
        from .folders import from_images

        ask.only("a list of images", "image_size", "skip_bad")
        return from_images(pictures, ask, "images")
    texts = as_texts(source)
    if texts is not None:
        from .text import from_texts

        ask.only("a list of texts")
        return from_texts(texts, ask)
    ask.only("an array", "image_size", "embeddings", "names")
    return from_array(source, ask)


def _from_string(source: str | Path, ask: Options, data_dir) -> Dataset:
    from .sets import named

    if isinstance(source, str) and named.canonical(source) is not None:
        if Path(source).exists():
            ask.notice(f"'{source}' is the named data set; write ./{source} for the file or folder")
        return named.read(source, ask, data_dir)
    if is_url(source):
        from .parquet import read_parquet

        return read_parquet(source, ask)
    path = Path(source).expanduser()
    if not path.exists():
        raise DataError(
            f"there is no file or folder '{source}' and no data set of that name."
            f"{did_you_mean(str(source), named.names())} `coterie datasets` lists the names"
        )
    return _from_folder(path, ask) if path.is_dir() else _from_file(path, ask)


def _from_folder(path: Path, ask: Options) -> Dataset:
    from .cells import is_10x, read_10x
    from .folders import find_images, read_folder
    from .text import read_text_folder

    if is_10x(path):
        return read_10x(path, ask)
    if next(path.rglob("*.parquet"), None) and not find_images(path)[0]:
        from .parquet import read_parquet

        return read_parquet(path, ask)
    if next(path.rglob("*.txt"), None) and not find_images(path)[0]:
        return read_text_folder(path.resolve(), ask)
    return read_folder(path.resolve(), ask)


def _from_file(path: Path, ask: Options) -> Dataset:
    from .folders import SUFFIXES, read_images

    check_regular(path)
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty")
    ending = path.suffix.lower()
    packed = ending == ".gz"
    if packed:
        ending = Path(path.stem).suffix.lower()
    if not packed and ending == ".npy":
        return read_npy(path, ask)
    if not packed and ending == ".npz":
        return read_npz(path, ask)
    if not packed and ending in SUFFIXES:
        return read_images(path.parent, [path.name], ask)
    if not packed and ending == ".parquet":
        from .parquet import read_parquet

        return read_parquet(path, ask)
    if not packed and ending == ".zip":
        from .zipped import read_zip

        return read_zip(path, ask)
    if not packed and ending in (".xlsx", ".feather", ".arrow"):
        from .sheets import read_arrow, read_xlsx

        return (read_xlsx if ending == ".xlsx" else read_arrow)(path, ask)
    if not packed and ending == ".h5ad":
        from .cells import read_h5ad

        return read_h5ad(path, ask)
    if ending in (".csv", ".tsv"):
        from .csvfile import read_csv

        return read_csv(path, ask)
    if ending in (".txt", ".jsonl"):
        from .text import read_jsonl, read_txt

        return (read_txt if ending == ".txt" else read_jsonl)(path, ask)
    raise DataError(
        f"{path} is of a type that cannot be read; use {_ENDINGS}, or a folder of images or texts"
    )
