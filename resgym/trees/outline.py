"""A tree as an SVG outline: a line a chart, indented by depth. Deep trees stay narrow this way."""

from __future__ import annotations

from resgym.game.spec import check_integer
from resgym.trees.data import Chart, ResolutionTree
from resgym.trees.layout import (
    LINE,
    MARGIN,
    chart_note,
    chart_text,
    folded_charts,
    move_text,
    subtree_sizes,
    text_width,
)
from resgym.trees.svg import HEADER, chart_box, svg_frame, svg_text

__all__ = ["tree_to_outline_svg"]

ROW = 24
INDENT = 22
PADDING = 6
LONGEST = 90
"""Characters of a chart's text; the whole of it is shown when the mouse rests on it."""


def tree_to_outline_svg(tree: ResolutionTree, max_charts: int = 100) -> str:
    """SVG text of a tree as an outline.

    Args:
        tree: any tree.
        max_charts: subtrees are folded so that at most so many charts are shown.

    Raises:
        ValueError: ``max_charts`` is below 1.
    """
    check_integer("max_charts", max_charts, 1)
    folded, sizes = folded_charts(tree, max_charts), subtree_sizes(tree)
    lines: list[str] = []
    boxes: list[str] = []
    right, hidden = 0.0, 0
    middles: dict[int, float] = {}
    stack: list[Chart] = [tree.root]
    while stack:
        chart = stack.pop()
        y = MARGIN + ROW * (len(middles) + 0.5)
        middles[chart.number] = y
        left = float(MARGIN + INDENT * chart.depth)
        if chart.parent is not None:
            # From below the left end of the parent's line, down and to the right.
            stem = left - INDENT + 8
            top = middles[chart.parent] + LINE / 2 + 2
            lines.append(
                f'<path d="M{stem:.1f} {top:.1f}V{y:.1f}H{left:.1f}" fill="none" '
                'stroke="#9aa7b3" stroke-width="1.2"/>'
            )
            move = move_text(tree, chart)
            lines.append(svg_text(move, left + 4, y + 4, "#33518a"))
            left += text_width(move) + 12
        below = sizes[chart.number - 1] - 1 if chart.number in folded else 0
        hidden += below
        text, note = _clipped(chart_text(tree, chart)), chart_note(chart, below)
        shown = f"{text}   {note}" if note else text
        width = text_width(shown) + 2 * PADDING
        place = (left, y - ROW / 2 + 2, width, ROW - 4.0)
        inside = svg_text(shown, left + PADDING, y + 4, "#1c2733")
        boxes.append(chart_box(tree, chart, place, below, [inside]))
        right = max(right, left + width)
        if not below:
            stack.extend(tree[child] for child in reversed(chart.children))
    height = MARGIN + ROW * len(middles) + MARGIN + HEADER
    return svg_frame(tree, [*lines, *boxes], right + MARGIN, height, hidden)


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
