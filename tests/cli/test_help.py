"""Help texts: two examples each, options that exist, completion for three shells."""

import re
import shlex
import shutil
import subprocess

import pytest

from coterie import cli
from coterie.cli.completion import script
from coterie.cli.examples import EXAMPLES
from coterie.methods import METHODS


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_has_two_examples_with_known_options(command, capsys):
    assert cli.main([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert len(EXAMPLES[command]) == 2 and all(line in told for line in EXAMPLES[command])
    for line in EXAMPLES[command]:
        program, name, *words = shlex.split(line)
        assert program == "coterie" and name in cli.COMMANDS
        if name == command:
            used = {w for w in words if w.startswith("--")}
            assert used <= set(re.findall(r"--[a-z][\w-]*", told)), line


def test_help_of_all_has_two_examples(capsys):
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert told.count("  coterie ") == 2
    assert all(f"  {name} " in told for name in cli.COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_methods(shell):
    made = script(shell)
    assert all(name in made for name in cli.COMMANDS)
    assert "clusters" in made and "umap_gmm" in made


def test_bash_completes():
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    ask = (
        "\nCOMP_WORDS=(coterie fit --method d); COMP_CWORD=3; _coterie; echo ${COMPREPLY[@]}"
        "\nCOMP_WORDS=(coterie fit --clus); COMP_CWORD=2; _coterie; echo ${COMPREPLY[@]}"
        "\nCOMP_WORDS=(coterie pre); COMP_CWORD=1; _coterie; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", script("bash") + ask], capture_output=True, text=True)
    methods, option, command = done.stdout.splitlines()
    assert methods.split() == [key for key in METHODS if key.startswith("d")]
    assert (option, command) == ("--clusters", "predict")
