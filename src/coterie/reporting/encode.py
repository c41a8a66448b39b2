"""Numbers for the page: typed arrays in base64, row names, and the policy of what may run."""

import base64
import hashlib

import numpy as np

ID_LENGTH = 80


def b64(array):
    """Little-endian bytes in base64; the reader knows the type."""
    array = np.ascontiguousarray(array)
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()


def bytes_of(unit):  # values in 0..1 -> uint8
    """Shares as bytes: 255 steps are finer than anybody can see."""
    return np.round(np.clip(np.nan_to_num(unit), 0, 1) * 255).astype(np.uint8)


def pack_ids(ids):
    """Row names: nothing at all where they are 0, 1, 2, ...; else short strings."""
    names = [str(i) for i in ids]
    if all(name == str(i) for i, name in enumerate(names)):
        return None
    return [n if len(n) <= ID_LENGTH else n[:30] + "…" + n[-(ID_LENGTH - 31) :] for n in names]


def source_hash(text):
    """The name of an inline script or style in a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(style, script):
    """Nothing may be loaded and only our own script and style may run."""
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {source_hash(style)}; script-src {source_hash(script)}"
    )
