"""Which kind of data rows are, told by their shape and values alone."""

from .features import WIDE

NARROWEST = 64  # columns of an embedding


def guess_kind(sample, sparse, shape):  # (m, ...) raw values -> one of KINDS
    """The kind of data, by shape and values.

    Sparse rows are text, unless they hold whole numbers. Dense rows are vectors if they look like
    the output of a network, counts if they are wide, non-negative, mostly zero, and their columns
    reach very different heights (pixels do not).
    """
    if len(shape) == 3:
        return "image"
    whole = bool((sample == sample.round()).all())
    if sparse:
        return "counts" if whole else "text"
    if embedded(sample):
        return "vector"
    if sample.shape[1] < 2 * WIDE or bool((sample < 0).any()) or (sample == 0).float().mean() < 0.5:
        return "table"
    heights = sample.amax(0)
    return "counts" if heights[heights > 0].median() < 0.5 * heights.max() else "table"


def embedded(sample):  # (m, d) raw values -> bool
    """Do rows look like embeddings: 64 columns or more, and all about equally long?

    A network for embeddings ends in a normalisation, and its code has no unit and no favourite
    number. So rows of length one are embeddings, whatever they hold; rows of other lengths are if
    these differ by at most a sixth (coefficient of variation), nearly every column has both signs,
    and no column has more than a tenth of the squares. Measured quantities are seldom like that:
    they are positive, or lengths differ because some rows are large in everything.
    """
    if sample.shape[1] < NARROWEST or len(sample) < 2:
        return False
    lengths = sample.norm(dim=1)
    lengths = lengths[lengths > 0]
    if len(lengths) < 2:
        return False
    if bool(((lengths - 1).abs() < 0.01).all()):
        return True
    squares = sample.square().mean(0)
    both = ((sample.amin(0) < 0) & (sample.amax(0) > 0)).float().mean()
    alike = lengths.std() < lengths.mean() / 6
    return bool(alike and both > 0.95 and squares.max() < 0.1 * squares.sum())
