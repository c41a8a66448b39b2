"""``coterie datasets``: list the named data sets."""

from .method_args import Parser
from .summary import console


def run(argv: list[str]) -> int:
    parser = Parser(prog="coterie datasets", description="List the named data sets.")
    parser.add_argument("--data-dir", metavar="DIR", help="where to look (or set COTERIE_DATA)")
    args = parser.parse_strictly(argv)

    from rich.table import Table
    from rich.text import Text

    from coterie.data import available

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "rows", "shape", "classes", "where", "about"):
        number = title in ("rows", "classes")
        table.add_column(title, justify="right" if number else "left", no_wrap=title == "name")
    for entry in available(args.data_dir):
        shape = "x".join(map(str, entry["shape"]))
        words = (entry["name"], f"{entry['rows']:,}", shape, entry["classes"])
        table.add_row(*(Text(str(w)) for w in (*words, entry["where"], entry["about"])))
    console().print(table)
    return 0
