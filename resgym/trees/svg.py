"""A tree as an SVG picture: a line a chart, indented by depth, which keeps deep trees narrow."""

from __future__ import annotations

from resgym.render.diagram import FAINT, INK, MUTED
from resgym.render.shapes import (
    Line,
    Picture,
    Polygon,
    Shape,
    Text,
    picture_to_svg,
    text_width,
)
from resgym.trees.data import ChartTree
from resgym.trees.text import outline, totals_text

MARGIN, HEADER, ROW, INDENT, SIZE = 16.0, 56.0, 24.0, 22.0, 12.0
LONGEST = 90
"""Characters of the title."""

# Cut branches and folded ones say in words what they are, too.
_FILLS = {
    **dict.fromkeys(("resolved", "below_one"), "#e3f3e6"),
    **dict.fromkeys(("depth", "size", "overflow"), "#fbe5e1"),
    **dict.fromkeys(("smooth", "crossings"), "#ddf1f5"),
}


def tree_to_svg(tree: ChartTree, max_charts: int = 100) -> str:
    """A tree as an SVG picture; subtrees are folded so that this many charts are shown at most."""
    totals, title = totals_text(tree), tree.title[:LONGEST]
    shapes: list[Shape] = [
        Text((MARGIN, 24), title, INK, 14, bold=True),
        Text((MARGIN, 44), totals, MUTED, SIZE),
    ]
    right = MARGIN + max(text_width(title, 14), text_width(totals, SIZE))
    bottom, middles = HEADER, dict[int, float]()
    for line in outline(tree, max_charts):
        chart, text = line.chart, str(line).replace("   ", "\u2003")  # SVG joins spaces
        left, middle = MARGIN + INDENT * chart.depth, bottom + ROW / 2
        middles[chart.number] = middle
        if chart.parent is not None:
            corner = (left - INDENT + 8, middle)
            above = (corner[0], middles[chart.parent] + 10)
            shapes += [Line(above, corner, MUTED), Line(corner, (left, middle), MUTED)]
        end, low, high = left + text_width(text, SIZE) + 12, middle - 10, middle + 10
        plain = FAINT if line.hidden else "#fff0b3" if line.others else "#f4f6f8"
        fill = _FILLS.get(chart.ending or "", plain)
        box = Polygon(((left, low), (end, low), (end, high), (left, high)), fill)
        shapes += [box, Text((left + 6, middle + 4), text, INK, SIZE)]
        right, bottom = max(right, end), bottom + ROW
    size = int(right + MARGIN), int(bottom + MARGIN)
    return picture_to_svg(Picture(*size, tuple(shapes), f"{title}: {totals}"))
