"""Writing files so that nobody ever meets half of one; TOML for plain values."""

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

import numpy as np

TEMP = ".coterie.tmp-"  # what the temporary files beside a target begin with
NO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # of file systems that cannot sync a folder


@contextlib.contextmanager
def atomic(path):
    """A binary file that takes its name in one step, when all of it is on the disk.

    A reader sees the old bytes or the new ones, never a mixture, also after a power cut.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):  # a folder is told by the rename
        raise OSError(errno.EINVAL, "not a regular file but a pipe or a device", str(path))
    file, temp = _temporary(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temp, path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _temporary(path: Path):
    """A new file beside `path`, locked: that lets `sweep` tell the living from the dead."""
    while True:
        # a name of its own: two threads may write the same file; short: the target's may be long
        temp = path.with_name(f"{TEMP}{secrets.token_hex(8)}")
        file = open(temp, "xb")  # noqa: SIM115
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if is_at(file.fileno(), temp):
            return file, temp
        file.close()  # another process has swept it before the lock was ours


def is_at(handle: int, path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def sync_folder(folder):
    """Have the names in a folder on the disk, not only the contents of its files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(handle)


def sweep(folder):
    """Remove the temporary files of writers that were killed; those at work hold a lock."""
    for temp in Path(folder).glob(f"{TEMP}*"):
        if not temp.is_file():
            continue
        with contextlib.suppress(OSError), open(temp, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temp.unlink()


@contextlib.contextmanager
def scratch_folder(name: str, parent=None):
    """A folder that is removed with all that is in it; those that a kill has left go before.

    `name` tells it from those of other work, also among everybody's temporary files.
    """
    parent = Path(parent or tempfile.gettempdir())
    for old in parent.glob(f"{TEMP}{name}-*"):
        with contextlib.suppress(OSError), holding(old, fcntl.LOCK_NB) as alive:
            if alive:
                shutil.rmtree(old)
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{TEMP}{name}-", dir=parent))
        with holding(path) as alive:
            if not alive:
                continue  # another process has swept it before the lock was ours
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
            return


@contextlib.contextmanager
def holding(folder: Path, more: int = 0):
    """Hold the lock of a folder, and tell whether it is still there when the lock is ours."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | more)
        except OSError:
            if more:  # held by another process
                raise
            # a file system without locks
        yield is_at(handle, folder)
    finally:
        os.close(handle)


def read_bytes(path) -> bytes:
    """The content of a regular file; a pipe in its place would never end."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file")
    return path.read_bytes()


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
