"""``coterie datasets``: list the named data sets, and fetch those that are published."""

from .method_args import Parser, names
from .summary import console


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie datasets",
        description="List the named data sets. They are looked for in --data-dir, in the folder\n"
        "that COTERIE_DATA names, and in your data folder; --fetch puts them into the first\n"
        "of these.",
    )
    parser.add_argument("--fetch", type=names, metavar="A,B,...", help="download these data sets")
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of the named data sets (or set COTERIE_DATA)"
    )
    args = parser.parse_strictly(argv)
    return _list(args.data_dir) if args.fetch is None else _fetch(args.fetch, args.data_dir)


def _list(data_dir: str | None) -> int:
    from rich.table import Table
    from rich.text import Text

    from coterie.data import available

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("name", "rows", "shape", "classes", "where", "about"):
        number = title in ("rows", "classes")
        table.add_column(title, justify="right" if number else "left", no_wrap=title == "name")
    for entry in available(data_dir):
        shape = "x".join(map(str, entry["shape"]))
        words = (entry["name"], f"{entry['rows']:,}", shape, entry["classes"])
        table.add_row(*(Text(str(w)) for w in (*words, entry["where"], entry["about"])))
    console().print(table)
    return 0


def _fetch(wanted: list[str], data_dir: str | None) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from coterie.data import fetch
    from coterie.data.sets import named

    bases = {name: named.stored_base(name) for name in wanted}  # a wrong name costs no download
    for name, base in bases.items():
        if base is None:
            print(f"{name} is built in")
            continue
        columns = TextColumn("{task.description}", markup=False), BarColumn(24), DownloadColumn()
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
            tasks = {}

            def tell(file: str, done: int, total: int | None, base=base, bars=bars, tasks=tasks):
                if file not in tasks:
                    tasks[file] = bars.add_task(f"{base}: {file}", total=total)
                bars.update(tasks[file], completed=done)

            folder = fetch(base, data_dir, tell)
        print(f"{base} is in {folder}" + ("" if tasks else ", nothing to fetch"))
    return 0
