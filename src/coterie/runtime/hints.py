"""Help with a word that was not understood."""

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[object]) -> str | None:
    """The known word that is most like this one, whatever their case; None if none is near."""
    by_lower = {str(choice).lower(): str(choice) for choice in known}
    near = difflib.get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


ACCELERATORS = ("gpu", "cuda", "accelerator")  # other words for `device`


def did_you_mean(word: str, known: Iterable[object]) -> str:
    """``; did you mean X?`` for the closest known word, or nothing."""
    words = [str(choice) for choice in known]
    plain = str(word).lstrip("-").lower()
    device = [choice for choice in words if choice.lstrip("-") == "device"]
    near = device[0] if device and plain in ACCELERATORS else closest(word, words)
    return f"; did you mean {near}?" if near else ""
