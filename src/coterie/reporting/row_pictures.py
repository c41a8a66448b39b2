"""Rows as pictures: data URIs for cards, sprite sheets for hovering, a budget for both."""

import base64
import io

import numpy as np
from PIL import Image, features

SPRITE_BYTES = 6_500_000  # what hover pictures may take of the page, in base64 characters
SPRITE_SIDES = (48, 40, 32, 28, 24, 20, 16, 12)
SHEET_SIDE = 2048  # pixels; phones decode this without trouble
PICTURE_SIDE = 96  # longest side of a picture on a card


class Canvas:
    """Turn rows of an image array into 8-bit pictures with one range for the whole data set.

    Parameters
    ----------
    X : array of shape (n, h, w) or (n, h, w, c)
    """

    def __init__(self, X):
        self.shape = tuple(int(s) for s in X.shape[1:])
        probe = np.asarray(X[:: max(1, len(X) // 500)])
        if probe.dtype == np.uint8:
            self.low, self.high = 0.0, 255.0
        else:
            low, high = float(np.nanmin(probe)), float(np.nanmax(probe))
            self.low, self.high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)

    @property
    def is_color(self):
        return len(self.shape) == 3 and self.shape[2] >= 3

    def draw(self, rows, side=PICTURE_SIDE):  # (m, h, w[, c]) -> list of PIL images
        """Pictures no larger than `side`; rows of the data, or a model's output in their units."""
        return [_shrink(Image.fromarray(p), side) for p in self.pixels(rows)]

    def pixels(self, rows):  # (m, h, w[, c]) -> (m, h, w) or (m, h, w, 3) bytes
        rows = np.asarray(rows)
        pixels = rows if rows.dtype == np.uint8 else self._bytes(rows.astype(np.float32))
        pixels = pixels.reshape(len(rows), *self.shape)
        if pixels.ndim == 4:
            pixels = pixels[..., :3] if self.is_color else pixels[..., 0]
        return pixels

    def _bytes(self, rows):
        unit = (np.nan_to_num(rows) - self.low) / ((self.high - self.low) or 1.0)
        return (np.clip(unit, 0, 1) * 255 + 0.5).astype(np.uint8)


def _shrink(image, side):
    longest = max(image.size)
    if longest <= side:
        return image
    size = tuple(max(1, round(s * side / longest)) for s in image.size)
    return image.resize(size, Image.Resampling.LANCZOS)


def data_uri(image):
    """A PIL image as a data URI: PNG for small grey pictures, WebP (else JPEG) for the others."""
    kind, raw = encode(image, lossy=image.mode != "L" or max(image.size) > 40)
    return f"data:image/{kind};base64," + base64.b64encode(raw).decode()


def encode(image, lossy):
    out = io.BytesIO()
    if not lossy:
        # sixteen greys look the same at this size and halve the file
        levels = image.point([round(v / 17) for v in range(256)])
        levels = Image.frombytes("P", levels.size, levels.tobytes())
        levels.putpalette([17 * (i // 3) for i in range(48)])
        levels.save(out, "PNG", bits=4, optimize=image.width * image.height < 10_000)
        return "png", out.getvalue()
    if features.check("webp"):
        image.save(out, "WEBP", quality=55, method=3)
        return "webp", out.getvalue()
    image.save(out, "JPEG", quality=60, optimize=True)
    return "jpeg", out.getvalue()


def strip(images):
    """Pictures side by side as one PIL image."""
    width = sum(i.width for i in images)
    out = Image.new(images[0].mode, (width, max(i.height for i in images)))
    x = 0
    for image in images:
        out.paste(image, (x, 0))
        x += image.width
    return out


def sprites(X, canvas, budget=SPRITE_BYTES):
    """One small picture per row, packed in sheets that stay within `budget` characters.

    The rule: encode a sample of rows at each side from large to small, take the first side whose
    extrapolated size fits. Where even the smallest does not fit, evenly spread rows are drawn.

    Returns
    -------
    dict with width and height (pixels of a tile, which has the shape of the rows), columns,
    per_sheet, step (row r has a picture when r % step is 0) and sheets (data URIs).
    """
    n = len(X)
    probe = np.linspace(0, n - 1, min(n, 1024)).astype(int)
    longest = max(canvas.shape[:2])
    for side in [s for s in SPRITE_SIDES if s <= longest] or [longest]:
        high, wide = (max(1, round(s * side / longest)) for s in canvas.shape[:2])
        tiles = SHEET_SIDE // max(high, wide)  # in a line, and lines in a sheet
        _, raw = encode(_sheet(X, canvas, np.sort(probe), high, wide, tiles), canvas.is_color)
        need = len(raw) * 4 / 3 * n / len(probe)
        if need <= budget:
            break
    step = max(1, int(np.ceil(need / budget)))
    rows = np.arange(0, n, step)
    sheets = []
    for start in range(0, len(rows), tiles * tiles):
        part = rows[start : start + tiles * tiles]
        kind, raw = encode(_sheet(X, canvas, part, high, wide, tiles), canvas.is_color)
        sheets.append(f"data:image/{kind};base64," + base64.b64encode(raw).decode())
    return {
        "width": wide,
        "height": high,
        "columns": tiles,
        "per_sheet": tiles * tiles,
        "step": step,
        "sheets": sheets,
    }


def _sheet(X, canvas, rows, high, wide, tiles):
    """The rows as tiles of `high` x `wide` pixels, `tiles` in a line, shrunk by plain averaging."""
    h, w = canvas.shape[:2]
    down, across = _averages(h, high), _averages(w, wide)
    colors = (3,) if canvas.is_color else ()
    lines = -(-len(rows) // tiles)
    out = np.zeros((lines * tiles, high, wide, *colors), np.uint8)
    for start in range(0, len(rows), 1024):
        pixels = canvas.pixels(X[rows[start : start + 1024]]).astype(np.float32)
        small = np.einsum("ih,nhw...,jw->nij...", down, pixels, across, optimize=True)
        out[start : start + len(small)] = np.round(small)
    sheet = out.reshape(lines, tiles, high, wide, *colors).swapaxes(1, 2)
    return Image.fromarray(sheet.reshape(lines * high, tiles * wide, *colors))


def _averages(n, m):  # -> (m, n), rows sum to 1
    """Weights that average n pixels into m equal stretches."""
    edges = np.linspace(0, n, m + 1)
    low, high = edges[:-1, None], edges[1:, None]
    cells = np.arange(n)
    overlap = np.clip(np.minimum(high, cells + 1) - np.maximum(low, cells), 0, None)
    return (overlap * m / n).astype(np.float32)
