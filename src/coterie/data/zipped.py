"""A zip file of images."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from .dataset import Dataset
from .errors import DataError
from .folders import SUFFIXES, read_images
from .options import Options

MOST_BYTES = 32 << 30  # unpacked: a small file can hold more than any disk


def read_zip(path: Path, ask: Options) -> Dataset:
    """Read the images of a zip file as those of a folder; ids are the names inside it."""
    try:
        with zipfile.ZipFile(path) as packed, tempfile.TemporaryDirectory() as folder:
            members = [m for m in packed.infolist() if _is_image(m)]
            if not members:
                raise DataError(f"{path} holds no images; unpack it and give what is inside")
            total = sum(m.file_size for m in members)
            room = min(MOST_BYTES, shutil.disk_usage(folder).free)
            if total > room:
                raise DataError(
                    f"{path} unpacks to {total / 1e9:.1f} GB, there is room for {room / 1e9:.1f} "
                    "GB; unpack it where there is more and give the folder"
                )
            target = Path(folder) / path.stem
            names = sorted(
                Path(packed.extract(m, target)).relative_to(target).as_posix() for m in members
            )
            return read_images(target, names, ask)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError, EOFError) as error:
        raise DataError(f"cannot read {path} as a zip file: {error}") from None


def _is_image(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not member.is_dir() and not hidden and Path(parts[-1]).suffix.lower() in SUFFIXES
