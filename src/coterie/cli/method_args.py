"""Flags from dataclass fields, and errors that suggest what was meant."""

import argparse
import dataclasses
import re
import typing

from coterie.estimator.params import member_type, simple_types
from coterie.runtime.duration import seconds
from coterie.runtime.hints import did_you_mean

from .examples import epilog

# fields that have a flag of their own, or that only make sense in Python
OWN = {"n_clusters", "random_state", "verbose", "checkpoint_dir", "callback", "time_budget"}
# names that other programs have for an option of ours
MEANT = {"k": "--clusters", "n": "--clusters", "num-clusters": "--clusters"}
GROUPS = {
    "method": "method",
    "network": "network and pre-training",
    "training": "training",
    "run": "running",
}


class UsageError(ValueError):
    """A command line that cannot be carried out; the message is all that the user sees."""


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of exiting, and suggests instead of listing."""

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("epilog", epilog(kwargs.get("prog", "")))
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message):
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_strictly(self, argv: list[str]) -> argparse.Namespace:
        args, rest = self.parse_known_args(argv)
        if rest:
            shown = [action for action in self._actions if action.help != argparse.SUPPRESS]
            known = [option for action in shown for option in action.option_strings]
            name = rest[0].split("=")[0]
            if name.startswith("-"):
                meant = MEANT.get(name.lstrip("-")) if "--clusters" in known else None
                near = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
                raise UsageError(f"unknown option {name}{near}")
            raise UsageError(f"unexpected argument '{rest[0]}' (see {self.prog} --help)")
        return args


def duration(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``5m`` or ``1h``."""
    try:
        return float(seconds(text) or 0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def names(text: str) -> list[str]:
    """A list from a comma-separated text; quotes hold a name with commas together."""
    from coterie.data.options import names

    return list(names(text))


def whole(text: str) -> int:
    """An integer of at least 1."""
    if not re.fullmatch(r"\d+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def whole_or_auto(text: str) -> int | str:
    """An integer of at least 1, or the word auto."""
    return text if text == "auto" else whole(text)


def read_value(text: str, kinds: list):
    """The value that a text stands for, as the first of `kinds` that fits.

    Narrow types come first, whatever the order of the annotation: ``5`` is a number even where a
    word would be welcome too.
    """
    word = text.strip().lower()
    if type(None) in kinds and word in ("none", "null"):
        return None
    if bool in kinds and word in ("true", "false", "yes", "no"):
        return word in ("true", "yes")
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                pass
    if tuple in kinds and (str not in kinds or "," in text or re.fullmatch(r"[\d.]+", text)):
        return tuple(read_value(part, [int, float, str]) for part in names(text.strip("()[] ")))
    if str in kinds:
        return text
    wanted = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise argparse.ArgumentTypeError(
        f"'{text}' is not of type {wanted}".replace("NoneType", "none")
    )


def flag_name(field: str) -> str:
    return "--" + field.replace("_", "-")


def method_fields(cls) -> dict[str, tuple[dataclasses.Field, list]]:
    """The fields of an estimator that become flags, with the types that they accept."""
    hints = typing.get_type_hints(cls)
    fields = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        # a name or an object of Python's: here it can only be the name
        kinds = [str, type(None)] if hint is typing.Any else simple_types(hint)
        if field.name not in OWN and kinds:
            fields[field.name] = field, kinds
    return fields


def add_method_flags(parser: Parser, cls):
    """One flag for each field of the estimator, with help from its metadata."""
    groups = {}
    for name, (field, kinds) in method_fields(cls).items():
        meta = field.metadata
        title = GROUPS.get(meta.get("group", "method"), "method")
        if title not in groups:
            about = f"{cls.key}: {cls.summary}" if title == "method" else None
            groups[title] = parser.add_argument_group(title, about)
        options = {"dest": name, "default": argparse.SUPPRESS, "help": _help(field)}
        if bool in kinds and str not in kinds:
            groups[title].add_argument(
                flag_name(name), action=argparse.BooleanOptionalAction, **options
            )
            continue
        choices = meta.get("choices")
        metavar = "|".join(map(str, choices)) if choices else _metavar(kinds)
        groups[title].add_argument(
            flag_name(name),
            type=_reader(kinds, choices, member_type(cls, name)),
            metavar=metavar,
            **options,
        )


def option_names(parser: Parser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def _reader(kinds, choices, member=None):
    def read(text):
        value = read_value(text, kinds)
        if member in (int, float) and isinstance(value, tuple):
            odd = next((v for v in value if not isinstance(v, (int, member))), None)
            if odd is not None:
                word = "whole numbers" if member is int else "numbers"
                raise argparse.ArgumentTypeError(f"'{odd}' in '{text}': give {word}, such as 64,32")
        if choices and value is not None and value not in choices:
            close = did_you_mean(str(value), map(str, choices))
            listed = ", ".join(map(str, choices))
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {listed}{close}")
        return value

    return read


def _help(field) -> str:
    """The help of a field and its default: in place of None the rule that it stands for."""
    text, _, rule = field.metadata.get("help", "").partition("; None: ")
    return f"{text} (default: {rule or _shown(field.default)})".strip().replace("%", "%%")


def _metavar(kinds) -> str:
    words = {int: "N", float: "X", tuple: "A,B,...", str: "TEXT", bool: "yes|no"}
    return "|".join(words[kind] for kind in kinds if kind in words)


def _shown(default) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if default is None or isinstance(default, bool) else str(default)
