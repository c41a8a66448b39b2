"""The headline in plain sentences: how many clusters, how big, which to distrust and why."""

import numpy as np

from .cluster_stats import BORDER, cluster_list, count, percent
from .doubts import DIVIDED

CHOSEN = ("chosen:", "taken:")  # how Kith's note on its choice begins; runs may be older
FOUND = "found: "  # how the note on the number of clusters begins


def headline(facts):
    """One sentence that says what was done."""
    return f"{count(facts.n, facts.noun)} in {facts.used} cluster{'' if facts.used == 1 else 's'}"


def sentences(facts, title, baselines, doubtful=False, notes=()):
    """A handful of sentences for a reader who has never heard of the method.

    `doubtful` says that there is reason not to repeat the method's praise of itself.
    """
    out = [_made(facts, title), _sizes(facts)]
    out += [_found(note.removeprefix(FOUND)) for note in notes if note.startswith(FOUND)]
    if facts.left_out:
        share = percent(facts.left_out / facts.n)
        out.append(
            f"{count(facts.left_out, facts.noun)} ({share}) fit no cluster well and have the label "
            "-1. This page shows them in the nearest cluster."
        )
    if doubtful:
        out.append("The confidence of the method says little here; the reasons are below.")
    elif facts.has_rivals:
        torn = float((facts.rivalry >= BORDER).mean())
        out.append(
            f"{percent(1 - torn)} of the {facts.noun}s sit clearly in one cluster; "
            f"{percent(torn)} lie near a border and could belong to another one."
            if torn >= 0.005
            else f"Nearly every {facts.noun} sits clearly in one cluster."
        )
    raw = next((b for b in baselines if b["key"] == "raw"), None)
    if raw:
        out.append(_against(raw["agreement"]))
    return out


def _made(facts, title):
    asked = "" if facts.used == facts.k else f" ({facts.k} were asked for)"
    clusters_word = "cluster" if facts.used == 1 else "clusters"
    return (
        f"{title} put {count(facts.n, facts.noun)} into {facts.used} {clusters_word}{asked}, "
        "without labels. The numbers of the clusters are names, not ranks."
    )


def _found(words):
    """How a method that was not told the number of clusters came to it."""
    if words.startswith("no structure"):
        return f"The number of clusters was left open, and the data show none: {words}."
    return (
        f"The number of clusters was left open; the method found {words}. Numbers in that range "
        "are plausible too."
    )


def _sizes(facts):
    sizes = facts.sizes[facts.sizes > 0]
    if len(sizes) < 2:
        return f"All {facts.noun}s are in one cluster."
    big, small = int(facts.sizes.argmax()), int(np.flatnonzero(facts.sizes == sizes.min())[0])
    ratio = sizes.max() / sizes.min()
    word = (
        "of about equal size"
        if ratio < 1.6
        else "of similar size"
        if ratio < 3
        else "of unequal size"
    )
    if ratio == 1:
        return f"The clusters are of equal size, each with {percent(sizes[0] / facts.n)}."
    return (
        f"The clusters are {word}: the largest (cluster {big}) holds "
        f"{percent(sizes.max() / facts.n)}, the smallest (cluster {small}) "
        f"{percent(sizes.min() / facts.n)}."
    )


def _against(agreement):
    if agreement > 0.85:
        return (
            "Plain k-means on the data themselves finds nearly the same clusters "
            f"(agreement {agreement:.2f} of 1), so a simpler method may do."
        )
    if agreement > 0.5:
        return (
            "Plain k-means on the data themselves finds partly the same clusters "
            f"(agreement {agreement:.2f} of 1)."
        )
    return (
        "Plain k-means on the data themselves finds quite different clusters "
        f"(agreement {agreement:.2f} of 1): look at the members before you choose."
    )


def warnings(facts, history=(), notes=(), seen=()):
    """Things to distrust, worst first: dicts with level (bad, look), text and clusters.

    `notes` are what the fit itself had to say, `seen` the doubts of `ground_doubts`.
    """
    out = [_warn("bad", f"{note}.", []) for note in notes if out_of_time(note)]
    out += [_warn("bad", f"{text}.", numbers) for text, numbers in seen]
    empty = np.flatnonzero(facts.sizes == 0)
    if len(empty):
        out.append(_warn("bad", f"{cluster_list(empty)} got no {facts.noun} at all.", empty))
    big = int(facts.sizes.argmax())
    if facts.k > 2 and facts.sizes[big] > 0.5 * facts.n:
        share = percent(facts.sizes[big] / facts.n)
        text = f"cluster {big} holds {share} of all {facts.noun}s; the method may have collapsed."
        out.append(_warn("bad", text, [big]))
    if facts.k > 2 and facts.has_rivals and facts.confidence.mean() < 1.5 / facts.k:
        text = "the soft assignments are almost equal, so the confidence says little here."
        out.append(_warn("bad", text, []))
    if not np.isfinite(facts.z).all():
        out.append(_warn("bad", "the embedding holds values that are not numbers.", []))
    seen = set()
    for j in range(facts.k):
        for i, _, gap in facts.nearest[j]:
            pair = (min(i, j), max(i, j))
            if gap == np.inf and pair not in seen:
                text = f"{cluster_list(pair)} have the same centre."
                out.append(_warn("bad", text, pair))
            seen.add(pair)
    doubtful = [j for j in range(facts.k) if facts.verdict(j) == "doubtful"]
    check = [j for j in range(facts.k) if facts.verdict(j) == "check"]
    for j in (doubtful + check)[:8]:
        # its size, and that others divide it, were said above
        reasons = [r for r in facts.reasons[j] if not r.startswith("holds") and r != DIVIDED]
        if reasons:
            out.append(_warn("look", f"cluster {j}: {'; '.join(reasons)}.", [j]))
    if len(doubtful + check) > 8:
        rest = (doubtful + check)[8:]
        out.append(_warn("look", f"{cluster_list(rest)}: see their cards.", rest[:6]))
    if any(not np.isfinite(v) for h in history for v in h.values() if isinstance(v, float)):
        out.append(_warn("bad", "a loss was not a number during training.", []))
    told = [n for n in notes if not out_of_time(n) and not n.startswith((*CHOSEN, FOUND))]
    out.extend(_warn("look", f"{note}.", []) for note in told)
    return out


def out_of_time(note):
    """Whether a note of a fit says that its time was too short."""
    return note.startswith("the time budget ended")


def first_look(parts):
    """Where to look even if nothing seems wrong; empty without such clusters."""
    if not parts:
        return ""
    worst = sorted(parts, key=lambda j: parts[j][0])[:4]
    return (
        f"Look first at {cluster_list(sorted(worst))}: plain k-means on the data themselves "
        f"divides {'it' if len(worst) == 1 else 'them'}, so there may be more than one kind inside."
    )


def _warn(level, text, numbers):
    return {
        "level": level,
        "text": text[0].upper() + text[1:],
        "clusters": [int(i) for i in numbers],
    }
