"""Writing files so that nobody ever meets half of one; TOML for plain values."""

import contextlib
import json
import os
import re
from pathlib import Path

import numpy as np


@contextlib.contextmanager
def atomic(path):
    """A binary file that takes its name in one step, when all of it is on the disk.

    A reader sees the old bytes or the new ones, never a mixture.
    """
    path = Path(path)
    temp = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with open(temp, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def write_atomic(path, data: bytes):
    with atomic(path) as file:
        file.write(data)


def write_toml(path, data: dict):
    write_atomic(path, to_toml(data).encode("utf-8", "replace"))


def to_toml(data: dict) -> str:
    """TOML for plain values: the standard library reads the format but does not write it.

    TOML has no null: what is None is left out. (The word "none" is a value: --scale none.)
    """
    blocks = ["\n".join(_pairs({k: v for k, v in data.items() if not isinstance(v, dict)}))]
    for name, table in data.items():
        if isinstance(table, dict):
            blocks.append("\n".join([f"[{_key(name)}]", *_pairs(table)]))
    return "\n\n".join(blocks) + "\n"


def _pairs(table: dict) -> list[str]:
    return [f"{_key(k)} = {_value(v)}" for k, v in table.items() if v is not None]


def _key(name) -> str:
    name = str(name)
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value) -> str:
    value = plain(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def plain(value):
    """numpy scalars and arrays as Python values; other objects as their text."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
        return value
    return str(value)
