"""``coterie demo``: cluster scikit-learn's digits with the default method."""

from . import fit
from .method_args import Parser


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie demo",
        description="Cluster the digits that ship with scikit-learn with the default method and\n"
        "write a run folder with a report.",
    )
    parser.add_argument(
        "--out", metavar="RUN", help="run folder (default: runs/demo, which is replaced)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--method", metavar="M", help="method (default: kith)")
    args = parser.parse_strictly(argv)
    words = ["digits", "--clusters", "10", "--out", args.out or "runs/demo", "--report"]
    words += ["--method", args.method] if args.method else []
    words += ["--overwrite"] if args.overwrite or not args.out else []
    return fit.run(words)
