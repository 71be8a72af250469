"""An animated SVG picture: a game on a tree's longest branch, and the tree growing beside it."""

from __future__ import annotations

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import variable_pretty
from resgym.render.positions import picture_of
from resgym.render.shapes import picture_to_svg, svg_page
from resgym.trees.data import ChartTree
from resgym.trees.svg import FONT_ATTRIBUTES, draw_box, draw_edge, layout_outline
from resgym.trees.text import totals_text

SECONDS = 2.0
"""Of each move; the whole tree stays three times as long."""


def tree_to_growing_svg(tree: ChartTree, max_charts: int = 100) -> str:
    """The tree move by move, with the positions of its longest branch; it starts over at its end.

    The animation is CSS inside the file, so that it also runs as an image of a page. Subtrees
    beyond ``max_charts`` charts are folded into one box each.

    Raises:
        ValueError: ``max_charts`` is below 1, or the tree has neither 2 nor 3 axes.
    """
    check_integer("max_charts", max_charts, 1)
    boxes, right, bottom = layout_outline(tree, max_charts)
    names = [variable_pretty(name) for name in tree.variables]
    line = [tree.charts[-1]]
    while (parent := line[0].parent) is not None:
        line.insert(0, tree[parent])
    answers = [chart.axis for chart in line[1:]] + [None]
    pictures = [
        picture_of(chart.points, chart.axes or (), chart.depth, axis, names)
        for chart, axis in zip(line, answers, strict=True)
    ]
    width, height = pictures[0].width + right, max(float(pictures[0].height), bottom)
    parts = [f"<style>{_style(tree.depth)}</style>"]
    down = (height - pictures[0].height) / 2
    for chart, picture in zip(line, pictures, strict=True):
        drawn = picture_to_svg(picture)
        parts.append(f'<g class="at{chart.depth}" transform="translate(0 {down:.0f})">{drawn}</g>')
    down = (height - bottom) / 2
    parts.append(f'<g transform="translate({pictures[0].width} {down:.0f})">')
    for draw in (draw_edge, lambda box: draw_box(tree, box)):
        parts += [f'<g class="from{box.chart.depth}">{draw(box)}</g>' for box in boxes]
    parts.append("</g>")
    return svg_page(width, height, f"{tree.title}: {totals_text(tree)}", parts, FONT_ATTRIBUTES)


def _style(depth: int) -> str:
    """What appears with each depth (``from``), and what is seen at that depth alone (``at``)."""
    frames = depth + 3
    rules = []
    for move in range(depth + 1):
        start, end = 100 * move / frames, 100 * (move + 1) / frames
        hidden = f"0%,{max(start - 0.1, 0):.1f}%{{opacity:0}}" if move else ""
        gone = f"{end:.1f}%{{opacity:1}}{end + 0.1:.1f}%,100%{{opacity:0}}"
        shown = f"{start:.1f}%{{opacity:1}}"
        stays = "100%{opacity:1}"
        rules += [
            f"@keyframes from{move}{{{hidden}{shown}{stays}}}",
            f"@keyframes at{move}{{{hidden}{shown}{gone if move < depth else stays}}}",
        ]
        rules += [
            f".{kind}{move}{{animation:{kind}{move} {SECONDS * frames:g}s infinite}}"
            for kind in ("from", "at")
        ]
    # Who wants no motion sees the end.
    return "".join(rules) + "@media (prefers-reduced-motion){g{animation:none !important}}"
