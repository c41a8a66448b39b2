"""results/speed.json: measured figures by section and key, with what they were measured on."""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

from coterie.storage.atomic import write_atomic

PATH = Path(__file__).resolve().parent.parent / "results" / "speed.json"
PACKAGES = ("coterie", "torch", "numpy", "scipy", "scikit-learn")


def read(path: Path = PATH) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def put(section: str, key: str, value: dict, path: Path = PATH) -> None:
    """Merge one figure; the others stay. The file is the old one or the new one, never a part."""
    content = read(path)
    content.setdefault(section, {})[key] = value | {"on": machine()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(content, indent=1, sort_keys=True).encode())


def machine() -> dict:
    import torch

    return {
        "versions": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        # other work on the machine at the time: figures of one run compare, others may not
        "load": round(os.getloadavg()[0], 1),
    }
