"""The data options that commands share, and where labels for an evaluation come from."""

import argparse
import csv
from pathlib import Path

import numpy as np

from coterie.runtime.hints import did_you_mean

from .method_args import Parser, UsageError, names, whole

OPTIONS = (
    "columns",
    "drop",
    "id_column",
    "label_column",
    "text_column",
    "image_size",
    "skip_bad",
    "embeddings",
    "words",
    "use_rep",
    "categorical",
    "dates",
    "missing",
    "names",
    "data_dir",
)
ENDINGS = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".txt", ".jsonl")
LABEL_COLUMNS = ("label", "labels", "target", "class", "y")


def add_data_flags(parser: Parser):
    """Flags that say how the data are to be read; those not given leave no trace."""
    group = parser.add_argument_group("data")

    def add(flag, **kwargs):
        group.add_argument(flag, default=argparse.SUPPRESS, **kwargs)

    add("--columns", type=names, metavar="A,B,...", help="columns to use (default: all)")
    add("--drop", type=names, metavar="A,B,...", help="columns to leave out")
    add("--id-column", metavar="NAME", help="column that names the rows")
    add("--label-column", metavar="NAME", help="column of known classes, for evaluation only")
    add("--text-column", metavar="NAME", help="column or JSON key that holds the text")
    add("--image-size", metavar="H[xW]", help="resize images to this size")
    add("--skip-bad", action="store_true", help="leave out images that cannot be read")
    add("--embeddings", action="store_true", help="rows are embeddings already")
    add(
        "--words",
        type=whole,
        metavar="N",
        help="size of the vocabulary of texts (default: 2000; kith 5000)",
    )
    add("--use-rep", metavar="KEY", help="use this representation of an .h5ad file (obsm)")
    add("--categorical", metavar="one-hot", help="turn columns of words into columns of 0 and 1")
    add("--dates", metavar="numbers", help="turn dates into days since 1970")
    add("--missing", metavar="median", help="fill gaps with the median of their column")
    add("--names", metavar="FILE", help="names of the columns of .npy and .npz, one per line")
    add("--data-dir", metavar="DIR", help="folder of the named data sets (or set COTERIE_DATA)")


def data_options(args: argparse.Namespace) -> dict:
    """The data options that were given, by name."""
    given = {name: value for name, value in vars(args).items() if name in OPTIONS}
    if "names" in given:
        given["names"] = str(Path(given["names"]).resolve())
    return given


def load(source: str, options: dict, **more):
    """Read data; what is worth knowing goes to standard error."""
    import coterie

    try:
        source.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"the name {source!r} is not UTF-8 text, which run.toml must be; rename it"
        ) from None
    return coterie.load_data(source, **options, **more)


def load_for(words: int, source: str, options: dict, encoder: str | None = None):
    """Read data for a method that describes texts by so many words, unless told otherwise.

    Photographs for an encoder are read in the size that it looks at.
    """
    if encoder is not None and "image_size" not in options and Path(source).is_dir():
        options = options | _size_for(encoder, Path(source))
    dataset = load(source, {"words": words} | options)
    if "words" in options and dataset.kind != "text":
        raise UsageError(
            f"--words {options['words']} does not apply to {dataset.name}, which is "
            f"{dataset.kind} data; leave it out"
        )
    return dataset


def _size_for(encoder: str, folder: Path) -> dict:
    from coterie.data.folders import find_images
    from coterie.encoders.find import find
    from coterie.estimator.words_or_encoder import tries_both

    if tries_both(encoder):  # which is for texts
        return {}
    largest = getattr(find(encoder), "largest", None)
    return {"image_size": largest} if largest and find_images(folder)[0] else {}


def stored_options(data: dict) -> dict:
    """How the data of a run were read, from the part of its run.toml about them."""
    return {name: data[name] for name in OPTIONS if name in data}


def reload(run, **changes):
    """The data of a run, read again as they were read for the fit; other data are refused."""
    from coterie.data import Recipe

    stored = run.meta["data"]
    run.verify("recipe.json", "recipe.safetensors")
    options = stored_options(stored) | changes
    options.pop("names", None)  # the recipe has them
    dataset = load(stored["source"], options, recipe=Recipe.load(run.path))
    check_same(run.path, stored, dataset, "restore them or fit again")
    return dataset


def check_same(path, stored: dict, dataset, way_out: str):
    """Refuse data that are not those of the run: its labels would stand beside other rows."""
    was, now = stored.get("fingerprint"), dataset.fingerprint()
    if was != now:
        raise UsageError(
            f"the data of {path} have changed since it began ({stored.get('rows')} rows, now "
            f"{len(dataset)}; fingerprint {was}, now {now}); {way_out}"
        )


def short_name(source: str | None) -> str:
    """Name for the folder of a run: ``news.jsonl.gz`` is ``news``, ``photos/`` is ``photos``."""
    from coterie.data.object_storage import shown

    name = Path(shown(source or "data")).name
    for ending in (".gz", *ENDINGS):
        name = name.removesuffix(ending)
    return name or "data"


def absolute(source: str) -> str:
    """A path that still holds when the run is resumed from another folder; names stay names."""
    from coterie.data.sets import named

    is_path = named.canonical(source) is None and Path(source).exists()
    return str(Path(source).resolve()) if is_path else source


def known_labels(run, spec: str | None) -> np.ndarray:
    """Classes of the rows of a run, from a file, from a column of its data, or from its data.

    What a file or a column calls its classes is kept: numbers would be taken for the data's own.
    """
    if spec is not None and Path(spec).is_file():
        try:
            labels = labels_from_file(Path(spec), run.ids)
        except (UsageError, OSError):
            raise
        except Exception as error:  # whatever numpy or csv stumble over
            raise UsageError(f"{spec} cannot be read as labels ({error})") from error
    else:
        dataset = reload(run, **({"label_column": spec} if spec else {}))
        labels = dataset.labels
        if labels is None:
            raise UsageError(
                f"{run.meta['data']['source']} has no labels of its own; "
                "give --labels FILE or a column"
            )
        if spec and dataset.label_names:
            labels = np.array(dataset.label_names)[labels]
    rows = len(run.table)
    if len(labels) != rows:
        raise UsageError(f"{len(labels)} labels for {rows} rows of {run.path}; give one per row")
    return np.asarray(labels)


def labels_from_file(path: Path, ids: list[str] | None = None) -> np.ndarray:
    """Labels from .npy, or from text with one label a row; an ``id`` column is matched by name."""
    if path.suffix == ".npy":
        labels = np.load(path, allow_pickle=False)
        if labels.ndim != 1:
            raise UsageError(f"{path} has shape {labels.shape}; labels are one number per row")
        return labels
    with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        lines = [(reader.line_num, row) for row in reader if row]
    rows = [row for _, row in lines]
    if not rows:
        raise UsageError(f"{path} is empty; give one label per row")
    for line, row in lines:
        if len(row) != len(rows[0]):
            raise UsageError(
                f"{path}, line {line}: {len(row)} cells but {len(rows[0])} in the first line; "
                "complete the line, or put text that holds a comma in quotes"
            )
    header = [name.strip().lower() for name in rows[0]]
    column = next((header.index(name) for name in LABEL_COLUMNS if name in header), None)
    if column is None and len(header) > 1:
        close = next((m for m in (did_you_mean(h, LABEL_COLUMNS) for h in header) if m), "")
        raise UsageError(f"{path} has no column named label (but {', '.join(rows[0])}){close}")
    if column is None:  # one column without a header
        return np.array([row[0] for row in rows])
    body = rows[1:]
    if "id" not in header or ids is None:
        return np.array([row[column] for row in body])
    by_id = {row[header.index("id")]: row[column] for row in body}
    if len(by_id) != len(ids):
        raise UsageError(f"{len(by_id)} labels in {path} for {len(ids)} rows; give one per row")
    missing = next((i for i in ids if i not in by_id), None)
    if missing is not None:
        raise UsageError(f"{path} has no label for row '{missing}'")
    return np.array([by_id[i] for i in ids])
