"""A zip file of images."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path, PurePosixPath

from coterie.storage.atomic import scratch_folder

from .dataset import Dataset
from .errors import DataError
from .folders import SUFFIXES, read_images
from .limits import check_unpacked
from .options import Options


def read_zip(path: Path, ask: Options) -> Dataset:
    """Read the images of a zip file as those of a folder; ids are the names inside it."""
    try:
        with zipfile.ZipFile(path) as packed, scratch_folder("zip") as folder:
            members = [m for m in packed.infolist() if _is_image(m)]
            if not members:
                raise DataError(f"{path} holds no images; unpack it and give what is inside")
            total = sum(m.file_size for m in members)
            check_unpacked(path, path.stat().st_size, total)
            room = shutil.disk_usage(folder).free
            if total > room:
                raise DataError(
                    f"{path} unpacks to {total / 1e9:.1f} GB, there is room for {room / 1e9:.1f} "
                    "GB; unpack it where there is more and give the folder"
                )
            target = folder / path.stem
            names: dict[str, str] = {}
            for member in members:
                name = Path(packed.extract(member, target)).relative_to(target).as_posix()
                if name in names:
                    raise DataError(
                        f"{path} holds {name} twice (as {names[name]!r} and {member.filename!r}); "
                        "unpack it, give each its own name and give the folder"
                    )
                names[name] = member.filename
            return read_images(target, sorted(names), ask)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError, EOFError) as error:
        raise DataError(f"cannot read {path} as a zip file: {error}") from None


def _is_image(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not member.is_dir() and not hidden and Path(parts[-1]).suffix.lower() in SUFFIXES
