"""A tree as an SVG picture."""

from __future__ import annotations

from html import escape
from typing import Literal

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, script_runs
from resgym.render.shapes import svg_page
from resgym.trees.data import ChartTree
from resgym.trees.labels import totals_text
from resgym.trees.layout import (
    FONT_SIZE,
    LINE,
    MARGIN,
    SCRIPT_SIZE,
    Box,
    layout_outline,
    layout_tree,
    text_width,
)

__all__ = ["tree_to_svg"]

HEADER = 52
TITLE_SIZE = 14
MIN_WIDTH = 420
FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
INK = "#1c2733"
MOVE = "#33518a"

# Fill and outline by state; told apart by the outline's style and the note too, not only by colour.
_COLOURS = {
    "open": ("#ffffff", "#5b6b7b"),
    "resolved": ("#e3f3e6", "#2e7d4f"),
    "smooth": ("#ddf1f5", "#1f7a8c"),
    "cut": ("#fbe5e1", "#b3402e"),
    "folded": ("#eef0f3", "#5b6b7b"),
}


def tree_to_svg(
    tree: ChartTree, max_charts: int = 100, layout: Literal["tree", "outline"] = "tree"
) -> str:
    """A tree as an SVG picture; subtrees beyond ``max_charts`` charts are folded into one box each.

    Args:
        tree: any tree.
        max_charts: at most so many are shown.
        layout: ``tree`` grows from left to right; ``outline`` has a line a chart, indented by
            depth, which keeps deep trees narrow.

    Raises:
        ValueError: ``max_charts`` is below 1, or another layout.
    """
    check_integer("max_charts", max_charts, 1)
    if layout not in ("tree", "outline"):
        raise ValueError(f"layout must be 'tree' or 'outline', got {layout!r}")
    placed = (layout_tree if layout == "tree" else layout_outline)(tree, max_charts)
    totals = totals_text(tree)
    if hidden := sum(box.hidden for box in placed.boxes):
        totals += f"; {hidden} charts folded"
    # Title and totals stand above, and the picture is as wide as the totals at least.
    width = max(placed.width, text_width(totals) + 2 * MARGIN, MIN_WIDTH)
    title = tree.title
    while text_width(title, TITLE_SIZE) > width - 2 * MARGIN:
        title = title[:-2] + "…"
    parts = [
        _text(title, MARGIN, 24, INK, TITLE_SIZE),
        _text(totals, MARGIN, 42, "#44505c"),
        f'<g transform="translate(0 {HEADER - 6})">',
    ]
    for box in placed.boxes:
        if box.edge:
            line = 'fill="none" stroke="#9aa7b3" stroke-width="1.2"'
            parts += [f'<path d="{box.edge}" {line}/>', _text(box.move, *box.move_at, MOVE)]
    parts += [_box(tree, box) for box in placed.boxes]
    font = f'font-family="{escape(FONT)}" font-size="{FONT_SIZE}"'
    size = (width, placed.height + HEADER)
    return svg_page(*size, f"{tree.title}: {totals}", [*parts, "</g>"], font)


def _box(tree: ChartTree, box: Box) -> str:
    """A chart in a frame of its state's colour; all monomials show when the mouse rests on it."""
    state = "cut" if box.chart.is_cut else box.chart.ending or "open"
    fill, line = _COLOURS["folded" if box.hidden else state]
    dashes = ' stroke-dasharray="5 3"' if box.hidden or box.chart.is_cut else ""
    monomials = escape(position_pretty(box.chart.points, tree.variables))
    top = box.y - box.height / 2
    left, base = box.x + box.padding[0], top + box.padding[1] / 2 + 11.5
    texts = [
        _text(text, left, base + row * LINE, INK if row < len(box.lines) else line)
        for row, text in enumerate(box.texts)
    ]
    return (
        f"<g><title>chart {box.chart.number}: {monomials}</title>"
        f'<rect x="{box.x:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="4" fill="{fill}" stroke="{line}" stroke-width="1.2"{dashes}/>{"".join(texts)}</g>'
    )


def _text(text: str, x: float, y: float, colour: str, size: float = FONT_SIZE) -> str:
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
