"""A reader with a question finds the answer in the built site: by search, and by two clicks.

python docs/site/questions.py build/site

Each question has the words that a reader would type. The page with the answer must be among the
first results of the site's own search, and at most two links away from the start page.
"""

import json
import re
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from links import Page
from sphinx.search.en import SearchEnglish

SHOWN = 5  # results that a reader looks at
CLICKS = 2
ENGLISH = SearchEnglish({})  # stems as the build does
# as scorer.js weighs them
TITLE, PART_OF_TITLE, TERM, PART_OF_TERM = 15, 7, 5, 2
OBJECT, PART_OF_OBJECT, NAMED = 11, 3, 10


@dataclass(frozen=True)
class Question:
    asked: str
    searches: tuple[str, ...]  # what a reader types
    page: str
    answer: str  # what stands there


QUESTIONS = (
    Question(
        "How do I cluster a folder of photos?",
        ("folder of photos", "cluster photos", "photos", "cluster images", "image folder"),
        "tutorials/photos",
        "coterie fit photos/ --encoder image",
    ),
    Question(
        "What does `tol` do in DEC?",
        (
            *("tol", "tol DEC", "DEC tol", "what does tol do", "stop rule", "tolerance"),
            *("stopping criterion", "early stopping", "convergence"),
        ),
        "methods/dec",
        "tol is the stop rule",
    ),
    Question(
        "How do I predict on new rows?",
        (
            *("predict", "predict new rows", "new data", "predict new data", "unseen data"),
            *("inference", "new samples", "label new data"),
        ),
        "guide/new-rows",
        "A fitted model labels rows that it has not seen.",
    ),
    Question(
        "How do I run on two machines?",
        (
            *("two machines", "several machines", "multiple machines", "torchrun", "distributed"),
            *("multi-node", "two nodes", "DDP", "multi-gpu", "slurm"),
        ),
        "scaling",
        "torchrun --nnodes 2",
    ),
    Question(
        "How is DEKM's loss written?",
        ("DEKM loss", "loss of DEKM", "DEKM", "DEKM formula", "deep embedded k-means"),
        "methods/dekm",
        "The loss of a batch is the mean over its rows.",
    ),
    Question(
        "Which figures are ours, and which are published?",
        (
            *("published figures", "which figures are published", "published", "our figures"),
            *("which figures are ours", "published results", "benchmark"),
        ),
        "benchmarks",
        "Figures that a paper prints are called published",
    ),
)


def read_index(site: Path) -> dict:
    text = (site / "searchindex.js").read_text("utf-8")
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])


def search(index: dict, query: str) -> list[str]:
    """Pages in the order in which the site's search lists them; a page counts once."""
    scores: dict[int, float] = {}
    asked = query.lower().strip()

    def found(page: int, score: float, title: str = "") -> None:
        words = [word for word in asked.split() if len(word) > 2]
        score += NAMED * sum(word in title.lower() for word in words)
        scores[page] = max(scores.get(page, 0), score)

    for title, places in index["alltitles"].items():
        if asked in title.lower() and len(asked) >= len(title) / 2:
            for page, _ in places:
                own = index["titles"][page]
                score = round(TITLE * len(asked) / len(title)) + (own == title)
                found(page, score, title if own == title else f"{own} > {title}")
    for entry, places in index["indexentries"].items():
        if asked in entry.lower() and len(asked) >= len(entry) / 2:
            for page, *_ in places:
                found(page, round(100 * len(asked) / len(entry)))
    for prefix, members in index["objects"].items():
        for page, kind, _, _, name in members:
            about = f"{prefix} {name} {index['objnames'][str(kind)][2]} {index['titles'][page]}"
            if all(word in about.lower() for word in asked.split()):
                exact = name.lower() in asked.split()
                found(page, OBJECT if exact else PART_OF_OBJECT)
    words = [
        ENGLISH.stem(word)
        for word in re.split(r"\W+", asked)
        if word and not word.isdigit() and word not in ENGLISH.stopwords
    ]
    by_word = {word: _pages_with(index, word) for word in words}
    if any(len(word) > 2 for word in words):  # shorter ones need not be on the page
        by_word = {word: pages for word, pages in by_word.items() if len(word) > 2}
    for page in set.intersection(*map(set, by_word.values())) if by_word else ():
        found(page, max(pages[page] for pages in by_word.values()), index["titles"][page])
    order = sorted(scores, key=lambda page: (-scores[page], index["titles"][page].lower()))
    return [index["docnames"][page] for page in order]


def _pages_with(index: dict, word: str) -> dict[int, int]:
    scored: dict[int, int] = {}
    for part, whole, some in (("terms", TERM, PART_OF_TERM), ("titleterms", TITLE, PART_OF_TITLE)):
        if word in index[part]:
            matches = {word: whole}
        else:
            matches = {term: some for term in index[part] if word in term and len(word) > 2}
        for term, score in matches.items():
            pages = index[part][term]
            for page in pages if isinstance(pages, list) else [pages]:
                scored[page] = max(scored.get(page, 0), score)
    return scored


def clicks(site: Path, pages: dict[str, str]) -> dict[str, int]:
    """Links to follow from the start page to each page."""
    away, front = {"index": 0}, ["index"]
    while front:
        name = front.pop(0)
        for address, _ in Page(pages[name]).links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or not parts.path.endswith(".html"):
                continue
            target = ((site / name).parent / unquote(parts.path)).resolve()
            there = target.relative_to(site).with_suffix("").as_posix()
            if there in pages and there not in away:
                away[there] = away[name] + 1
                front.append(there)
    return away


def check(site: Path) -> list[str]:
    index = read_index(site)
    found = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    pages = {
        path.relative_to(site).with_suffix("").as_posix(): path.read_text("utf-8") for path in found
    }
    away = clicks(site, pages)
    wrong = []
    for question in QUESTIONS:
        if plain(question.answer) not in plain(pages.get(question.page, "")):
            wrong.append(f"{question.asked} {question.page} does not say: {question.answer}")
        if away.get(question.page, 99) > CLICKS:
            wrong.append(f"{question.asked} {question.page} is over {CLICKS} clicks away")
        for query in question.searches:
            first = search(index, query)[:SHOWN]
            if question.page not in first:
                wrong.append(f"{question.asked} {query!r} finds {', '.join(first) or 'nothing'}")
    return wrong


def plain(page: str) -> str:
    """The text of a page, or of a sentence, without markup and line breaks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", page)).split())


if __name__ == "__main__":
    found = check(Path(sys.argv[1]).resolve())
    print("\n".join(found) or f"{len(QUESTIONS)} questions lead to their answers")
    sys.exit(bool(found))
