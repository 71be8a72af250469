"""A tree as an SVG picture: a line a chart, indented by depth, which keeps deep trees narrow."""

from __future__ import annotations

from collections.abc import Sequence

from resgym.game.formulas import variable_pretty
from resgym.render.diagram import FAINT, INK, MUTED
from resgym.render.positions import HEIGHT, WIDTH, picture_of
from resgym.render.shapes import (
    Line,
    Picture,
    Polygon,
    Shape,
    Text,
    picture_to_svg,
    svg_page,
    svg_shapes,
    text_width,
)
from resgym.trees.data import Chart, ChartTree
from resgym.trees.text import outline, totals_text

MARGIN, HEADER, ROW, INDENT, SIZE = 16.0, 56.0, 24.0, 22.0, 12.0
LONGEST = 90
"""Characters of the title."""

SECONDS = 2.0
"""Seconds for each move; the whole tree stays three times as long."""

# Cut branches and folded ones say in words what they are, too.
_FILLS = {
    **dict.fromkeys(("resolved", "below_one"), "#e3f3e6"),
    **dict.fromkeys(("depth", "size", "overflow"), "#fbe5e1"),
    **dict.fromkeys(("smooth", "crossings"), "#ddf1f5"),
}

Row = tuple[Chart, list[Shape]]


def _rows(tree: ChartTree, max_charts: int, top: float, once: bool) -> tuple[list[Row], float]:
    """The shapes of each chart that is shown, and how far to the right they reach."""
    rows, right = list[Row](), 0.0
    middles: dict[int, float] = {}
    for line in outline(tree, max_charts, once):
        chart, text = line.chart, str(line).replace("   ", "\u2003")  # SVG joins spaces
        left, middle = MARGIN + INDENT * chart.depth, top + ROW * (len(rows) + 0.5)
        middles[chart.number] = middle
        shapes: list[Shape] = []
        if chart.parent is not None:
            corner = (left - INDENT + 8, middle)
            above = (corner[0], middles[chart.parent] + 10)
            shapes = [Line(above, corner, MUTED), Line(corner, (left, middle), MUTED)]
        end, low, high = left + text_width(text, SIZE) + 12, middle - 10, middle + 10
        plain = FAINT if line.hidden else "#fff0b3" if line.others else "#f4f6f8"
        fill = _FILLS.get(chart.ending or "", plain)
        box = Polygon(((left, low), (end, low), (end, high), (left, high)), fill)
        shapes += [box, Text((left + 6, middle + 4), text, INK, SIZE)]
        rows.append((chart, shapes))
        right = max(right, end)
    return rows, right + MARGIN


def tree_to_svg(tree: ChartTree, max_charts: int = 100) -> str:
    """A tree as an SVG picture; subtrees are folded so that this many charts are shown at most."""
    rows, right = _rows(tree, max_charts, HEADER, once=True)
    totals, title = totals_text(tree), tree.title[:LONGEST]
    shapes = [
        Text((MARGIN, 24), title, INK, 14, bold=True),
        Text((MARGIN, 44), totals, MUTED, SIZE),
        *(shape for _, shapes in rows for shape in shapes),
    ]
    width = max(right, text_width(title, 14) + 2 * MARGIN, text_width(totals, SIZE) + 2 * MARGIN)
    height = HEADER + ROW * len(rows) + MARGIN
    return picture_to_svg(Picture(int(width), int(height), tuple(shapes), f"{title}: {totals}"))


def tree_to_growing_svg(tree: ChartTree, max_charts: int = 100) -> str:
    """Animate the tree move by move beside the positions of its longest branch, in a loop.

    The animation is CSS inside the file, so that it also runs as an image of a page.

    Raises:
        ValueError: ``max_charts`` is below 1, or the tree has neither 2 nor 3 axes.
    """
    rows, right = _rows(tree, max_charts, MARGIN, once=False)
    names = [variable_pretty(name) for name in tree.variables]
    line = [tree.charts[-1]]
    while (parent := line[0].parent) is not None:
        line.insert(0, tree[parent])
    height = max(float(HEIGHT), ROW * len(rows) + 2 * MARGIN)
    parts = [f"<style>{_style(tree.depth)}</style>"]

    def add(kind: str, depth: int, shapes: Sequence[Shape], right: float, down: float) -> None:
        inside = "\n".join(svg_shapes(shapes))
        place = f'transform="translate({right:.0f} {down:.0f})"'
        parts.append(f'<g class="{kind}{depth}" {place}>{inside}</g>')

    for chart, answer in zip(line, [*(chart.axis for chart in line[1:]), None], strict=True):
        picture = picture_of(chart.points, chart.axes or (), chart.depth, answer, names)
        add("at", chart.depth, picture.shapes, 0, (height - HEIGHT) / 2)
    for chart, shapes in rows:
        add("from", chart.depth, shapes, WIDTH, (height - ROW * len(rows)) / 2 - MARGIN)
    return svg_page(WIDTH + right, height, f"{tree.title}: {totals_text(tree)}", parts)


def _style(depth: int) -> str:
    """Return CSS for what appears from a depth on (``from``), or only at that depth (``at``)."""
    frames = depth + 3
    rules = []
    for move in range(depth + 1):
        start, end = 100 * move / frames, 100 * (move + 1) / frames
        hidden = f"0%,{max(start - 0.1, 0):.1f}%{{opacity:0}}" if move else ""
        shown, stays = f"{start:.1f}%{{opacity:1}}", "100%{opacity:1}"
        gone = f"{end:.1f}%{{opacity:1}}{end + 0.1:.1f}%,100%{{opacity:0}}"
        for kind, last in (("from", stays), ("at", gone if move < depth else stays)):
            name = f"{kind}{move}"
            rules.append(f"@keyframes {name}{{{hidden}{shown}{last}}}")
            rules.append(f".{name}{{animation:{name} {SECONDS * frames:g}s infinite}}")
    # Readers who prefer no motion see the end.
    return "".join(rules) + "@media (prefers-reduced-motion){g{animation:none !important}}"
