"""Help with a word that was not understood."""

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[object]) -> str | None:
    """The known word that is most like this one, whatever their case; None if none is near."""
    by_lower = {str(choice).lower(): str(choice) for choice in known}
    near = difflib.get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


NO_GPU = "coterie runs on the processor, a GPU is not used yet"
_NO_DEVICE = ("device", "gpu", "cuda", "accelerator")


def did_you_mean(word: str, known: Iterable[object]) -> str:
    """``; did you mean X?`` for the closest known word, or nothing."""
    if str(word).lstrip("-").lower() in _NO_DEVICE:
        return f": {NO_GPU}; leave it out"
    near = closest(word, known)
    return f"; did you mean {near}?" if near else ""
