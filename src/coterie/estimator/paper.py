"""Settings that the papers give for a data set, one file for each method."""

import tomllib
from importlib import resources

from .params import as_tuples


def published(cls: type, dataset: str, variant: str | None = None) -> dict:
    """Settings of a method for a data set, with those of one line of a paper's tables."""
    try:
        text = resources.files("coterie.presets").joinpath(f"{cls.key}.toml").read_text()
    except FileNotFoundError:
        raise ValueError(f"{cls.__name__} has no published settings; use its defaults") from None
    preset = tomllib.loads(text)
    if dataset not in preset["datasets"]:
        known = ", ".join(sorted(preset["datasets"]))
        raise ValueError(
            f"no published settings of {cls.__name__} for {dataset!r}; there are: {known}"
        )
    own = preset["datasets"][dataset]
    found = {**preset.get("common", {}), **own, **own.get(variant, {})}
    return {k: as_tuples(v) for k, v in found.items() if not isinstance(v, dict)}
