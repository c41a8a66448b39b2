"""Small charts as SVG. Everything that comes from the user goes through `escape`."""

import math

from markupsafe import Markup, escape

from coterie.palette import slot


def tag(name, body="", **attributes):
    """An SVG element with escaped attributes; ``class_`` becomes class, ``a_b`` becomes a-b."""
    parts = [f' {key.rstrip("_").replace("_", "-")}="{escape(v)}"' for key, v in attributes.items()]
    return Markup(f"<{name}{''.join(parts)}>{escape(body)}</{name}>")


def svg(width, height, body, title, class_="chart"):
    """A picture that scales with its column and has a name for screen readers."""
    return tag(
        "svg",
        tag("title", title) + body,
        viewBox=f"0 0 {width} {height}",
        class_=class_,
        role="img",
        aria_label=title,
        preserveAspectRatio="none" if class_ == "stretch" else "xMidYMid meet",
    )


def join(parts):
    return Markup("").join(parts)


def size_bar(sizes):
    """All clusters side by side, as wide as they are large; a click selects one."""
    total, x, parts = max(1, int(sum(sizes))), 0.0, []
    for j, size in enumerate(sizes):
        width = 1000 * int(size) / total
        if width > 0:
            name = f"cluster {j}: {int(size):,}"
            rect = tag(
                "rect",
                tag("title", name),
                x=round(x, 2),
                y=0,
                width=round(max(0.5, width - (2 if width > 8 else 0)), 2),
                height=28,
                class_=f"f{slot(j)} pick",
                data_group=j,
            )
            parts.append(rect)
        x += width
    return svg(1000, 28, join(parts), "Sizes of the clusters", "stretch")


def histogram(counts, title, slot_=None, width=150, height=36, ends=None):
    """Bars of equal width; `slot_` is the colour class, `ends` are words under both ends."""
    top, step, bars = max(1, max(counts)), width / len(counts), []
    for i, c in enumerate(counts):
        h = 0 if c == 0 else max(1.0, (height - 2) * c / top)
        bars.append(
            tag(
                "rect",
                x=round(i * step + 0.5, 2),
                y=round(height - h, 2),
                width=round(step - 1, 2),
                height=round(h, 2),
                class_="accent" if slot_ is None else f"f{slot_}",
            )
        )
    line = tag("line", x1=0, x2=width, y1=height, y2=height, class_="axis")
    if not ends:
        return svg(width, height + 1, join([*bars, line]), title, "spark")
    left = tag("text", ends[0], x=0, y=height + 13, class_="tiny")
    right = tag("text", ends[1], x=width, y=height + 13, class_="tiny", text_anchor="end")
    return svg(width, height + 16, join([*bars, line, left, right]), title, "hist")


def curve(values, title, phases=None, width=320, height=120, ends=()):
    """One line over epochs; `phases` is a list of (name, first index) drawn as dividers.

    `ends`: words below the first and the last value.
    """
    clean = [(i, float(v)) for i, v in enumerate(values) if v is not None and math.isfinite(v)]
    if not clean:
        return Markup("")
    low, high = min(v for _, v in clean), max(v for _, v in clean)
    span = (high - low) or 1.0
    last = max(1, len(values) - 1)
    x0, y0, w, h = 4, 8, width - 8, height - 16

    def at(i, v):
        return f"{x0 + w * i / last:.1f},{y0 + h * (1 - (v - low) / span):.1f}"

    parts = [tag("line", x1=x0, x2=x0 + w, y1=y0 + h, y2=y0 + h, class_="axis")]
    for name, first in (phases or [])[1:]:
        x = round(x0 + w * first / last, 1)
        parts.append(tag("line", x1=x, x2=x, y1=y0, y2=y0 + h, class_="divider"))
        parts.append(tag("text", name, x=x + 4, y=y0 + 9, class_="tiny"))
    points = " ".join(at(i, v) for i, v in clean)
    if len(clean) == 1:
        x, y = points.split(",")
        parts.append(tag("circle", cx=x, cy=y, r=3, class_="dot"))
    else:
        parts.append(tag("polyline", points=points, class_="line"))
    for words, x, anchor in zip(ends, (x0, x0 + w), ("start", "end")):
        parts.append(tag("text", words, x=x, y=height + 5, class_="tiny", text_anchor=anchor))
    return svg(width, height + 13 * bool(ends), join(parts), title)


def diverging(value, most, width=120, height=10):
    """A bar to the left (lower) or right (higher) of a middle line."""
    half = width / 2
    length = half * min(1.0, abs(value) / (most or 1.0))
    bar = tag(
        "rect",
        x=round(half if value >= 0 else half - length, 1),
        y=1,
        width=round(max(length, 1), 1),
        height=height - 2,
        class_="higher" if value >= 0 else "lower",
    )
    middle = tag("line", x1=half, x2=half, y1=0, y2=height, class_="axis")
    return svg(width, height, bar + middle, f"effect {value:+.1f}", "effect")


def strips(rows, low, high, width=360, row_height=26):
    """One line of dots per row with its median marked: [(name, [values]), ...]."""
    span = (high - low) or 1.0
    parts = []
    for r, (name, values) in enumerate(rows):
        y = r * row_height + row_height / 2
        parts.append(tag("line", x1=0, x2=width, y1=y, y2=y, class_="axis"))
        for v in values:
            x = round(6 + (width - 12) * (v - low) / span, 1)
            parts.append(
                tag("circle", tag("title", f"{name}: {v:.3f}"), cx=x, cy=y, r=5, class_="dot")
            )
        middle = sorted(values)[len(values) // 2] if values else None
        if middle is not None and len(values) > 2:
            x = round(6 + (width - 12) * (middle - low) / span, 1)
            parts.append(tag("line", x1=x, x2=x, y1=y - 10, y2=y + 10, class_="median"))
    return svg(width, row_height * len(rows), join(parts), "scores of each run", "strips")
