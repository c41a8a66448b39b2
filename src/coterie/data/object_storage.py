"""Parquet files by path or by address: s3://bucket/folder, gs://, abfs://, hdfs://, file://."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from .errors import DataError

_URL = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)


def is_url(source: object) -> bool:
    """Whether data are named by an address and not by a path."""
    return isinstance(source, str) and bool(_URL.match(source))


def find_parquet(source: Path | str) -> tuple[list[Any], str]:
    """All .parquet files of a place, sorted by path, and a short name of it.

    Returns
    -------
    list of (FileSystem, FileInfo), str
        As pyarrow has them.
    """
    from pyarrow import fs

    storage, start = _open(source)
    about, name = storage.get_file_info(start), PurePosixPath(start).stem or "data"
    if about.type == fs.FileType.NotFound:
        raise DataError(f"there is no file or folder {shown(source)}; check its path")
    files = [about]
    if about.type == fs.FileType.Directory:
        inside = storage.get_file_info(fs.FileSelector(start, recursive=True))
        files = sorted((f for f in inside if _is_data(f, start)), key=lambda file: file.path)
    if not files:
        raise DataError(f"there are no .parquet files in {shown(source)}")
    return [(storage, file) for file in files], name


def shown(source: Path | str) -> str:
    """The place without the settings that an address may carry."""
    return str(source).split("?")[0] if is_url(source) else str(source)


def _is_data(file: Any, start: str) -> bool:
    """Logs and drafts that other programs leave begin with "_" or "." (`_delta_log`)."""
    inner = PurePosixPath(file.path).relative_to(start).parts
    return file.is_file and file.extension == "parquet" and not any(p[0] in "_." for p in inner)


def _open(source: Path | str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    if not is_url(source):
        return fs.LocalFileSystem(), str(Path(source).resolve())
    if urlsplit(str(source)).password is not None:
        raise DataError(
            "the address holds a password, and a run would store it; give it in the environment "
            "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://)"
        )
    try:
        storage, start = fs.FileSystem.from_uri(str(source))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{shown(source)} cannot be opened ({error}); give an address of s3://, gs://, "
            "abfs://, hdfs:// or file://, or copy the data to this machine"
        ) from None
    return storage, start.rstrip("/") or start
