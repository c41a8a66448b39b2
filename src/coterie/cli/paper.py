"""``coterie paper``: the tables and figures of the five papers."""

import sys
from pathlib import Path

from .bench import conduct
from .method_args import Parser, UsageError, duration, whole
from .source import load
from .summary import console

DESCRIPTION = """Tables and figures of the papers, ours beside the published figures.

  coterie paper                                      what there is and what is missing
  coterie paper cnet:table3 --show                   print a table, draw a figure
  coterie paper cnet:table3 --run --budget 60m       run what is missing, most informative first
  coterie paper --write                              results/README.md and results/figures"""


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie paper",
        usage="coterie paper [PAPER[:ITEM]] [--show | --run | --write] [options]",
        description=DESCRIPTION,
    )
    parser.add_argument("name", nargs="?", metavar="PAPER[:ITEM]", help="cnet, cnet:table3, ...")
    parser.add_argument("--show", action="store_true", help="print tables, draw figures")
    parser.add_argument("--run", action="store_true", help="run what is missing")
    parser.add_argument("--write", action="store_true", help="write README.md and figures")
    parser.add_argument("--dry", action="store_true", help="with --run: list the runs only")
    parser.add_argument("--profile", metavar="paper|default", help="with --run: which settings")
    parser.add_argument("--seeds", type=whole, metavar="N", help="with --run: at most seeds 0..N-1")
    parser.add_argument("--data", metavar="A,B,...", help="with --run: only these data sets")
    parser.add_argument("--budget", type=duration, metavar="T", help="start no run after this time")
    parser.add_argument("--threads", type=whole, metavar="N", help="threads (default: all cores)")
    parser.add_argument(
        "--ledger", default="results/ledger.jsonl", metavar="FILE", help="file of results"
    )
    parser.add_argument("--results", default="results", metavar="DIR", help="where --write writes")
    parser.add_argument(
        "--cache-dir", metavar="DIR", help="folder in which runs share pre-trained networks"
    )
    parser.add_argument(
        "--models",
        default="runs/campaign/models",
        metavar="DIR",
        help="with --show: models that benchmarks/campaign.py kept",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of the named data sets (or set COTERIE_DATA)"
    )
    args = parser.parse_strictly(argv)
    if sum((args.show, args.run, args.write)) > 1:
        raise UsageError("--show, --run and --write exclude each other; give one of them")
    if args.profile not in (None, "paper", "default"):
        raise UsageError(f"--profile is paper or default, not {args.profile}")

    from coterie.research.bench.ledger import Ledger
    from coterie.research.papers import find, read_all

    papers, ledger = read_all(), Ledger(args.ledger)
    chosen = [find(args.name, papers)] if args.name else [(p, list(p.items)) for p in papers]
    if args.write:
        from coterie.research.papers.readme import write

        if args.name:
            raise UsageError("--write writes all papers; leave out the name")
        for path in write(papers, ledger.read(), args.results, ledger.path):
            print(path)
        return 0
    if args.show:
        return _show(chosen, ledger, Path(args.models))
    if args.run:
        return _run(chosen, ledger, papers, args)
    return _list(chosen, ledger)


def _list(chosen, ledger) -> int:
    from rich.table import Table
    from rich.text import Text

    from coterie.research.papers.cells import Book
    from coterie.research.papers.readme import state_cells
    from coterie.research.papers.state import Clock

    runs = ledger.read()
    book, clock = Book(runs, ledger.path), Clock(runs)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    for head in ("needed", "done", "shortened", "defaults", "missing", "time"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("what it shows")
    for paper, items in chosen:
        for item in items:
            cells = state_cells(paper, item, book, clock)
            table.add_row(*map(Text, cells), Text(item.title))
    out = console()
    out.print(table)
    out.print(
        "done: with the paper's published settings; defaults: with ours; time: how long the "
        "missing runs would take, one after the other (tables share runs)",
        style="dim",
    )
    return 0


def _show(chosen, ledger, models: Path) -> int:
    from rich.text import Text

    from coterie.research.papers import figures, pictures, readme, render, tables
    from coterie.research.papers.cells import Book

    out, book = console(), Book(ledger.read(), ledger.path)
    for paper, items in chosen:
        for item in items:
            out.print(Text(f"{item.name}  {item.title}", style="bold"))
            if item.kind == "table":
                render.show(tables.build(paper, item, book), out)
                continue
            if item.kind == "sizes":
                print(readme.sizes(item))
                continue
            path = Path("runs/papers") / f"{paper.key}-{item.key}.png"
            if item.kind == "run":
                panels = pictures.from_models(paper, item, book, models)
                if not panels and (commands := pictures.absent(item)):
                    out.print("needs a run folder; make it with")
                    print("\n".join(f"  {command}" for command in commands))
                    continue
                made = pictures.draw(item, panels or pictures.from_runs(item))
            else:
                made = figures.draw(paper, item, book)
            if made is None:
                print(f"no run yet; coterie paper {item.name} --run makes them")
                continue
            figures.save(made, path)
            print(path)
    return 0


def _run(chosen, ledger, papers, args) -> int:
    from coterie.research.papers.cells import Book
    from coterie.research.papers.jobs import loader
    from coterie.research.papers.state import Clock, missing

    runs = ledger.read()
    book, clock, jobs = Book(runs, ledger.path), Clock(runs), []
    for paper, items in chosen:
        jobs += missing(paper, items, book, clock, args.profile)
    if args.seeds:
        jobs = [job for job in jobs if job.seed < args.seeds]
    if args.data:
        wanted = {name.strip() for name in args.data.split(",")}
        if odd := wanted - {job.dataset for job in jobs}:
            print(f"coterie: note: nothing is missing on {', '.join(sorted(odd))}", file=sys.stderr)
        jobs = [job for job in jobs if job.dataset in wanted]
    if args.dry:
        print("\n".join(map(str, jobs)) or "nothing is missing")
        return 0
    common = {"data_dir": args.data_dir} if args.data_dir else {}
    read = loader(papers, lambda name, options: load(name, {**common, **options}))
    return conduct(jobs, ledger, read, args)
