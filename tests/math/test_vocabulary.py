"""What clusters tell about words, against a loop."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from coterie.math import vocabulary
from coterie.math.vocabulary import STRENGTHS, word_information


def by_hand(labels, words):
    texts = [set(np.flatnonzero(row)) for row in words]
    d, best = words.shape[1], -math.inf
    for a in STRENGTHS:
        gains = []
        for i, text in enumerate(texts):
            others = [t for j, t in enumerate(texts) if j != i]
            inside = [t for j, t in enumerate(texts) if j != i and labels[j] == labels[i]]
            for w in text:
                # the text itself counts half a word, as every word of the vocabulary does
                base = (sum(w in t for t in others) + 0.5) / (sum(map(len, others)) + d / 2)
                seen = sum(w in t for t in inside) + a * base
                gains.append(math.log(seen / (sum(map(len, inside)) + a) / base))
        best = max(best, sum(gains) / len(gains))
    return best


@pytest.mark.parametrize("block", [2**20, 7])
def test_word_information_against_a_loop(block, monkeypatch):
    monkeypatch.setattr(vocabulary, "BLOCK_WORDS", block)
    rng = np.random.default_rng(0)
    words = (rng.random((12, 9)) < 0.4) * rng.random((12, 9))
    labels = rng.integers(0, 3, 12)
    found = word_information(labels, 4, sp.csr_matrix(words))  # one cluster is empty
    assert found == pytest.approx(by_hand(labels, words), rel=1e-9)


def test_clusters_with_words_of_their_own_tell_more_than_chance_and_finer_ones_no_less():
    rng = np.random.default_rng(1)
    topic = np.repeat([0, 1], 60)
    likely = np.where(np.arange(40) // 20 == topic[:, None], 0.4, 0.05)
    words = sp.csr_matrix((rng.random((120, 40)) < likely).astype(float))
    told = word_information(topic, 2, words)
    assert told > 0.3 and abs(word_information(rng.permutation(topic), 2, words)) < 0.05
    half = 2 * topic + (np.arange(120) % 2)
    assert word_information(half, 4, words) < told


def test_texts_without_words_tell_nothing_and_stored_zeros_are_no_words():
    empty = sp.csr_matrix((5, 3))
    assert word_information(np.zeros(5, int), 2, empty) == 0
    words = np.array([[1.0, 0, 2], [0, 3, 1], [1, 1, 0], [0, 0, 1]])
    stored = sp.csr_matrix(words)
    stored.data[1] = 0
    labels = np.array([0, 0, 1, 1])
    plain = word_information(labels, 2, sp.csr_matrix(stored.toarray()))
    assert word_information(labels, 2, stored) == plain
    assert stored.nnz == 7  # the user's words stay as they are
