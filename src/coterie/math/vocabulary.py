"""What clusters of texts tell about their words."""

from typing import Any

import numpy as np
import scipy.sparse as sp

STRENGTHS = (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)  # of the prior, in words


def word_information(labels: np.ndarray, k: int, words: Any) -> float:  # (n,), CSR (n, d)
    """Nats by which a text's cluster makes each of its words likelier, mean over all words.

    Word w of text i is expected from the other texts of its cluster c,
    p(w | c) = (N_cw - 1 + a b_w) / (N_c - n_i + a), and from all other texts,
    b_w = (N_w - 1/2) / (N - n_i + d/2). N counts texts that have a word, n_i the words of text i.
    The gain is the mean of log p(w | c) - log b_w, at the prior strength a that makes it largest.
    """
    there = sp.csr_matrix(words, copy=True)
    there.eliminate_zeros()
    there.data = np.ones(there.nnz)
    if not there.nnz:
        return 0.0
    n, d = there.shape
    member = sp.csr_matrix((np.ones(n), (labels, np.arange(n))), (k, n))
    counts = (member @ there).toarray()  # (k, d)
    lengths = np.diff(there.indptr)
    row, word = np.repeat(np.arange(n), lengths), there.indices
    cluster, own = labels[row], lengths[row]
    base = (counts.sum(0)[word] - 0.5) / (there.nnz - own + d / 2)
    inside, total = counts[cluster, word] - 1, counts.sum(1)[cluster] - own
    gains = (np.log((inside + a * base) / (total + a) / base).mean() for a in STRENGTHS)
    return float(max(gains))
