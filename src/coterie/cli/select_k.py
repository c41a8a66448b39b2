"""``coterie select-k``: how many clusters? Three curves, and an answer only where they agree."""

import csv
import io
from pathlib import Path

from .method_args import Parser, UsageError, whole
from .source import add_data_flags, data_options, load_for, short_name
from .summary import console

DESCRIPTION = """Fit a method for several numbers of clusters and draw three curves: stability over
seeds, silhouette, and what is lost by merging. No labels are used. The answer is a number where the
curves agree, and "no clear answer" where they do not: then decide by what the clusters are for.
With kith the answer is that of coterie fit --clusters auto, which is much quicker."""

FILES = ("curves.csv", "curves.png")


def run(argv: list[str]) -> int:
    from coterie import registry

    parser = Parser(
        prog="coterie select-k",
        usage="coterie select-k DATA [--method M] --from A --to B [--out DIR]",
        description=DESCRIPTION,
    )
    parser.add_argument("data", metavar="DATA", help="as for coterie fit")
    parser.add_argument(
        "--method",
        default=registry.DEFAULT,
        metavar="M[:V]",
        help=f"method (default: {registry.DEFAULT})",
    )
    parser.add_argument(
        "--from", dest="low", type=whole, default=2, metavar="A", help="fewest (default: 2)"
    )
    parser.add_argument(
        "--to", dest="high", type=whole, default=20, metavar="B", help="most (default: 20)"
    )
    parser.add_argument(
        "--seeds",
        type=whole,
        default=2,
        metavar="N",
        help="fits at each k, at least 2 (default: 2)",
    )
    parser.add_argument("--out", metavar="DIR", help="output folder (default: runs/DATA-METHOD-k)")
    parser.add_argument("--overwrite", action="store_true", help="replace earlier curves")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the method"
    )
    parser.add_argument("--threads", type=whole, metavar="N", help="threads (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="print only the answer")
    add_data_flags(parser)
    args = parser.parse_strictly(argv)
    if not 2 <= args.low < args.high:
        raise UsageError(f"--from {args.low} --to {args.high} is not a range; begin at 2 or more")

    from coterie.number_of_clusters import SHARE, study
    from coterie.storage import runs

    from .bench import read_method, read_settings

    cls, variant = read_method(args.method)
    settings = cls.variants.get(variant, {}) | read_settings(args.set, [cls.key]).get(cls.key, {})
    dataset = load_for(cls.words, args.data, data_options(args), settings.get("encoder"))
    rows = round(SHARE * len(dataset))
    if args.high > rows:
        raise UsageError(
            f"each fit sees {rows} of the {len(dataset)} rows of {dataset.name}, but --to is "
            f"{args.high}; lower --to or give more rows"
        )
    out = Path(args.out or f"runs/{short_name(args.data)}-{cls.key}-k")
    there = next((path for path in (out / name for name in FILES) if path.exists()), None)
    if there and not args.overwrite:
        raise UsageError(f"{there} exists; choose another --out or use --overwrite")
    out.mkdir(parents=True, exist_ok=True)

    def make(k: int, seed: int):
        return cls(n_clusters=k, random_state=seed, **settings)

    def tell(k: int):
        if not args.quiet:
            print(f"k = {k} of {args.high}", flush=True)

    with runs.threads_held(args.threads):
        ks = list(range(args.low, args.high + 1))
        given = dataset.given_to(make(2, 0))
        found = study(make, given, ks, tuple(range(args.seeds)), tell)
    write(found, out)
    if not args.quiet:
        show(found)
    print(found.verdict())
    return 0


def write(found, out: Path) -> None:
    """The curves as a table and as a picture."""
    from coterie.storage.atomic import write_atomic

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["k", *found.curves])
    table.writerows(zip(found.k, *([f"{v:.6g}" for v in c] for c in found.curves.values())))
    table_name, picture_name = FILES
    write_atomic(out / table_name, text.getvalue().encode())
    found.draw(out / picture_name)


def show(found) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("k", *found.curves):
        table.add_column(title, justify="right")
    for i, k in enumerate(found.k):
        marks = ("*" if found.votes.get(name) == k else " " for name in found.curves)
        cells = (f"{c[i]:.3f}{m}" for c, m in zip(found.curves.values(), marks))
        table.add_row(str(k), *cells)
    console().print(table)
    console().print("* the k that this curve prefers", style="dim")
