"""Options from a TOML file: one that somebody wrote, or the run.toml of an earlier run."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from coterie.data.options import joined
from coterie.estimator.params import as_tuples
from coterie.runtime.hints import did_you_mean
from coterie.storage import runs
from coterie.storage.atomic import read_bytes

from .method_args import UsageError, flag_name, method_fields
from .source import stored_options


def read_config(path: str) -> dict:
    """The options in a file, by name; those of a run are its data, method and settings."""
    file = Path(path) / "run.toml" if Path(path).is_dir() else Path(path)
    try:
        content = tomllib.loads(read_bytes(file).decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
    if "coterie_run" not in content:
        return content
    content = runs.peek(file.parent) or content  # tells a damaged one
    from coterie.registry import get

    data = content["data"]
    kept = ("method", "seed", "threads", "time_budget")
    given = {name: content[name] for name in kept if name in content}
    given |= {"data": data["source"], "clusters": content["params"]["n_clusters"]}
    given |= stored_options(data)
    return given | stored_params(get(content["method"]), content)


def stored_params(cls: type, meta: dict) -> dict:
    """The parameters that a run began with.

    By the method's own list: what was None is not in the file, and the default may be another.
    """
    k = meta["params"]["n_clusters"]
    fields = [name for name in runs.describe(cls(n_clusters=k)) if name in method_fields(cls)]
    return {name: as_tuples(meta["params"].get(name)) for name in fields}


def config_flags(content: dict, path: str, known: Iterable[str]) -> list[str]:
    """Options as command-line words, so that file and flags mean and check the same.

    Parameters
    ----------
    known : iterable of str
        Option names (``--epochs``) that the command understands.
    """
    words = []
    for key, value in content.items():
        flag = flag_name(key)
        if flag not in known:
            close = did_you_mean(flag, known).replace("--", "")
            raise UsageError(f"{path}: unknown key '{key}'{close}")
        if isinstance(value, dict):
            raise UsageError(f"{path}: '{key}' is a table; write all keys at the top level")
        if isinstance(value, bool):
            off = "--no-" + flag[2:]
            words += [flag] if value else [off] if off in known else []
        elif isinstance(value, (list, tuple)):
            words.append(f"{flag}={joined(value)}")
        else:
            words.append(f"{flag}={value}")
    return words
