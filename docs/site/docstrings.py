"""Docstrings are plain text with code in backticks: stars and bars in formulas are no markup."""

import re

CODE = re.compile(r"(``.+?``|`.+?`)")


def escape(line: str) -> str:
    parts = CODE.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            part = re.sub(r"([*|])", r"\\\1", part)
            part = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", part)
            # letters right after code, as in `Path`s
            parts[i] = "\\ " + part if i and part[:1].isalnum() else part
    return "".join(parts)


def process(app, what, name, obj, options, lines):
    in_code = False
    for i, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            in_code = True
        elif not line.strip():
            in_code = False
        if not in_code and not re.match(r"\s*(:\w|\.\. )", line):
            lines[i] = escape(line)


def setup(app):
    # before napoleon, which writes markup of its own
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
