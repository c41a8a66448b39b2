"""Text from files and their names on a terminal, which takes control characters for commands."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: object, indent: str = "  ") -> str:
    """The same text with control characters spelled out; lines after the first are set in.

    So nothing that stands in a file can move the cursor, or pass for a line of ours.
    """
    spelled = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], str(text).rstrip())
    return f"\n{indent}".join(line.strip() for line in spelled.split("\n") if line.strip())
