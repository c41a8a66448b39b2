"""Help with a word that was not understood."""

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[object]) -> str | None:
    """The known word that is most like this one, whatever their case; None if none is near."""
    by_lower = {str(choice).lower(): str(choice) for choice in known}
    near = difflib.get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[object]) -> str:
    """``; did you mean X?`` for the closest known word, or nothing."""
    near = closest(word, known)
    return f"; did you mean {near}?" if near else ""
