"""The command line: ``coterie COMMAND ...``.

Commands are imported when they are called, so that ``coterie --help`` answers at once.

Exit codes: 0 done, 1 unexpected error, 2 the command or the data cannot be used as given,
130 interrupted with Ctrl-C.
"""

import json
import os
import re
import shlex
import sys
import warnings
from importlib import import_module

from coterie.runtime.hints import did_you_mean
from coterie.runtime.terminal import printable

from .method_args import UsageError

COMMANDS = {
    "fit": "cluster data and write a run folder",
    "predict": "label new data with the model of a run",
    "export": "write the model of a run as an ONNX file",
    "evaluate": "score a run against known labels",
    "report": "write the HTML page of a run",
    "compare": "fit several methods on the same data, side by side",
    "select-k": "compare numbers of clusters",
    "methods": "list the methods",
    "datasets": "list the named data sets, or fetch them",
    "bench": "run methods on named data sets; show the results",
    "paper": "tables and figures of the papers, ours beside the published ones",
    "demo": "cluster scikit-learn's digits with the default method",
    "completion": "print a completion script for your shell",
}

SHOWN: list[str] = []  # notices of this command

HELP = """usage: coterie COMMAND ...

Deep clustering: an embedding and the clusters, learned together.

{commands}

examples:
  coterie fit photos/ --clusters 12 --out runs/photos
  coterie predict runs/photos new-photos/ --out labels.csv

coterie COMMAND --help explains a command, coterie fit --method M --help the options of a method

options: --version, --help, --debug (show the traceback of an error)
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    argv = [word for word in argv if word != "--debug"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            SHOWN.clear()
            return _dispatch(argv)
    except KeyboardInterrupt:
        return 130
    except SystemExit as done:  # argparse after --help
        return done.code if isinstance(done.code, int) else 0
    except BrokenPipeError:  # `coterie methods | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            raise
        return _explain(error)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        lines = (f"  {name:<12}{text}" for name, text in COMMANDS.items())
        print(HELP.format(commands="\n".join(lines)), end="")
        return 0
    if argv[0] == "--version":
        from coterie import __version__

        print(f"coterie {__version__}")
        return 0
    command, rest = argv[0], argv[1:]
    if command not in COMMANDS:
        kind = "option" if command.startswith("-") else "command"
        close = did_you_mean(command, [*COMMANDS, "--version", "--help", "--debug"])
        raise UsageError(f"unknown {kind} '{command}'{close} (see coterie --help)")
    return import_module(f"coterie.cli.{command.replace('-', '_')}").run(rest) or 0


def _explain(error: Exception) -> int:
    """What went wrong on standard error, and the exit code."""
    if isinstance(error, (ValueError, ImportError)):  # bad input, or an extra that is missing
        code, text = 2, str(error)
    elif isinstance(error, OSError):
        path = f"{error.filename}: " if error.filename else ""
        code, text = 2, f"{path}{error.strerror or error}"
    else:
        from coterie.train.batch import TrainingError  # only here: it brings torch along

        code, text = 2, str(error)
        if isinstance(error, MemoryError) or "can't allocate memory" in text:  # numpy's, torch's
            text = f"there is not enough memory ({text.splitlines()[0][:200] if text else 'full'})"
        elif not isinstance(error, TrainingError):
            code, text = 1, f"unexpected {type(error).__name__}: {text} (--debug shows where)"
    print(f"coterie: {printable(as_flags(text))}", file=sys.stderr)
    return code


def as_flags(text: str) -> str:
    """Options as the command line writes them: ``drop="a,b"`` is ``--drop a,b``."""
    from .source import OPTIONS

    def flag(found: re.Match) -> str:
        value = found[3] and shlex.quote(json.loads(found[3]))
        return f"--{found[1].replace('_', '-')}" + (f" {value}" if value else "")

    names = "|".join(OPTIONS)
    return re.sub(rf'\b({names})=(?:(True)\b|("(?:[^"\\]|\\.)*"))?', flag, text)


def _show_warning(message, category, filename, lineno, file=None, line=None):
    notice(str(message))


def notice(message: str) -> None:
    """Say something on standard error, once in a command: a report reads the data again."""
    message = printable(as_flags(message))
    if message not in SHOWN:
        SHOWN.append(message)
        print(f"coterie: note: {message}", file=sys.stderr)
