"""``coterie evaluate``: score a run against known labels."""

from coterie.storage import runs

from .method_args import Parser
from .source import known_labels
from .summary import show_scores


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie evaluate",
        usage="coterie evaluate RUN [--labels FILE|COLUMN|folder]",
        description="Score the labels of a run against known classes. Without --labels the data\n"
        "set's own classes are used, if it has them.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of an earlier fit")
    parser.add_argument(
        "--labels",
        metavar="FILE|COLUMN|folder",
        help=".npy or text file with one label per row (ids are matched), or a column of the data; "
        "folder: the class of an image or text is its subfolder",
    )
    args = parser.parse_strictly(argv)
    finished = runs.read(args.run)
    labels = known_labels(finished, args.labels)

    from coterie import metrics

    show_scores(metrics.scores(labels, finished.labels))
    return 0
