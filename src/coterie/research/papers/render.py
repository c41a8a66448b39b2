"""Tables as Markdown and on the terminal."""

import itertools

from .tables import MARKS, Block, Table, Text

RULES = {
    "ttest": "bold: highest mean, and those that do not differ from it (Student's t-test, p > .05)",
    "best": "bold: best of our lines",
    "above_mean": "bold: the selected run is above the average",
}


def legend(table: Table) -> str:
    """What the marks of this table mean; only those that occur."""
    item = table.item
    texts = [t.text for block in table.blocks for line in block.lines for t in line.cells]
    found = [RULES[item.bold]] if item.bold in RULES else []
    found += ["underlined: best"] if item.underline else []
    found += ["* highest best run"] if item.star else []
    found += [f"{m} {why}" for m, why in MARKS.items() if any(m in t for t in texts)]
    found += ["only lines with the same settings are compared"] if item.bold in RULES else []
    return "; ".join(found)


def markdown(table: Table) -> str:
    """GitHub's Markdown; every block of data sets is a table of its own."""
    parts = [_markdown(block) for block in table.blocks]
    notes = [note for note in [legend(table), *table.notes] if note]
    return "\n\n".join([*parts, "\n".join(f"- {note}" for note in notes)]).rstrip() + "\n"


def _markdown(block: Block) -> str:
    heads = [f"{data}<br>{below}" for data, below in block.heads]
    lines = ["| " + " | ".join(["model", "", *heads]) + " |"]
    lines.append("|" + "|".join(["---", "---", *("---:" for _ in heads)]) + "|")
    before = None
    for line in block.lines:
        name = line.label if line.label != before else ""
        before = line.label
        cells = [_decorated(cell) for cell in line.cells]
        lines.append("| " + " | ".join([name.replace("|", "\\|"), line.source, *cells]) + " |")
    return "\n".join(lines)


def _decorated(cell: Text) -> str:
    text = cell.text.replace("|", "\\|").replace("*", "\\*")
    text = f"**{text}**" if cell.bold else text
    return f"<u>{text}</u>" if cell.underline else text


def show(table: Table, console):
    """Print on the terminal: published lines dim, ours plain, bold and underlined by the rule."""
    from rich.table import Table as Grid
    from rich.text import Text as Rich

    for block in table.blocks:
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        grid.add_column("model", no_wrap=True)
        grid.add_column("", no_wrap=True)
        for data, below in block.heads:
            grid.add_column(f"{data}\n{below}", justify="right")
        for label, lines in itertools.groupby(block.lines, key=lambda line: line.label):
            for i, line in enumerate(lines):
                cells = []
                for cell in line.cells:
                    style = "bold " * cell.bold + "underline " * cell.underline
                    style += "dim" if cell.dim or line.source == "published" else ""
                    cells.append(Rich(cell.text, style=style.strip()))
                source = Rich(line.source, style="dim" if line.source == "published" else "")
                grid.add_row(Rich("" if i else label), source, *cells)
        console.print(grid)
        console.print()
    for note in [legend(table), *table.notes]:
        if note:
            console.print(Rich(note, style="dim"))
