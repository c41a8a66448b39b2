"""What a number depends on besides data, parameters and seed."""

import contextlib
import platform
from importlib import metadata

PACKAGES = ("coterie", "torch", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
