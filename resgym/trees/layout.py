"""Where the boxes of a tree picture go.

``layout_tree`` grows from left to right: columns are depths, boxes follow the order of the
branches, every subtree is packed as close to the one above as the outlines of both allow, and a
parent stands in the middle of its children (Reingold and Tilford, "Tidier Drawings of Trees", IEEE
TSE 7, 1981, turned on its side and with boxes of different heights). ``layout_outline`` has a line
a chart, indented by depth, which keeps deep trees narrow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from resgym.polynomials.monomials import monomial_pretty, script_runs
from resgym.trees.data import Chart, ChartTree
from resgym.trees.labels import chart_note, chart_text, folded_charts, move_text, subtree_sizes

__all__ = [
    "FONT_SIZE",
    "LINE",
    "MARGIN",
    "SCRIPT_SIZE",
    "Box",
    "Layout",
    "layout_outline",
    "layout_tree",
    "text_width",
]

FONT_SIZE = 12
SCRIPT_SIZE = 9
ADVANCE = 0.61
"""Width of a character of a monospace font, relative to its size."""

LINE = 16
GAP_SIBLINGS = 8
GAP_COUSINS = 18
EDGE = 34
BEND = 12
MARGIN = 16
LABEL_WIDTH = 40
LABEL_LINES = 4

ROW = 24
INDENT = 22
LONGEST = 90
"""Characters of a chart's line in an outline; all are shown when the mouse rests on it."""


@dataclass
class Box:
    """A chart in a picture.

    Attributes:
        chart: what is shown.
        hidden: number of charts folded into this box.
        lines: text.
        note: a last line on how the branch ends, or what is folded; may be empty.
        padding: space for the frame, in pixels: beside the text on each side, and above and below
            it together.
        move: label of the edge that leads here; empty at the root.
        children: boxes below.
        x, y: left edge and vertical middle, in pixels.
        edge: of the edge that leads here, as an SVG path; empty at the root.
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


@dataclass(frozen=True)
class Layout:
    """Boxes in the order of drawing, and the size of the picture in pixels."""

    boxes: list[Box]
    width: float
    height: float


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Width in pixels, with raised and lowered digits in the smaller size."""
    script = size * SCRIPT_SIZE / FONT_SIZE
    return ADVANCE * sum(
        len(run) * (size if kind == "base" else script) for kind, run in script_runs(text)
    )


def layout_outline(tree: ChartTree, max_charts: int) -> Layout:
    """Places the boxes of a tree below each other; see `layout_tree` for the arguments."""
    folded, sizes = folded_charts(tree, max_charts), subtree_sizes(tree)
    boxes: dict[int, Box] = {}
    stack: list[Chart] = [tree.root]
    while stack:
        chart = stack.pop()
        hidden = sizes[chart.number - 1] - 1 if chart.number in folded else 0
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
    return Layout(list(boxes.values()), right + MARGIN, MARGIN + ROW * len(boxes) + MARGIN)


def _label_lines(tree: ChartTree, chart: Chart) -> list[str]:
    """Number and monomials, broken into lines."""
    lines = [f"{chart.number}: "]
    last = len(chart.points) - 1
    for place, point in enumerate(chart.points):
        piece = monomial_pretty(point, tree.variables) + (" + " if place < last else "")
        empty = place == 0
        if not empty and len(lines[-1]) + len(piece.rstrip(" +")) > LABEL_WIDTH:
            lines.append("   ")
        lines[-1] += piece
    if len(lines) > LABEL_LINES:
        lines = [*lines[: LABEL_LINES - 1], f"   … {len(chart.points)} monomials"]
    # A single monomial can be longer than a line in many variables with large exponents.
    longest = 2 * LABEL_WIDTH
    return [
        line.rstrip() if len(line.rstrip()) <= longest else line[: longest - 1] + "…"
        for line in lines
    ]


def layout_tree(tree: ChartTree, max_charts: int) -> Layout:
    """Places the boxes of a tree from left to right.

    Args:
        tree: any tree.
        max_charts: subtrees are folded so that at most so many boxes are shown.
    """
    folded, sizes = folded_charts(tree, max_charts), subtree_sizes(tree)
    boxes: dict[int, Box] = {}
    for chart in tree:
        parent = None if chart.parent is None else boxes.get(chart.parent)
        if chart.parent is not None and (parent is None or chart.parent in folded):
            continue
        hidden = sizes[chart.number - 1] - 1 if chart.number in folded else 0
        note, lines = chart_note(chart, hidden), _label_lines(tree, chart)
        box = Box(chart, hidden, lines, note, (7, 7), move_text(tree, chart))
        boxes[chart.number] = box
        if parent is not None:
            parent.children.append(box)
    shown = list(boxes.values())
    right = _place_columns(shown)
    bottom = _place_rows(shown)
    ends: dict[int, float] = {}
    for box in shown:
        ends[box.chart.depth] = max(ends.get(box.chart.depth, 0.0), box.x + box.width)
    for box in shown:
        # An elbow to each child, with the move above its last part.
        bend = ends[box.chart.depth] + BEND
        for child in box.children:
            end = box.x + box.width
            child.edge = f"M{end:.1f} {box.y:.1f}H{bend:.1f}V{child.y:.1f}H{child.x:.1f}"
            child.move_at = (bend + 6, child.y - 5)
    return Layout(shown, right + MARGIN, bottom + MARGIN)


def _place_columns(boxes: list[Box]) -> float:
    """Sets x: columns as wide as their widest box, edges as long as their longest label."""
    left = float(MARGIN)
    for depth, column in groupby(boxes, key=lambda box: box.chart.depth):
        level = list(column)
        left += max(text_width(box.move) for box in level) + EDGE if depth else 0.0
        for box in level:
            box.x = left
        left += max(box.width for box in level)
    return left


def _place_rows(boxes: list[Box]) -> float:
    """Sets y and returns the lowest edge. Outlines are lists of (top, bottom) per column."""
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
