"""The nearest rows of a pool, told by quick products and settled by exact ones.

Where the processor multiplies bfloat16 itself, such products are several times as fast as single
ones. They find more rows than are asked for, whose distances are then computed in single precision.
How far a bfloat16 product can be wrong is known, so each row knows whether a nearer one could have
been missed; rows that cannot be sure compare all pairs in single precision. The result is the same
either way, up to rows that are equally far.
"""

import numpy as np
import torch

from coterie.runtime.precision import quick_bfloat16

GROUP = 16  # rows of which only the nearest is looked at first
SPARE = 4  # times as many rows as asked for are looked at closely
LEAST_ROWS, LEAST_COLUMNS = 1000, 64  # of a pool: below, single products are as fast
CLOSE_ROWS = 64  # whose candidates are looked at together: they fit a cache
ROUNDING = 2.0**-8  # of a bfloat16, relative, at most
SLACK = 1.1  # for the rounding of single precision
DOUBTS = 0.25  # share of rows that are not sure from which quick products do not pay


class Pool:
    """Rows z (n, d), and the search for the k nearest others of each."""

    def __init__(self, z: torch.Tensor, k: int):
        self.z, self.k = z - z.mean(0), k  # near the origin products lose the fewest digits
        self.norms = self.z.square().sum(1)
        n, d = z.shape
        many = n >= max(LEAST_ROWS, SPARE * k * GROUP) and d >= LEAST_COLUMNS
        plain = z.device.type == "cpu" and z.dtype == torch.float32
        self.quick = many and plain and quick_bfloat16()
        if self.quick:
            self.queries, self.keys, self.rounding = in_half(self.z, self.norms)

    def nearest(self, rows: torch.Tensor) -> torch.Tensor:  # (b,) places in the pool -> (b, k)
        """Places of the nearest others, nearest first."""
        if not self.quick:
            return self._compare_all(rows)
        found, sure = self._compare_quickly(rows)
        doubtful = torch.nonzero(~sure)[:, 0]
        self.quick = len(doubtful) <= DOUBTS * len(rows)
        if len(doubtful):
            found[doubtful] = self._compare_all(rows[doubtful])
        return found

    def _compare_all(self, rows):
        # squared distances less the norm of the row, which is the same for all others
        scores = torch.addmm(self.norms, self.z[rows], self.z.T, alpha=-2)
        near = smallest(_without(scores, rows), self.k)
        return near.gather(1, scores.gather(1, near).argsort(1))

    def _compare_quickly(self, rows):  # -> (b, k), (b,) bool
        rough = self.queries[rows] @ self.keys.T
        near = smallest(_without(rough, rows), SPARE * self.k)
        products = [
            torch.bmm(
                self.z.index_select(0, others.flatten()).view(*others.shape, -1),
                self.z[own, :, None],
            )
            for own, others in zip(rows.split(CLOSE_ROWS), near.split(CLOSE_ROWS))
        ]
        scores = self.norms[near] - 2 * torch.cat(products)[:, :, 0]
        scores, order = scores.topk(self.k, largest=False)
        last = scores[:, -1]
        error = rough_error(self.norms[rows], last, self.rounding)
        return near.gather(1, order), rough.gather(1, near).amax(1) >= last + error


def in_half(z, norms):  # (n, d), (n,) -> (n, d + 2) each, float
    """Queries and keys whose bfloat16 products are the norm of the key less twice z z'.

    Also the longest step of a row to its rounded one, as a share of its length.
    """
    keys = torch.cat([z, norms[:, None], norms[:, None]], 1).bfloat16()
    keys[:, -1] = norms - keys[:, -2]  # what rounding took from the norm
    queries = torch.cat([-2 * z, torch.ones_like(z[:, :1]).expand(-1, 2)], 1).bfloat16()
    steps = (z - keys[:, :-2]).square().sum(1)
    tiny = torch.finfo(norms.dtype).tiny  # a row at the origin takes no step
    return queries, keys, float((steps / norms.clamp_min(tiny)).max().sqrt())


def rough_error(norms, last, rounding):  # (b,), (b,), float -> (b,)
    """How far bfloat16 scores of the nearest rows can be wrong.

    A nearer row than the last one found is not farther from the origin than the row itself and
    their distance together. Both factors of a product are rounded, then the score is.
    """
    own, far = norms.sqrt(), (last + norms).clamp_min(0).sqrt()
    products = 4 * rounding * own * (own + far)
    return SLACK * (products + ROUNDING * torch.maximum(norms, last.abs()))


def smallest(scores, k):  # (b, n) -> (b, k)
    """Places of the k smallest values of each row, in no order.

    They are in the k groups with the smallest minima, and minima are cheap.
    """
    columns = scores.shape[1] // GROUP
    if columns < k:
        return _select(scores, k)
    whole = columns * GROUP
    best = _select(scores[:, :whole].unflatten(1, (GROUP, columns)).amin(1), k)[:, None]
    first = torch.arange(0, whole, columns, device=scores.device)[:, None]
    rest = torch.arange(whole, scores.shape[1], device=scores.device)
    places = torch.cat([(best + first).flatten(1), rest.expand(len(scores), -1)], 1)
    return places.gather(1, _select(scores.gather(1, places), k))


def _without(scores, rows):  # (b, n), (b,)
    """Nobody is his own neighbour."""
    scores[torch.arange(len(rows), device=rows.device), rows] = torch.inf
    return scores


def _select(values, k):  # (b, n) -> (b, k)
    if values.device.type != "cpu":
        return values.topk(k, largest=False, sorted=False).indices
    if values.dtype == torch.bfloat16:  # which numpy does not know
        values = values.float()
    # several times as fast as torch's
    return torch.from_numpy(np.argpartition(values.numpy(), k - 1, 1)[:, :k])
