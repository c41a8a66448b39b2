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


def write(finished: runs.Run, labels, verbose: int = 0):
    """Write report.html into the run folder and return its path."""
    import coterie
    from coterie import reporting

    finished.verify()
    dataset = reload(finished)
    if labels is None:
        labels = dataset.labels  # shown as evaluation, where the data know their classes
    model = coterie.load(finished.path)
    return reporting.write(finished.path, model, dataset, labels=labels, verbose=verbose)
