"""What pages include and nobody types: tables from the ledger, parameters from the fields.

Written into docs/_generated before a build. Figures are made by docs/site/figures.py.
"""

import dataclasses
import inspect
import typing
from pathlib import Path

import figures
import numpy as np
from docstrings import escape

from coterie import registry
from coterie.cli.method_args import GROUPS
from coterie.estimator.base import Clusterer
from coterie.estimator.docs import _type


def write(app):
    out = Path(app.srcdir) / "_generated"
    (out / "reference").mkdir(parents=True, exist_ok=True)
    methods = registry.list_methods()
    unwritten = [key for key in methods if not Path(app.srcdir, "methods", f"{key}.md").exists()]
    for old in (out / "pages").glob("*.md"):
        if old.stem not in unwritten:
            old.unlink()
    for key in unwritten:
        _put(out / "pages" / f"{key}.md", page(methods[key]))
    _put(out / "unwritten.md", contents(unwritten))
    _put(out / "methods.md", method_table(methods, unwritten))
    for key, cls in methods.items():
        _put(out / "reference" / f"{key}.rst", reference(cls))
    figures.write(out, methods)


def page(cls) -> str:
    """The page of a method for which nobody has written one in docs/methods yet."""
    text = inspect.cleandoc(cls.__doc__).split("\n\nParameters\n---")[0]
    lines = [f"# {cls.title}", "", _start(cls.summary) + ".", "", f"*{cls.reference}.*", ""]
    lines += ["```{eval-rst}", *map(escape, text.split("\n")), "```", ""]
    lines += [f"## Parameters of {cls.title}", "", "```{eval-rst}"]
    return "\n".join([*lines, f".. include:: ../reference/{cls.key}.rst", "```", ""])


def contents(unwritten) -> str:
    if not unwritten:
        return ""
    lines = ["## New methods", "", "```{toctree}", ":maxdepth: 1"]
    return "\n".join([*lines, *(f"/_generated/pages/{key}" for key in unwritten), "```", ""])


def method_table(methods, unwritten) -> str:
    lines = ["| key | class | what it does | variants |", "| --- | --- | --- | --- |"]
    for key, cls in methods.items():
        variants = ", ".join(f"`{key}:{v}`" for v in cls.variants)
        folder = "_generated/pages" if key in unwritten else "methods"
        page = f"[`{cls.__name__}`]({folder}/{key}.md)"
        lines.append(f"| `{key}` | {page} | {cls.summary} | {variants} |")
    return "\n".join(lines) + "\n"


def reference(cls) -> str:
    """The class, its parameters by group, its fitted attributes, its own methods."""
    lines = [f".. py:class:: coterie.{cls.__name__}(n_clusters, *, ...)", ""]
    hints = typing.get_type_hints(cls)
    groups: dict[str, list] = {}
    for f in sorted(dataclasses.fields(cls), key=lambda f: f.name != "n_clusters"):
        groups.setdefault(f.metadata.get("group", "method"), []).append(f)
    for group, title in GROUPS.items():
        if group in groups:
            lines += [f"   **Parameters: {title}**", ""]
        for f in groups.get(group, []):
            lines += [f"   .. py:attribute:: {f.name}", f"      :type: {_type(hints[f.name])}"]
            if f.name != "n_clusters":
                lines += [f"      :value: {f.default!r}"]
            lines += ["", f"      {sentence(f)}", ""]
    fitted = {}
    for base in reversed(cls.__mro__):
        fitted |= base.__dict__.get("attributes", {})
    lines += ["   **After a fit**", ""]
    for name, text in fitted.items():
        lines += [f"   .. py:attribute:: {name}", "", f"      {escape(_start(text))}", ""]
    lines += ["   **Methods**", ""]
    for name, f in inspect.getmembers(cls, callable):
        if not name.startswith("_") and not hasattr(Clusterer, name) and _for_users(f):
            text = inspect.getdoc(f).split("\n\n")[0].replace("\n", " ")
            lines += [f"   .. py:method:: {name}{_signature(f)}", "", f"      {escape(text)}", ""]
    shared = (
        "fit",
        "predict",
        "predict_proba",
        "transform",
        "score_samples",
        "plot",
        "save",
        "paper",
    )
    base = "coterie.estimator.base.Clusterer"
    lines += ["   " + ", ".join(f":py:meth:`{m} <{base}.{m}>`" for m in shared) + ".", ""]
    return "\n".join(lines)


def sentence(f) -> str:
    """The help text of a field with its legal values."""
    text, m = escape(_start(f.metadata.get("help", ""))).rstrip("."), f.metadata
    legal = []
    if m.get("choices") and all(str(c) not in text for c in m["choices"]):
        legal.append("one of " + ", ".join(f"``{c!r}``" for c in m["choices"]))
    for name, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most")):
        if m.get(name) is not None:
            legal.append(f"{words} {m[name]}")
    return text + (f" ({', '.join(legal)})." if legal else ".")


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _for_users(f) -> bool:
    """Methods that give arrays, or the model; the others are hooks of the training."""
    if not (f.__doc__ and f.__module__.startswith("coterie")):
        return False
    return inspect.signature(f).return_annotation in (np.ndarray, typing.Self)


def _signature(f) -> str:
    names = [p for p in inspect.signature(f).parameters.values() if p.name != "self"]
    return "(" + ", ".join(str(p).split(":")[0] for p in names) + ")"


def _put(path: Path, text: str) -> None:
    """Write only what changed, so that an unchanged page is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
