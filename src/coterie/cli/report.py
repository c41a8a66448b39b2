"""``coterie report``: write the HTML page of a run."""

from coterie.storage import runs

from .method_args import Parser
from .source import known_labels, reload


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie report",
        usage="coterie report RUN [--labels FILE|COLUMN]",
        description="Write report.html into the run folder: one page that opens anywhere.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of an earlier fit")
    parser.add_argument(
        "--labels",
        metavar="FILE|COLUMN",
        help="known classes, to compare with (as for coterie evaluate)",
    )
    args = parser.parse_strictly(argv)
    finished = runs.read(args.run)
    labels = known_labels(finished, args.labels) if args.labels else None
    print(write(finished, labels, verbose=1))
    return 0


def write(finished: runs.Run, labels, verbose: int = 0, fitted=None):
    """Write report.html into the run folder and return its path.

    What a fit still has in memory (`fitted`) is not read again.
    """
    import coterie
    from coterie import reporting

    if fitted is None:
        finished.verify()
        dataset, model, seen = reload(finished), coterie.load(finished.path), {}
    else:
        dataset, model = fitted.dataset, fitted.estimator
        seen = {"outcome": fitted.outcome, "beside": fitted.beside}
    if labels is None:
        labels = dataset.labels  # shown as evaluation, where the data know their classes
    return reporting.write(finished.path, model, dataset, labels=labels, verbose=verbose, **seen)
