"""The oldest version of each dependency that pyproject.toml allows, as requirements for pip."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("parquet", "map", "leiden", "cells", "xlsx")  # onnx and umap need torch's own versions

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
wanted = list(project["dependencies"])
for extra in EXTRAS:
    wanted += project["optional-dependencies"][extra]
for line in wanted:
    name, bound = re.match(r"([\w.-]+)>=([\w.]+)", line).groups()
    print(f"{name}=={bound}")
