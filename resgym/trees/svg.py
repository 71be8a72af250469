"""A tree as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, script_runs
from resgym.trees.data import Chart, ResolutionTree
from resgym.trees.layout import (
    FONT_SIZE,
    LINE,
    MARGIN,
    SCRIPT_SIZE,
    Box,
    layout_tree,
    text_width,
)

__all__ = ["HEADER", "chart_box", "svg_frame", "svg_text", "totals_text", "tree_to_svg"]

HEADER = 52
TITLE_SIZE = 14
MIN_WIDTH = 420
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

# Fill and outline by state; told apart by the outline's style and the note too, not only by colour.
_COLOURS = {
    "open": ("#ffffff", "#5b6b7b"),
    "resolved": ("#e3f3e6", "#2e7d4f"),
    "smooth": ("#ddf1f5", "#1f7a8c"),
    "cut": ("#fbe5e1", "#b3402e"),
    "folded": ("#eef0f3", "#5b6b7b"),
}


def totals_text(tree: ResolutionTree) -> str:
    """``7 moves deep, 54 charts, 31 leaves``, with the number of cut branches if there are any."""
    text = (
        f"{_count(tree.depth, 'move')} deep, {_count(tree.num_nodes, 'chart')}, "
        f"{tree.num_leaves} {'leaf' if tree.num_leaves == 1 else 'leaves'}"
    )
    return text if tree.complete else f"{text}, {_count(tree.num_cut, 'branch', 'branches')} cut"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def tree_to_svg(tree: ResolutionTree, max_charts: int = 100) -> str:
    """SVG text of a tree.

    Args:
        tree: any tree.
        max_charts: subtrees are folded so that at most so many charts are shown.

    Raises:
        ValueError: ``max_charts`` is below 1.
    """
    check_integer("max_charts", max_charts, 1)
    layout = layout_tree(tree, max_charts)
    edges_left = _edge_starts(layout.boxes)
    parts = [line for box in layout.boxes for line in _edges(box, edges_left)]
    parts.extend(_box(box, tree) for box in layout.boxes)
    hidden = sum(box.hidden for box in layout.boxes)
    return svg_frame(tree, parts, layout.width, layout.height + HEADER, hidden)


def svg_frame(
    tree: ResolutionTree, parts: list[str], width: float, height: float, hidden: int
) -> str:
    """SVG text with title and totals above what is drawn.

    Args:
        tree: what is shown.
        parts: elements, whose origin is below the heading.
        width: of the parts, in pixels; the picture is as wide as its heading at least.
        height: of the picture, in pixels.
        hidden: number of charts that are folded.
    """
    totals = totals_text(tree)
    if hidden:
        totals += f"; {hidden} charts folded"
    width = max(width, text_width(totals) + 2 * MARGIN, MIN_WIDTH)
    title = tree.title
    while text_width(title, TITLE_SIZE) > width - 2 * MARGIN:
        title = title[:-2] + "…"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{escape(FONT)}" '
            f'font-size="{FONT_SIZE}" role="img">',
            f"<title>{escape(tree.title)}: {totals}</title>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            svg_text(title, MARGIN, 24, "#1c2733", TITLE_SIZE),
            svg_text(totals, MARGIN, 42, "#44505c"),
            f'<g transform="translate(0 {HEADER - 6})">',
            *parts,
            "</g></svg>",
        ]
    )


def _edge_starts(boxes: list[Box]) -> dict[int, float]:
    """Where the horizontal parts of the edges into each column begin."""
    right: dict[int, float] = {}
    for box in boxes:
        depth = box.chart.depth
        right[depth] = max(right.get(depth, 0.0), box.x + box.width)
    return {depth + 1: x + 12 for depth, x in right.items()}


def _edges(box: Box, starts: dict[int, float]) -> list[str]:
    """Elbows from a box to its children, with the moves above their last part."""
    parts = []
    for child in box.children:
        bend = starts[child.chart.depth]
        parts.append(
            f'<path d="M{box.x + box.width:.1f} {box.y:.1f}H{bend:.1f}V{child.y:.1f}'
            f'H{child.x:.1f}" fill="none" stroke="#9aa7b3" stroke-width="1.2"/>'
        )
        parts.append(svg_text(child.move, bend + 6, child.y - 5, "#33518a"))
    return parts


def svg_text(text: str, x: float, y: float, colour: str, size: float = FONT_SIZE) -> str:
    """A line of text; raised and lowered digits are set small, which reads better than theirs."""
    script = size * SCRIPT_SIZE / FONT_SIZE
    shift, runs = 0.0, []
    for kind, run in script_runs(text):
        wanted = {"base": 0.0, "super": -0.36, "sub": 0.2}[kind] * size
        small = "" if kind == "base" else f' font-size="{script:.1f}"'
        runs.append(f'<tspan dy="{wanted - shift:.1f}"{small}>{escape(run)}</tspan>')
        shift = wanted
    inside = escape(text) if len(runs) == 1 and not shift else "".join(runs)
    own = "" if size == FONT_SIZE else f' font-size="{size:g}" font-weight="bold"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{own} xml:space="preserve">{inside}</text>'
    )


def chart_box(
    tree: ResolutionTree,
    chart: Chart,
    place: tuple[float, float, float, float],
    hidden: int,
    texts: Sequence[str],
) -> str:
    """A chart in a frame of its state's colour; all monomials show when the mouse rests on it.

    Args:
        tree: of the chart.
        chart: what stands in the frame.
        place: left, top, width and height, in pixels.
        hidden: number of charts folded into it.
        texts: elements in the frame.
    """
    left, top, width, height = place
    fill, line = _COLOURS[_state(chart, hidden)]
    dashes = ' stroke-dasharray="5 3"' if hidden or chart.is_cut else ""
    monomials = escape(position_pretty(chart.points, tree.variables))
    return (
        f"<g><title>chart {chart.number}: {monomials}</title>"
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.2"{dashes}/>{"".join(texts)}</g>'
    )


def _state(chart: Chart, hidden: int) -> str:
    return "folded" if hidden else "cut" if chart.is_cut else chart.ending or "open"


def _box(box: Box, tree: ResolutionTree) -> str:
    top = box.y - box.height / 2
    texts = [
        svg_text(text, box.x + 7, top + 15 + row * LINE, "#1c2733")
        for row, text in enumerate(box.lines)
    ]
    if box.note:
        line = _COLOURS[_state(box.chart, box.hidden)][1]
        texts.append(svg_text(box.note, box.x + 7, top + 15 + len(box.lines) * LINE, line))
    return chart_box(tree, box.chart, (box.x, top, box.width, box.height), box.hidden, texts)
