"""Trees in words: charts, the outline for the terminal, Graphviz source."""

from __future__ import annotations

import json
from collections.abc import Iterator

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, variable_pretty
from resgym.render.positions import counted, format_axes
from resgym.trees.data import Chart, ChartTree

ENDINGS = {
    "depth": "cut: depth limit",
    "size": "cut: size limit",
    "overflow": "cut: exponents too large",
    "smooth": "smooth",
    "below_one": "below 1",
    "no_contribution": "no contribution",
}
"""What is said of a branch that ends before one monomial is left."""


def totals_text(tree: ChartTree) -> str:
    """Format totals: ``7 moves deep, 54 charts, 31 leaves``, and the number of cut branches."""
    text = (
        f"{counted(tree.depth, 'move')} deep, {counted(tree.num_nodes, 'chart')}, "
        f"{counted(tree.num_leaves, 'leaf', 'leaves')}"
    )
    return text if tree.complete else f"{text}, {counted(tree.num_cut, 'branch', 'branches')} cut"


def outline(tree: ChartTree, max_charts: int) -> Iterator[tuple[Chart, int, str]]:
    """The charts of an outline from its top to its bottom, at most this many.

    Charts are opened level by level as long as all their children fit.

    Yields:
        A chart, how many charts below it are folded, and its line: ``x: [2] x² + z⁵   blow up
        {x, z}``, with the move that leads there, its number, its monomials, and what comes next.
    """
    check_integer("max_charts", max_charts, 1)
    below = dict.fromkeys(range(1, tree.num_nodes + 1), 0)
    for chart in reversed(tree.charts[1:]):
        below[chart.parent or 0] += 1 + below[chart.number]
    folded = {1: 0}
    for chart in tree:
        if chart.number not in folded:
            continue
        if len(folded) + len(chart.children) > max_charts:
            folded[chart.number] = below[chart.number]
        else:
            folded |= dict.fromkeys(chart.children, 0)
    names = [variable_pretty(name) for name in tree.variables]
    stack = [tree.root]
    while stack:
        chart = stack.pop()
        hidden = folded[chart.number]
        line = "" if chart.axis is None else f"{names[chart.axis]}: "
        line += f"[{chart.number}] {position_pretty(chart.points, tree.variables)}"
        if hidden:
            line += f"   (+ {hidden} charts folded)"
        elif chart.axes is not None:
            line += f"   blow up {format_axes(chart.axes, names)}"
        elif note := ENDINGS.get(chart.ending or ""):
            line += f"   ({note})"
        yield chart, hidden, line
        if not hidden:
            stack += [tree[child] for child in reversed(chart.children)]


def tree_to_text(tree: ChartTree, max_charts: int = 200) -> str:
    """An outline: one line a chart; subtrees are folded so that this many are shown at most."""
    lines = [tree.title, totals_text(tree), ""] if tree.title else [totals_text(tree), ""]
    below = {1: ""}  # what stands before the children of a chart
    for chart, _, line in outline(tree, max_charts):
        if chart.parent is not None:
            last = chart.number == tree[chart.parent].children[-1]
            branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
            before = below[chart.parent]
            line, below[chart.number] = before + branch + line, before + bar
        lines.append(line)
    return "\n".join(lines)


def tree_to_dot(tree: ChartTree) -> str:
    """Return Graphviz source of the whole tree, one node per chart; ``dot -Tsvg`` draws it."""
    quoted = json.JSONEncoder(ensure_ascii=False).encode
    lines = [
        "digraph resolution {",
        f"  label={quoted(f'{tree.title}: {totals_text(tree)}')};",
        '  node [shape=box, style=rounded, fontname="monospace"];',
    ]
    for chart, _, line in outline(tree, tree.num_nodes):
        colour = "" if chart.ending is None else ", color=" + ("red" if chart.is_cut else "green")
        lines.append(f"  c{chart.number} [label={quoted(line)}{colour}];")
        lines += [f"  c{chart.number} -> c{child};" for child in chart.children]
    return "\n".join([*lines, "}", ""])
