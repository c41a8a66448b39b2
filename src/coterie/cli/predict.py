"""``coterie predict``: label new data with the model of a run."""

import sys
from pathlib import Path
from typing import Any

from coterie.runtime.terminal import printable
from coterie.storage import runs
from coterie.storage.atomic import sweep, write_atomic

from .method_args import Parser, UsageError
from .source import add_data_flags, data_options, load


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie predict",
        usage="coterie predict RUN DATA [--out labels.csv] [--proba] [--onnx]",
        description="Label new rows. They are read as the rows of the run were: same columns,\n"
        "image size, vocabulary and scaling.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of an earlier fit, or of model.save")
    parser.add_argument("data", metavar="DATA", help="new rows")
    parser.add_argument("--out", metavar="FILE", help="write id, label and confidence to FILE")
    parser.add_argument("--proba", action="store_true", help="add a column for each cluster")
    parser.add_argument(
        "--onnx", action="store_true", help="use onnxruntime and the file that coterie export wrote"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    add_data_flags(parser)
    args = parser.parse_strictly(argv)

    folder = _folder(args.run, args.onnx)
    out = Path(args.out) if args.out else None
    if out and out.is_dir():
        raise UsageError(f"{out} is a folder; name the file in it, such as {out / 'labels.csv'}")
    if out and out.exists() and not args.overwrite:
        raise UsageError(f"{out} exists; choose another --out or use --overwrite")

    estimator, recipe = _exported(folder) if args.onnx else _loaded(folder)
    dataset = load(args.data, data_options(args), recipe=recipe)
    if out:  # before the work: a folder that cannot be made is found now
        out.parent.mkdir(parents=True, exist_ok=True)
    labels, proba = estimator.predict_both(dataset.given_to(estimator))
    table = runs.labels_csv(dataset.ids, labels, proba.max(axis=1), proba if args.proba else None)
    if out:
        sweep(out.parent)  # what a kill has left
        write_atomic(out, table)
    else:
        if sys.stdout.isatty():  # a person looks at it, not a program
            table = f"{printable(table.decode('utf-8', 'replace'), '')}\n".encode()
        sys.stdout.buffer.write(table)  # bytes: a row may be named after any file
    return 0


def _folder(path: str, onnx: bool) -> Path:
    """The folder of a finished run whose files are what was written, or of a saved model."""
    if runs.peek(path) is None and (Path(path) / "model.json").is_file() and not onnx:
        return Path(path)
    finished = runs.read(path)
    finished.verify(*(runs.MODEL if not onnx else ("model.onnx", *runs.MODEL[2:])))
    return finished.path


def _loaded(folder: Path) -> tuple[Any, Any]:
    import coterie

    model: Any = coterie.load(folder)
    if not hasattr(model, "recipe_"):
        raise UsageError(
            f"{folder} does not say how its rows were read; save the model again with this "
            "version, or predict in Python: coterie.load(folder).predict(rows)"
        )
    return model, model.recipe_


def _exported(folder: Path) -> tuple[Any, Any]:
    from coterie.data import Recipe
    from coterie.export import OnnxModel

    path = folder / "model.onnx"
    if not path.exists():
        raise UsageError(f"{path} is not there; write it with: coterie export {folder} --onnx")
    return OnnxModel(path), Recipe.load(folder)
