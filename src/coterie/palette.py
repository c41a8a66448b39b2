"""Twenty colours that stay apart for readers with any of the three colour deficiencies.

The first nine follow Okabe and Ito; the rest were searched for so that every pair keeps an OKLab
distance of at least 0.06 as seen normally and with protanopia, deuteranopia and tritanopia
(Machado et al. 2009). `tests/test_palette.py` holds that. Past twenty the colours come
round again, so the page never relies on colour alone: every group also carries its number.
"""

PALETTE = [
    "#0f6fc6",
    "#e69f00",
    "#009e73",
    "#d4511e",
    "#c46bb0",
    "#56b4e9",
    "#d9cb3c",
    "#6a3d9a",
    "#8c2f39",
    "#9aa0a6",
    "#78e3f2",
    "#bbdca8",
    "#8878fc",
    "#855791",
    "#b8b287",
    "#a8400c",
    "#484a6a",
    "#8dc4c9",
    "#ea5f67",
    "#9d555a",
]


def color(i: int) -> str:
    """The colour of group `i`."""
    return PALETTE[i % len(PALETTE)]


def slot(i: int) -> int:
    """The position of group `i`'s colour; CSS classes ``f0`` to ``f19`` are named after it."""
    return int(i) % len(PALETTE)


def css() -> str:
    """Fill and background classes: the page allows no inline styles, so colours are classes."""
    return "".join(
        f".f{i}{{fill:{c}}}.b{i}{{background:{c}}}.l{i}{{border-color:{c}}}"
        for i, c in enumerate(PALETTE)
    )
