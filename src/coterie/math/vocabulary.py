"""What clusters of texts tell about their words."""

from typing import Any

import numpy as np
import scipy.sparse as sp

BLOCK_WORDS = 2**20  # of texts that are looked at together
STRENGTHS = (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)  # of the prior, in words


def word_information(labels: np.ndarray, k: int, words: Any) -> float:  # (n,), CSR (n, d)
    """Nats by which a text's cluster makes each of its words likelier, mean over all words.

    Word w of text i is expected from the other texts of its cluster c,
    p(w | c) = (N_cw - 1 + a b_w) / (N_c - n_i + a), and from all other texts,
    b_w = (N_w - 1/2) / (N - n_i + d/2). N counts texts that have a word, n_i the words of text i.
    The gain is the mean of log p(w | c) - log b_w, at the prior strength a that makes it largest.
    """
    there = sp.csr_matrix(words, copy=True)
    there.sum_duplicates()
    there.eliminate_zeros()
    there.data = np.ones(there.nnz, np.float32)
    if not there.nnz:
        return 0.0
    n, d = there.shape
    member = sp.csr_matrix((np.ones(n), (labels, np.arange(n))), (k, n))
    counts = (member @ there).toarray()  # (k, d)
    lengths = np.diff(there.indptr)
    seen, sizes, gains = counts.sum(0), counts.sum(1), np.zeros(len(STRENGTHS))
    step = max(1, n * BLOCK_WORDS // there.nnz)
    for start in range(0, n, step):
        stop = min(start + step, n)
        word = there.indices[there.indptr[start] : there.indptr[stop]]
        own = np.repeat(lengths[start:stop], lengths[start:stop])
        cluster = np.repeat(labels[start:stop], lengths[start:stop])
        base = (seen[word] - 0.5) / (there.nnz - own + d / 2)
        inside, total = counts[cluster, word] - 1, sizes[cluster] - own
        gains += [np.log((inside + a * base) / (total + a) / base).sum() for a in STRENGTHS]
    return float(gains.max() / there.nnz)
