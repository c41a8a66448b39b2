"""Doubts that rest on the data's own features, not on the embedding that the method made.

Every method finds its clusters tidy in the space that it shaped for them. Here a result meets
clusterings of other families and the graph of nearest neighbours (`coterie.common_ground.Ground`).
"""

from .cluster_stats import LINKS, cluster_list, percent

DIVIDED = "another method divides it"  # on the card of a cluster; the page says more
HALF = 0.5  # as many neighbours together as others keep, or as many links: clearly less
PART = 0.15  # share of a cluster that makes a division more than a few stray rows
ALONE = 0.4  # agreement with the nearest other family below which a result stands alone
UNITED = 0.6  # agreement of two families that have found the same
BETTER = 0.2  # by so much they agree better with each other than with the result


def ground_doubts(ground, labels):  # (n,) -> list of (text, clusters)
    """What speaks against a result, worst first, each with the clusters that it is about."""
    out = [_scattered(ground, labels), _alone(ground, labels)]
    if out[0] is None:  # where rows are scattered, every cluster is divided
        out.append(_divided(ground, labels))
    return [doubt for doubt in out if doubt]


def _scattered(ground, labels):
    """Are nearest rows together, compared with what other families manage?"""
    mine = ground.kept(labels)
    name, best = max(((n, ground.kept_of(o)) for n, o in ground.others.items()), key=lambda p: p[1])
    if not mine < HALF * best:
        return None
    return (
        "neighbouring rows are often in different clusters: beyond chance, "
        f"{percent(max(mine, 0))} of a row's nearest rows share its cluster; with {name} it is "
        f"{percent(best)}",
        [],
    )


def _alone(ground, labels):
    """Does another family find these clusters, or do the others agree on different ones?"""
    mine = ground.agreement(labels)
    nearest = max(mine, key=mine.__getitem__)
    pair, united = ground.united()
    if united >= max(UNITED, mine[nearest] + BETTER):
        a, b = pair
        return (
            f"{a} and {b} agree with each other ({united:.2f} of 1) more than with this result "
            f"({mine[a]:.2f} and {mine[b]:.2f})",
            [],
        )
    if mine[nearest] < ALONE:
        return (
            f"no other family of methods finds these clusters: the nearest, {nearest}, agrees by "
            f"{mine[nearest]:.2f} of 1",
            [],
        )
    return None


def _divided(ground, labels):
    """A cluster inside which others draw a clearer line than the one between two clusters here."""
    borders = ground.borders(labels)
    if not borders:
        return None
    border, count, a, b = max(borders)
    splits = [s for s in ground.splits(labels, PART) if s[0] < HALF * border]
    if not splits or count < LINKS:
        return None
    cut, j, share, name = min(splits)
    return (
        f"cluster {j} may be two: {name} divides it ({percent(share)} and "
        f"{percent(1 - share)}), and only {percent(cut)} of the links between nearest rows cross "
        f"that line; between {cluster_list((min(a, b), max(a, b)))} it is {percent(border)}",
        [j],
    )
