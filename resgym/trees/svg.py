"""A tree as an SVG picture.

The layout ``tree`` grows from left to right. Columns are depths, boxes keep the order of the
branches, each subtree is packed as close to the one above as the outlines allow, and a parent is
centred on its children (Reingold and Tilford, "Tidier Drawings of Trees", IEEE TSE 7, 1981, turned
on its side, with boxes of different heights). The layout ``outline`` has one line per chart,
indented by depth, which keeps deep trees narrow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from textwrap import wrap
from typing import Literal

from resgym.game.spec import check_choice, check_integer
from resgym.polynomials.monomials import (
    monomial_pretty,
    position_pretty,
    script_runs,
    variable_pretty,
)
from resgym.render.positions import picture_of
from resgym.render.shapes import picture_to_svg, svg_page
from resgym.trees.data import Chart, ChartTree
from resgym.trees.text import chart_note, chart_text, move_text, shown_charts, totals_text

HEADER = 52
TITLE_SIZE = 14
MIN_WIDTH = 420
WIDEST = 1280
"""Widest tree, in pixels, that a screen shows as a whole with readable text."""

FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
FONT_SIZE = 12
FONT_ATTRIBUTES = f'font-family="{escape(FONT)}" font-size="{FONT_SIZE}"'
INK = "#1c2733"
MOVE = "#33518a"

# Fill and outline by state; the outline's style and the note tell them apart without colour.
_COLOURS = {
    "open": ("#ffffff", "#5b6b7b"),
    "resolved": ("#e3f3e6", "#2e7d4f"),
    "below_one": ("#e3f3e6", "#2e7d4f"),
    "no_contribution": ("#eef0f3", "#5b6b7b"),
    "smooth": ("#ddf1f5", "#1f7a8c"),
    "cut": ("#fbe5e1", "#b3402e"),
    "folded": ("#eef0f3", "#5b6b7b"),
}

SCRIPT_SIZE = 9
ADVANCE = 0.61
"""Width of a character of a monospace font, relative to its size."""

LINE = 16
GAP_SIBLINGS = 8
GAP_COUSINS = 18
EDGE = 34
BEND = 12
MARGIN = 16
LABEL_WIDTH = 44
LABEL_LINES = 4

SECONDS = 2.0
"""Seconds for each move; the whole tree stays three times as long."""

ROW = 24
INDENT = 22
LONGEST = 90
"""Characters of a chart's line in an outline; hovering shows all."""


def tree_to_svg(
    tree: ChartTree, max_charts: int = 100, layout: Literal["tree", "outline"] | None = None
) -> str:
    """Draw a tree as SVG; subtrees beyond ``max_charts`` charts are folded into one box each.

    The default ``layout`` is ``tree``, or ``outline`` if that would be wider than `WIDEST` pixels.

    Raises:
        ValueError: ``max_charts`` is below 1, or the layout is unknown.
    """
    check_integer("max_charts", max_charts, 1)
    layouts = {"tree": layout_tree, "outline": _layout_outline}
    place = layouts[check_choice("layout", layout or "tree", tuple(layouts))]
    boxes, right, height = place(tree, max_charts)
    if layout is None and right > WIDEST:
        boxes, right, height = _layout_outline(tree, max_charts)
    totals = totals_text(tree)
    if hidden := sum(box.hidden for box in boxes):
        totals += f"; {hidden} charts folded"
    # Title and totals stand above, and the picture is as wide as the totals at least.
    width = max(right, text_width(totals) + 2 * MARGIN, MIN_WIDTH)
    title = tree.title
    while text_width(title, TITLE_SIZE) > width - 2 * MARGIN:
        title = title[:-2] + "…"
    parts = [
        _text(title, MARGIN, 24, INK, TITLE_SIZE),
        _text(totals, MARGIN, 42, "#44505c"),
        f'<g transform="translate(0 {HEADER - 6})">',
    ]
    parts += [drawn for box in boxes if (drawn := _draw_edge(box))]
    parts += [_draw_box(tree, box) for box in boxes]
    parts.append("</g>")
    return svg_page(width, height + HEADER, f"{tree.title}: {totals}", parts, FONT_ATTRIBUTES)


def tree_to_growing_svg(tree: ChartTree, max_charts: int = 100) -> str:
    """Animate the tree move by move beside the positions of its longest branch, in a loop.

    The animation is CSS inside the file, so it also runs as an image in a page. Subtrees beyond
    ``max_charts`` charts are folded into one box each.

    Raises:
        ValueError: ``max_charts`` is below 1, or the tree has neither 2 nor 3 axes.
    """
    check_integer("max_charts", max_charts, 1)
    boxes, right, bottom = _layout_outline(tree, max_charts)
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
    for draw in (_draw_edge, lambda box: _draw_box(tree, box)):
        parts += [f'<g class="from{box.chart.depth}">{draw(box)}</g>' for box in boxes]
    parts.append("</g>")
    return svg_page(width, height, f"{tree.title}: {totals_text(tree)}", parts, FONT_ATTRIBUTES)


def _style(depth: int) -> str:
    """Return CSS for what appears from a depth on (``from``), or only at that depth (``at``)."""
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
    # Readers who prefer no motion see the end.
    return "".join(rules) + "@media (prefers-reduced-motion){g{animation:none !important}}"


def _draw_edge(box: Box) -> str:
    """Draw the edge that leads to a box, and its move; nothing at the root."""
    if not box.edge:
        return ""
    line = 'fill="none" stroke="#9aa7b3" stroke-width="1.2"'
    return f'<path d="{box.edge}" {line}/>\n{_text(box.move, *box.move_at, MOVE)}'


def _draw_box(tree: ChartTree, box: Box) -> str:
    """Draw a chart in a frame of its state's colour; hovering shows all monomials."""
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
    """Draw a line of text; raised and lowered digits are set small for legibility."""
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


@dataclass
class Box:
    """A chart in a picture.

    Attributes:
        hidden: number of charts folded into this box.
        note: last line: how the branch ends, or what is folded; may be empty.
        padding: pixels beside the text on each side, and above and below it in total.
        move, edge: label, and SVG path, of the edge that leads here; empty at the root.
        x, y: left edge and vertical middle, in pixels.
        move_at: left end of the move's baseline.
    """

    chart: Chart
    hidden: int
    lines: list[str]
    note: str
    padding: tuple[int, int]
    move: str
    children: list[Box] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    edge: str = ""
    move_at: tuple[float, float] = (0.0, 0.0)

    @property
    def texts(self) -> list[str]:
        """All lines."""
        return [*self.lines, self.note] if self.note else self.lines

    @property
    def width(self) -> float:
        """In pixels."""
        return max(map(text_width, self.texts)) + 2 * self.padding[0]

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.texts) * LINE + self.padding[1]


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Width in pixels, with raised and lowered digits in the smaller size."""
    script = size * SCRIPT_SIZE / FONT_SIZE
    return ADVANCE * sum(
        len(run) * (size if kind == "base" else script) for kind, run in script_runs(text)
    )


def _layout_outline(tree: ChartTree, max_charts: int) -> tuple[list[Box], float, float]:
    """Place the boxes of a tree below each other, at most ``max_charts``; see `layout_tree`."""
    shown = shown_charts(tree, max_charts)
    boxes: dict[int, Box] = {}
    stack: list[Chart] = [tree.root]
    while stack:
        chart = stack.pop()
        hidden = shown[chart.number]
        text, note = chart_text(tree, chart), chart_note(chart, hidden)
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        line = f"{text}   {note}" if note else text
        box = Box(chart, hidden, [line], "", (6, 4), move_text(tree, chart))
        box.x, box.y = float(MARGIN + INDENT * chart.depth), MARGIN + ROW * (len(boxes) + 0.5)
        if chart.parent is not None:
            # From below the left end of the parent's line, down and to the right.
            stem, top = box.x - INDENT + 8, boxes[chart.parent].y + LINE / 2 + 2
            box.edge = f"M{stem:.1f} {top:.1f}V{box.y:.1f}H{box.x:.1f}"
            box.move_at = (box.x + 4, box.y + 3.5)
            box.x += text_width(box.move) + 12
        boxes[chart.number] = box
        if not hidden:
            stack.extend(tree[child] for child in reversed(chart.children))
    right = max(box.x + box.width for box in boxes.values())
    return list(boxes.values()), right + MARGIN, MARGIN + ROW * len(boxes) + MARGIN


def _label_lines(tree: ChartTree, chart: Chart) -> list[str]:
    pieces = [monomial_pretty(point, tree.variables) for point in chart.points]
    # One can be longer than a line, in many variables with large exponents.
    pieces = [piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "…" for piece in pieces]
    lines = wrap(
        "\xa0+ ".join(pieces),  # a plus sign stays with the monomial before it
        LABEL_WIDTH,
        initial_indent=f"{chart.number}: ",
        subsequent_indent="   ",
        max_lines=LABEL_LINES,
        placeholder=f" … {len(pieces)} monomials",
        break_long_words=False,
    )
    return [line.replace("\xa0", " ") for line in lines]


def layout_tree(tree: ChartTree, max_charts: int) -> tuple[list[Box], float, float]:
    """Place the boxes of a tree from left to right, at most ``max_charts``.

    Returns:
        The boxes in the order of drawing, and the width and height that they cover in pixels.
    """
    boxes: dict[int, Box] = {}
    for number, hidden in sorted(shown_charts(tree, max_charts).items()):
        chart = tree[number]
        note, lines = chart_note(chart, hidden), _label_lines(tree, chart)
        box = Box(chart, hidden, lines, note, (7, 7), move_text(tree, chart))
        boxes[number] = box
        if chart.parent is not None:
            boxes[chart.parent].children.append(box)
    shown = list(boxes.values())
    bottom = _place_rows(shown)
    right = float(MARGIN)
    for depth, column in groupby(shown, key=lambda box: box.chart.depth):
        # Columns are as wide as their widest box, edges as long as their longest label.
        level = list(column)
        left = right + (max(text_width(box.move) for box in level) + EDGE if depth else 0.0)
        bend, right = right + BEND, left + max(box.width for box in level)
        for box in level:
            box.x = left
            if box.chart.parent is not None:
                # An elbow from the parent, with the move above its last part.
                parent = boxes[box.chart.parent]
                start = f"M{parent.x + parent.width:.1f} {parent.y:.1f}"
                box.edge = f"{start}H{bend:.1f}V{box.y:.1f}H{left:.1f}"
                box.move_at = (bend + 6, box.y - 5)
    return shown, right + MARGIN, bottom + MARGIN


def _place_rows(boxes: list[Box]) -> float:
    """Set y and return the lowest edge. Outlines are lists of (top, bottom) per column."""
    offsets: dict[int, float] = {}
    outlines: dict[int, list[tuple[float, float]]] = {}
    for box in reversed(boxes):
        merged: list[tuple[float, float]] = []
        places: list[float] = []
        for child in box.children:
            outline = outlines.pop(child.chart.number)
            place = 0.0
            for column, (above, below) in enumerate(zip(merged, outline, strict=False)):
                gap = GAP_COUSINS if column else GAP_SIBLINGS
                place = max(place, above[1] + gap - below[0])
            places.append(place)
            moved = [(top + place, bottom + place) for top, bottom in outline]
            merged = [
                (first[0], second[1]) for first, second in zip(merged, moved, strict=False)
            ] + (moved[len(merged) :] or merged[len(moved) :])
        middle = (places[0] + places[-1]) / 2 if places else 0.0
        for child, place in zip(box.children, places, strict=True):
            offsets[child.chart.number] = place - middle
        half = box.height / 2
        outlines[box.chart.number] = [
            (-half, half),
            *((top - middle, bottom - middle) for top, bottom in merged),
        ]
    root = boxes[0]
    outline = outlines[root.chart.number]
    root.y = MARGIN - min(top for top, _ in outline)
    for box in boxes:
        for child in box.children:
            child.y = box.y + offsets[child.chart.number]
    return root.y + max(bottom for _, bottom in outline)
