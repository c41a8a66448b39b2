"""A folder of image files."""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import describe_rows, encode_labels, match_type
from .dataset import Dataset
from .errors import DataError, count_of, listed
from .limits import check_regular, check_unpacked
from .options import Options

_FORMATS = ("png", "jpg", "jpeg", "bmp", "gif", "tif", "tiff", "webp", "pgm", "ppm", "pbm", "pnm")
SUFFIXES = frozenset(f".{ending}" for ending in _FORMATS)
# what Pillow may take a file for, whatever its name: an EPS would be given to Ghostscript
_KINDS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_GREY_MODES = frozenset(["1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"])
_MOST_BYTES = 8 << 30  # as float32, which methods work in
_LARGE, _SMALL = 128, 64  # longer sides above the one are shrunk to the other unless told otherwise


FROM_FOLDER = "Repair or remove it, or leave out unreadable images with skip_bad=True"


def from_list(again: bool) -> str:
    """What to do about an image of a list that cannot be read; `again`: by a fitted model."""
    recipe = ", recipe=model.recipe_" if again else ""
    return (
        "Repair it or leave it out of the list; coterie.load_data(LIST, skip_bad=True"
        f"{recipe}) leaves out what cannot be read, and its ids name the others"
    )


def find_images(folder: Path) -> tuple[list[str], int]:
    """Return the relative paths of all images below `folder`, sorted, and how many other files.

    Hidden files and folders do not count.
    """

    def refuse(error: OSError):
        raise DataError(f"cannot read folder {error.filename}: {error.strerror}")

    found, others = [], 0
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [f for f in folders if not f.startswith(".")]
        for file in files:
            if file.startswith("."):
                continue
            if Path(file).suffix.lower() in SUFFIXES:
                found.append((Path(parent) / file).relative_to(folder).as_posix())
            else:
                others += 1
    return sorted(found), others


def read_folder(folder: Path, ask: Options) -> Dataset:
    """Read every image below `folder`; ids are relative paths with forward slashes.

    All images get one size (`image_size`, the recipe's, or the most common one, shrunk to 64
    pixels if its longer side has over 128) and one number of channels (colour as soon as one
    image has colour). Transparency is laid on white, photographs are turned as their EXIF tag
    says. ``label_column="folder"`` takes the first subfolder as the known class.
    """
    paths, others = find_images(folder)
    if not paths:
        raise DataError(
            f"{folder} holds no images ({', '.join(sorted(SUFFIXES))}); "
            f"{count_of(others, 'other file')} seen"
        )
    if others:
        ask.notice(f"{folder.name}: left out {count_of(others, 'file')} of other types")
    return read_images(folder, paths, ask)


def read_images(folder: Path, paths: list[str], ask: Options) -> Dataset:
    """Read the images `paths` below `folder`."""
    ask.only("images", "label_column", "image_size", "skip_bad")
    if ask.label_column not in (None, "folder"):
        raise DataError(
            f"label_column='{ask.label_column}' names no classes of images; "
            'label_column="folder" takes the subfolders'
        )
    data = from_images({path: folder / path for path in paths}, ask, folder.name, str(folder))
    if ask.label_column == "folder":
        labels = [path.split("/")[0] if "/" in path else "" for path in data.ids]
        data.labels, data.label_names = encode_labels(labels, folder.name)
        if ask.recipe is None:
            data.recipe.label_column = ask.label_column
    return data


def from_images(images: dict[str, Any], ask: Options, name: str, place: str = "") -> Dataset:
    """Bring images, by their ids, to one size: paths of files, or images of Pillow."""
    way_out, bad = FROM_FOLDER if place else from_list(ask.recipe is not None), {}
    place = place or name
    heads: dict[str, tuple[tuple[int, int], bool]] = {}
    for key, image in images.items():
        _try(key, ask, bad, way_out, lambda k=key, i=image: heads.__setitem__(k, _head(i)))
    if not heads:
        raise DataError(f"{place}: none of the {len(images)} images can be read")
    (height, width), colour = _common(heads, name, place, ask)
    shape = (height, width, 3) if colour else (height, width)
    need = 4 * len(heads) * math.prod(shape)
    if need > _MOST_BYTES:
        raise DataError(
            f"{place}: {len(heads)} images of {height}x{width} need {need / 2**30:.0f} GB as "
            f"float32, the limit is {_MOST_BYTES >> 30}; give a smaller size, image_size="
        )
    X, kept = np.empty((len(heads), *shape), np.uint8), []
    for key in heads:
        row = X[len(kept)]
        if _try(key, ask, bad, way_out, lambda k=key, r=row: _fill(r, images[k], colour)):
            kept.append(key)
    if bad:
        shown = listed(bad, 5)
        ask.notice(f"{name}: left out {count_of(len(bad), 'unreadable image')}: {shown}")
    if not kept:
        raise DataError(f"{place}: none of the {len(images)} images can be read")
    X = X[: len(kept)]
    recipe = ask.recipe or describe_rows(X, "image", name, "images")
    X = match_type(X, recipe, name)
    return Dataset(X, kept, "image", name, recipe=recipe)


def _try(path: str, ask: Options, bad: dict[str, str], way_out: str, action) -> bool:
    """Run `action`; note a bad image, or raise with its name unless told to skip."""
    from PIL import Image

    try:
        action()
        return True
    # Pillow raises whatever a decoder stumbles over
    except (Exception, Image.DecompressionBombError) as error:
        if not ask.skip_bad:
            raise DataError(f"cannot read image {path}: {error}. {way_out}") from None
        bad[path] = str(error)
        return False


def _common(heads: dict, name: str, place: str, ask: Options) -> tuple[tuple[int, int], bool]:
    """Decide on one size and on colour, and say so when images had to change."""
    sizes, hint = Counter(size for size, _ in heads.values()), ""
    colour = any(has_colour for _, has_colour in heads.values())
    if ask.recipe is not None:
        if ask.recipe.kind != "image":
            raise DataError(
                f"{place} holds images, the model was fitted on {ask.recipe.kind} rows; "
                "give those, or fit a model on images"
            )
        target = ask.recipe.shape[0], ask.recipe.shape[1]
        wants_colour = len(ask.recipe.shape) == 3
        if colour != wants_colour:
            ask.notice(f"{name}: images read in {'colour' if wants_colour else 'grey'}")
        colour = wants_colour
    else:
        # of equally common sizes the smaller one: nothing is blown up without need
        common = min(sizes, key=lambda size: (-sizes[size], size))
        if 2 * sizes[common] < len(heads):  # no usual size: one in the middle of all
            middle = np.median([size for size, _ in heads.values()], axis=0)
            common = int(middle[0]), int(middle[1])
        target = ask.image_size or _affordable(common)
        if not ask.image_size and target != common:
            hint = "; image_size= sets another size"
        grey = sum(not has_colour for _, has_colour in heads.values())
        if colour and grey:
            ask.notice(f"{name}: {grey} grey images read as colour, like the others")
    changed = sum(count for size, count in sizes.items() if size != target)
    if changed:
        ask.notice(
            f"{name}: {changed} of {len(heads)} images resized to {target[0]}x{target[1]}{hint}"
        )
    return target, colour


def _affordable(size: tuple[int, int]) -> tuple[int, int]:
    """A photograph has millions of pixels, and methods see all of them at once."""
    long = max(size)
    if long <= _LARGE:
        return size
    height, width = (max(1, round(side * _SMALL / long)) for side in size)
    return height, width


@contextlib.contextmanager
def opened(image: Any):
    """The image of a file; one of Pillow is open already, and stays so."""
    from PIL import Image

    if not isinstance(image, Path):
        yield image
        return
    check_regular(image)
    with Image.open(image, formats=_KINDS) as found:
        yield found


def _head(source: Any) -> tuple[tuple[int, int], bool]:
    """Return (height, width) and whether there is colour, without decoding the pixels."""
    with opened(source) as image:
        width, height = image.size
        if isinstance(source, Path):
            check_unpacked(source, source.stat().st_size, 4 * width * height)
        turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # tag of the orientation
        return ((width, height) if turned else (height, width)), image.mode not in _GREY_MODES


def _fill(row: np.ndarray, source: Any, colour: bool) -> None:
    """Decode one image into `row`, uint8 (h, w) or (h, w, 3)."""
    from PIL import Image

    image = decoded(source, colour)
    target = (row.shape[1], row.shape[0])
    if image.size != target:
        image = image.resize(target, Image.Resampling.BILINEAR)
    row[...] = np.asarray(image)


def decoded(source: Any, colour: bool) -> Any:
    """An image of Pillow, upright, on white where it is transparent, RGB or grey."""
    from PIL import Image, ImageOps

    with opened(source) as image:
        image = ImageOps.exif_transpose(image)
        if image.mode == "F":
            raise ValueError("its pixels are floating-point numbers, whose range is unknown")
        if image.mode.startswith("I"):  # 16 bits: Pillow's own conversion would cut at 255
            image = Image.fromarray((np.asarray(image, np.float64) / 257).round().astype("u1"))
        if image.has_transparency_data:
            image = image.convert("RGBA")
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image)
        return image.convert("RGB" if colour else "L")
