"""Where the boxes of a tree picture go: folding, labels and a tidy layout from left to right.

Columns are depths. Within a column boxes follow the order of the branches, every subtree is packed
as close to the one above as the outlines of both allow, and a parent stands in the middle of its
children (Reingold and Tilford, "Tidier Drawings of Trees", IEEE TSE 7, 1981, turned on its side and
with boxes of different heights).
"""

from __future__ import annotations

from dataclasses import dataclass

from resgym.polynomials.monomials import (
    monomial_pretty,
    position_pretty,
    script_runs,
    variable_pretty,
)
from resgym.trees.data import Chart, ResolutionTree

__all__ = [
    "FONT_SIZE",
    "LINE",
    "MARGIN",
    "SCRIPT_SIZE",
    "Box",
    "Layout",
    "chart_note",
    "chart_text",
    "ending_text",
    "folded_charts",
    "layout_tree",
    "move_text",
    "subtree_sizes",
    "text_width",
]

FONT_SIZE = 12
SCRIPT_SIZE = 9
ADVANCE = 0.61
"""Width of a character of a monospace font, relative to its size."""

LINE = 16
PADDING = 7
GAP_SIBLINGS = 8
GAP_COUSINS = 18
EDGE = 34
MARGIN = 16
LABEL_WIDTH = 40
LABEL_LINES = 4


@dataclass
class Box:
    """A chart in a picture.

    Attributes:
        chart: what is shown.
        lines: text, the first with the number.
        note: how the branch ends, or what is folded; may be empty.
        move: label of the edge that leads here; empty at the root.
        hidden: number of charts folded into this box.
        x, y: left edge and vertical middle, in pixels.
        width, height: size in pixels.
        children: boxes to the right.
    """

    chart: Chart
    lines: list[str]
    note: str
    move: str
    hidden: int
    children: list[Box]
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True)
class Layout:
    """Boxes in the order of their charts, and the size of the picture in pixels."""

    boxes: list[Box]
    width: float
    height: float


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Width in pixels, with raised and lowered digits in the smaller size."""
    script = size * SCRIPT_SIZE / FONT_SIZE
    return ADVANCE * sum(
        len(run) * (size if kind == "base" else script) for kind, run in script_runs(text)
    )


def subtree_sizes(tree: ResolutionTree) -> list[int]:
    """Number of charts below every chart, itself included, in the order of the charts."""
    sizes = [1] * tree.num_nodes
    for chart in reversed(tree.charts):
        if chart.parent is not None:
            sizes[chart.parent - 1] += sizes[chart.number - 1]
    return sizes


def folded_charts(tree: ResolutionTree, max_charts: int) -> set[int]:
    """Numbers of the charts whose children are not shown, so that few enough charts are.

    Charts are opened level by level as long as all their children fit.
    """
    folded = set()
    shown, visible = 1, {1}
    for chart in tree:
        if chart.number not in visible or not chart.children:
            continue
        if shown + len(chart.children) <= max_charts:
            shown += len(chart.children)
            visible.update(chart.children)
        else:
            folded.add(chart.number)
    return folded


def move_text(tree: ResolutionTree, chart: Chart) -> str:
    """The move that leads to a chart: ``{x, y} → x``; empty for the root."""
    if chart.parent is None or chart.axis is None:
        return ""
    names = [variable_pretty(name) for name in tree.variables]
    axes = tree[chart.parent].axes or ()
    return f"{{{','.join(names[axis] for axis in axes)}}} → {names[chart.axis]}"


def ending_text(chart: Chart) -> str:
    """What a cut branch or a smooth end says; empty otherwise."""
    return {
        "depth": "cut: depth limit",
        "size": "cut: size limit",
        "overflow": "cut: exponents too large",
        "smooth": "smooth",
    }.get(chart.ending or "", "")


def chart_text(tree: ResolutionTree, chart: Chart) -> str:
    """Number and monomials in one line: ``2: x² + z⁵``."""
    return f"{chart.number}: {position_pretty(chart.points, tree.variables)}"


def chart_note(chart: Chart, hidden: int) -> str:
    """How a branch ends, or how many charts below are folded; may be empty."""
    return f"+ {hidden} charts folded" if hidden else ending_text(chart)


def _label_lines(tree: ResolutionTree, chart: Chart) -> list[str]:
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


def layout_tree(tree: ResolutionTree, max_charts: int) -> Layout:
    """Places the boxes of a tree.

    Args:
        tree: any tree.
        max_charts: subtrees are folded so that at most so many boxes are shown.
    """
    folded = folded_charts(tree, max_charts)
    sizes = subtree_sizes(tree)
    boxes: dict[int, Box] = {}
    for chart in tree:
        parent = None if chart.parent is None else boxes.get(chart.parent)
        if chart.parent is not None and (parent is None or chart.parent in folded):
            continue
        hidden = sizes[chart.number - 1] - 1 if chart.number in folded else 0
        note = chart_note(chart, hidden)
        lines = _label_lines(tree, chart)
        box = Box(chart, lines, note, move_text(tree, chart), hidden, [])
        texts = [*lines, note] if note else lines
        box.width = max(map(text_width, texts)) + 2 * PADDING
        box.height = len(texts) * LINE + PADDING
        boxes[chart.number] = box
        if parent is not None:
            parent.children.append(box)
    shown = list(boxes.values())
    right = _place_columns(shown)
    bottom = _place_rows(shown)
    return Layout(shown, right + MARGIN, bottom + MARGIN)


def _place_columns(boxes: list[Box]) -> float:
    """Sets x: columns as wide as their widest box, edges as long as their longest label."""
    columns = boxes[-1].chart.depth + 1
    widths = [0.0] * columns
    edges = [0.0] * columns
    for box in boxes:
        depth = box.chart.depth
        widths[depth] = max(widths[depth], box.width)
        edges[depth] = max(edges[depth], text_width(box.move))
    left = float(MARGIN)
    lefts = []
    for depth in range(columns):
        left += edges[depth] + EDGE if depth else 0.0
        lefts.append(left)
        left += widths[depth]
    for box in boxes:
        box.x = lefts[box.chart.depth]
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
