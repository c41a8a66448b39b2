"""The report lists the candidates, says why one was taken, and how often clusters reappear."""

import re

import pytest
from sklearn.datasets import make_blobs

import coterie
from coterie.reporting import choice, maps


@pytest.fixture
def fitted():
    X, _ = make_blobs(150, 3, centers=3, cluster_std=0.4, random_state=1)
    return coterie.Kith(3, random_state=0, **coterie.Kith.tiny).fit(X), X


def test_every_candidate_is_listed_and_the_winner_marked(fitted):
    model, _ = fitted
    found = choice.section(model)
    assert len(found["rows"]) == len(model.candidates_) >= 7
    assert found["rows"][0]["taken"] and found["rows"][0]["alike"] == "1.00"
    assert sum(row["taken"] for row in found["rows"]) == 1
    assert [c["j"] for c in found["clusters"]] == [0, 1, 2] and found["refits"] == 10
    assert found["why"] and "chosen:" not in found["why"]
    assert choice.section(coterie.KMeans(3)) is None


def test_the_page_has_it(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "tsne_map", lambda *args, **kwargs: None)
    model, X = fitted
    text = coterie.report(model, X, tmp_path / "r.html").read_text()
    part = re.search(r'<section id="choice">.*?</section>', text, re.S)[0]
    assert "Why these clusters" in part and "of 10" in part and "(chosen)" in part
