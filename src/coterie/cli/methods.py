"""``coterie methods``: list the methods."""

from .method_args import Parser
from .summary import console


def run(argv: list[str]) -> int:
    parser = Parser(prog="coterie methods", description="List the methods and what they do.")
    parser.parse_strictly(argv)

    from rich.table import Table

    from coterie.registry import list_methods

    table = Table(box=None, pad_edge=False)
    for title in ("method", "what it does", "variants", "reference"):
        table.add_column(title, no_wrap=title == "method")
    for key, cls in list_methods().items():
        table.add_row(key, cls.summary, ", ".join(filter(None, cls.variants)), cls.reference)
    console().print(table)
    print(
        "\noptions of a method: coterie fit --method M --help"
        "\na variant is settings with a name: coterie fit --method dkm:p"
    )
    return 0
