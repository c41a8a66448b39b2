"""``coterie completion``: a script that completes commands, options and methods in a shell."""

import contextlib
import io
import re
from importlib import import_module

from coterie.methods import METHODS

from . import COMMANDS
from .method_args import Parser

BASH = """# completion of coterie for bash
_coterie() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" options=""
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word")); return
    fi
    case "$before" in
        --method) COMPREPLY=($(compgen -W "{methods}" -- "$word")); return ;;
    esac
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _coterie coterie
"""


def run(argv: list[str]) -> int:
    parser = Parser(
        prog="coterie completion",
        usage="coterie completion bash|zsh|fish",
        description="Print a script for your shell that completes commands, options and methods.",
    )
    parser.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )
    print(script(parser.parse_strictly(argv).shell), end="")
    return 0


def script(shell: str) -> str:
    options = {name: _options(name) for name in COMMANDS}
    if shell == "fish":
        return _fish(options)
    cases = "\n".join(f'        {name}) options="{" ".join(o)}" ;;' for name, o in options.items())
    bash = BASH.format(commands=" ".join(COMMANDS), methods=" ".join(METHODS), cases=cases)
    start = "autoload -U +X bashcompinit && bashcompinit\n"
    return f"#compdef coterie\n{start}{bash}" if shell == "zsh" else bash


def _fish(options: dict[str, list[str]]) -> str:
    lines = ["# completion of coterie for fish"]
    for name, text in COMMANDS.items():
        told = text.replace("'", "\\'")
        lines.append(f"complete -c coterie -n __fish_use_subcommand -f -a {name} -d '{told}'")
        for option in options[name]:
            seen = f"'__fish_seen_subcommand_from {name}'"
            methods = f" -x -a '{' '.join(METHODS)}'" if option == "--method" else ""
            lines.append(f"complete -c coterie -n {seen} -l {option[2:]}{methods}")
    return "\n".join(lines) + "\n"


def _options(command: str) -> list[str]:
    """The options that the help of a command lists."""
    out = io.StringIO()
    module = import_module(f"coterie.cli.{command.replace('-', '_')}")
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        module.run(["--help"])
    listed = re.findall(r"^ {2}(-.*)$", out.getvalue(), re.MULTILINE)
    return sorted({name for line in listed for name in re.findall(r"--[a-z0-9][\w-]*", line)})
