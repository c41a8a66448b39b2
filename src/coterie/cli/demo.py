"""``coterie demo``: cluster scikit-learn's digits with the default method."""

from . import fit
from .flags import Parser


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie demo",
        description="Cluster the digits that ship with scikit-learn with the default method and\n"
        "write a run folder with a report.",
    )
    parser.add_argument("--out", default="runs/demo", metavar="RUN", help="(default: runs/demo)")
    parser.add_argument("--method", metavar="M", help="another method")
    args = parser.parse_strictly(argv)
    method = ["--method", args.method] if args.method else []
    words = ["digits", "--clusters", "10", "--out", args.out, "--overwrite", "--report", *method]
    return fit.run(words)
