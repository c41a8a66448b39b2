"""The size of files: a method fits on a few screens, and no file holds two ideas."""

from pathlib import Path

import pytest

import coterie

ROOT = Path(coterie.__file__).parent
METHOD_FILES = sorted((ROOT / "methods").rglob("*.py"))


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("path", METHOD_FILES, ids=lambda p: str(p.relative_to(ROOT / "methods")))
def test_a_method_file_has_at_most_250_lines(path):
    assert lines_in(path) <= 250


def test_no_other_file_has_more_than_300_lines():
    sizes = {p.relative_to(ROOT).as_posix(): lines_in(p) for p in ROOT.rglob("*.py")}
    elsewhere = {name: n for name, n in sizes.items() if not name.startswith("methods/")}
    assert {name: n for name, n in elsewhere.items() if n > 300} == {}
