"""The site shows a method before anyone has written a page for it."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from coterie.methods import METHODS

SITE = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture
def generated(monkeypatch):
    monkeypatch.syspath_prepend(SITE)
    made = importlib.import_module("generated")
    monkeypatch.setattr(made.figures, "write", lambda out, methods: None)  # reads the ledger
    yield made
    for name in ("generated", "figures", "docstrings"):
        sys.modules.pop(name, None)


def test_a_method_without_a_page_gets_one_from_its_class(generated, tmp_path):
    (tmp_path / "methods").mkdir()
    for key in METHODS.keys() - {"dec"}:
        (tmp_path / "methods" / f"{key}.md").write_text("written")
    out = tmp_path / "_generated"
    generated.write(SimpleNamespace(srcdir=tmp_path))
    page = (out / "pages" / "dec.md").read_text()
    assert page.startswith("# DEC\n\nSelf-sharpening soft assignment")
    assert "Pre-training: 300,000 iterations" in page and "random_state :" not in page
    assert (out / "pages" / ".." / "reference" / "dec.rst").exists()  # what the page includes
    assert "/_generated/pages/dec\n" in (out / "unwritten.md").read_text()
    table = (out / "methods.md").read_text()
    assert "[`DEC`](_generated/pages/dec.md)" in table and "[`IDEC`](methods/idec.md)" in table

    (tmp_path / "methods" / "dec.md").write_text("written")
    generated.write(SimpleNamespace(srcdir=tmp_path))
    assert not list((out / "pages").iterdir())
    assert (out / "unwritten.md").read_text() == ""
    assert "[`DEC`](methods/dec.md)" in (out / "methods.md").read_text()
