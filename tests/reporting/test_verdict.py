"""Fits that are known to be bad are told to "look twice", for a true reason; good ones are not."""

import re

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons

import coterie
from coterie.methods.kith import method as kith
from coterie.reporting import maps


@pytest.fixture(autouse=True)
def quick_map(monkeypatch):
    monkeypatch.setattr(maps, "tsne_map", lambda *args, **kwargs: None)


def verdict(model, X, tmp_path) -> tuple[str, list[str], str]:
    """Heading and reasons of the page, and the sentences above them."""
    text = coterie.report(model, X, tmp_path / "r.html").read_text().replace("\u00a0", " ")
    box = re.search(r'<div class="doubts.*?</div>', text, re.S)[0]
    lead = re.search(r'<div class="lead">(.*?)</div>', text, re.S)[1]
    reasons = [re.sub(r"<[^>]+>", "", found) for found in re.findall(r"<li.*?</li>", box, re.S)]
    return re.search(r"<h2>(.*?)</h2>", box)[1], reasons, lead


def digits():
    return load_digits().images.astype(np.float32)


def test_bad_k_means_on_circles(tmp_path):
    X = make_circles(600, factor=0.5, noise=0.04, random_state=0)[0]
    heading, reasons, lead = verdict(coterie.KMeans(2, random_state=0).fit(X), X, tmp_path)
    assert heading == "Look twice" and "sits clearly" not in lead
    # what is wrong: each half holds pieces of two rings that no neighbours join
    assert any(
        "may be two: a graph method divides it (50 % and 50 %), and only 0 % of" in reason
        for reason in reasons
    )


def test_bad_a_fit_that_had_no_time(tmp_path, steady_clock):
    X = digits()
    settings = {"epochs": 1e5, "pretrain_epochs": 1e5, "time_budget": 0.05}
    model = coterie.DEC(10, random_state=0, **settings).fit(X)
    heading, reasons, lead = verdict(model, X, tmp_path)
    assert heading == "Look twice" and "clearly in one cluster" not in lead
    assert "says little here" in lead
    assert re.match(r"The time budget ended phase .* of 100000 epochs", reasons[0])
    assert any("agree with each other" in r or "different clusters" in r for r in reasons)


def test_bad_kith_with_a_shuffled_graph(tmp_path, monkeypatch):
    real = kith.neighbours

    def shuffled(z, k, rng, **kwargs):
        order = torch.randperm(len(z), generator=torch.Generator().manual_seed(0))
        return real(z, k, rng, **kwargs)[order]

    monkeypatch.setattr(kith, "neighbours", shuffled)
    X = digits()
    heading, reasons, lead = verdict(coterie.Kith(10, random_state=0).fit(X), X, tmp_path)
    assert heading == "Look twice" and "clearly in one cluster" not in lead
    assert any("agree with each other" in r or "different clusters" in r for r in reasons[:2])


def test_good_blobs(tmp_path):
    X = make_blobs(600, 5, centers=4, random_state=0)[0]
    assert verdict(coterie.KMeans(4, random_state=0).fit(X), X, tmp_path)[:2] == (
        "Nothing stands out as doubtful",
        [],
    )


def test_good_moons(tmp_path):
    X = make_moons(600, noise=0.06, random_state=0)[0]
    assert verdict(coterie.Kith(2, random_state=0).fit(X), X, tmp_path)[:2] == (
        "Nothing stands out as doubtful",
        [],
    )


@pytest.mark.data
def test_good_usps(real_sets, tmp_path):
    X = coterie.load_data("usps", data_dir=real_sets("usps")).X
    X = X[np.linspace(0, len(X) - 1, 2500).astype(int)]
    assert verdict(coterie.Kith(10, random_state=0).fit(X), X, tmp_path)[:2] == (
        "Nothing stands out as doubtful",
        [],
    )
