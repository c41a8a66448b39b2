"""``coterie report``: write the HTML page of a run."""

from coterie import runs

from .flags import Parser
from .source import known_labels


def run(argv: list[str]) -> int:
    parser = Parser(prog="coterie report", usage="coterie report RUN [--labels FILE|COLUMN]")
    parser.add_argument("run", metavar="RUN", help="folder of an earlier fit")
    parser.add_argument("--labels", metavar="FILE|COLUMN", help="known classes, to compare with")
    args = parser.parse_strictly(argv)
    finished = runs.read(args.run)
    labels = known_labels(finished, args.labels) if args.labels else None
    print(write(finished, labels))
    return 0


def write(finished: runs.Run, labels):
    """Write report.html into the run folder and return its path."""
    from coterie.report import write_report

    return write_report(finished.path, labels=labels)
