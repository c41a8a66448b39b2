"""Six questions of a reader who knows scikit-learn and has only the site.

`make docs` asks the search of the built site (docs/site/questions.py). Here: the answers stand in
the sources, their pages are near the start page, and results are ordered as scorer.js does.
"""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def questions():
    sys.path.insert(0, str(DOCS / "site"))
    try:
        return importlib.import_module("questions")
    finally:
        sys.path.remove(str(DOCS / "site"))


def source(page: str) -> str:
    return (DOCS / f"{page}.md").read_text("utf-8")


def named(text: str, folder: Path) -> set[str]:
    """Pages that a page links to, in its text and in its table of contents."""
    links = re.findall(r"\]\(([\w./-]+?)\.md", text) + re.findall(r"^:link: (\S+)$", text, re.M)
    for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S):
        links += re.findall(r"^/?([\w./-]+)$", tree, re.M)
    found = set()
    for link in links:
        for base in (folder, DOCS):
            path = (base / link).resolve()
            if path.with_suffix(".md").exists():
                found.add(path.relative_to(DOCS).as_posix())
    return found


def test_answers_are_written_down(questions):
    for question in questions.QUESTIONS:
        text = " ".join(re.sub(r"[`*]", "", source(question.page)).split())
        assert question.answer in text, f"{question.asked} {question.page}"


def test_answers_are_at_most_two_clicks_away(questions):
    near = named(source("index"), DOCS)
    for page in list(near):
        near |= named(source(page), (DOCS / page).parent)
    for question in questions.QUESTIONS:
        assert question.page in near, question.asked


def index(**changed) -> dict:
    made = {
        "docnames": ["a", "b", "c"],
        "titles": ["Other", "Photos", "Rows"],
        "alltitles": {"Other": [[0, None]], "Photos": [[1, None]], "Rows": [[2, None]]},
        "indexentries": {},
        "objects": {"coterie.DEC": [[0, 0, 1, "", "tol"]]},
        "objnames": {"0": ["py", "attribute", "Python attribute"]},
        "terms": {"folder": [0, 1], "photo": [0, 1, 2]},
        "titleterms": {"photo": 1, "row": 2},
    }
    return made | changed


def test_a_page_that_is_named_as_asked_comes_first(questions):
    assert questions.search(index(), "photos") == ["b", "a", "c"]
    assert questions.search(index(), "folder of photos") == ["b", "a"]  # "of" does not count
    assert questions.search(index(), "folder rows") == []  # all words must be there


def test_words_are_split_and_stemmed_as_the_browser_does(questions):
    """Its stemmer is Snowball's English one, which keeps the y of arrays."""
    made = index(terms={"array": [0], "multi": [1], "node": [1], "mps": [2]})
    assert questions.search(made, "arrays") == ["a"]
    assert questions.search(made, "multi-node") == ["b"]
    assert questions.search(made, "MPS 2") == ["c"]


def test_a_heading_comes_before_a_parameter_of_that_name(questions):
    assert questions.search(index(), "tol") == ["a"]
    assert questions.search(index(titleterms={"tol": 2}), "tol") == ["c", "a"]
    entry = {"tol": [[1, "term-tol", True]]}
    assert questions.search(index(indexentries=entry), "tol") == ["b", "a"]


def test_weights_are_those_of_the_site(questions):
    script = (DOCS / "site" / "scorer.js").read_text("utf-8")
    pairs = {
        "title": questions.TITLE,
        "partialTitle": questions.PART_OF_TITLE,
        "term": questions.TERM,
        "partialTerm": questions.PART_OF_TERM,
        "objNameMatch": questions.OBJECT,
        "objPartialMatch": questions.PART_OF_OBJECT,
    }
    for name, value in pairs.items():
        assert re.search(rf"\b{name}: {value},", script), name
    assert f"{questions.NAMED} * words" in script
