"""Trees in words: charts, the outline for the terminal, Graphviz and LaTeX source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import sub
from typing import NamedTuple

from resgym.game.formulas import Formula, format_axes, latex, position_pretty, variable_pretty
from resgym.game.spec import check_integer
from resgym.render.positions import counted
from resgym.trees.data import Chart, ChartTree

ENDINGS = {
    "depth": "cut: depth limit",
    "size": "cut: size limit",
    "overflow": "cut: exponents too large",
    "smooth": "smooth",
    "crossings": "normal crossings",
    "below_one": "below 1",
    "no_contribution": "no contribution",
}
"""What is said of a branch that ends before one monomial is left."""

LONGEST = 60
"""Characters of a position; longer ones are cut after a monomial."""


class Line(NamedTuple):
    """A line of an outline.

    Attributes:
        chart: its chart.
        hidden: how many charts below it are not shown.
        like: number of the chart that has the same charts below it, if they are shown there only.
        parts: the move that leads there, its number, its monomials.
        note: what comes next.
        others: for each host that would play otherwise, its name and its set.
    """

    chart: Chart
    hidden: int
    like: int | None
    parts: list[str]
    note: list[str]
    others: list[str]

    def __str__(self) -> str:
        return "   ".join(" ".join(each) for each in self[3:] if each)


def totals_text(tree: ChartTree) -> str:
    """Format totals: ``7 moves deep, 54 charts, 31 leaves``, cut branches, and other hosts."""
    text = (
        f"{counted(tree.depth, 'move')} deep, {counted(tree.num_nodes, 'chart')}, "
        f"{counted(tree.num_leaves, 'leaf', 'leaves')}"
    )
    if not tree.complete:
        text += f", {counted(tree.num_cut, 'branch', 'branches')} cut"
    if tree.root.others:
        moves = [chart for chart in tree if chart.axes]
        counts = (
            f"{name} {sum(chart.others[index][1] != chart.axes for chart in moves)}"
            for index, (name, _) in enumerate(tree.root.others)
        )
        text += f"; other sets: {', '.join(counts)} of {len(moves)}"
    return text


def _same_below(tree: ChartTree) -> list[int]:
    """A number for each chart; charts with equal subtrees, up to monomial factors, share it."""
    numbers: dict[object, int] = {}
    found = [0] * tree.num_nodes
    for chart in reversed(tree.charts):
        lowest = tuple(map(min, zip(*chart.points, strict=True)))
        points = tuple(sorted(tuple(map(sub, point, lowest)) for point in chart.points))
        below = tuple(found[child - 1] for child in chart.children)
        key = points, chart.axes, chart.ending, chart.others, below
        found[chart.number - 1] = numbers.setdefault(key, len(numbers))
    return found


def outline(tree: ChartTree, max_charts: int, once: bool = True) -> Iterator[Line]:
    """The charts of an outline from its top to its bottom, at most this many.

    Charts are opened level by level as long as all their children fit. With ``once``, of equal
    subtrees the first is shown.
    """
    check_integer("max_charts", max_charts, 1)
    below = [0] * (tree.num_nodes + 1)
    for chart in reversed(tree.charts[1:]):
        below[chart.parent or 0] += 1 + below[chart.number]
    same = _same_below(tree) if once else range(tree.num_nodes)
    folded, first, like = {1: 0}, dict[int, int](), dict[int, int]()
    for chart in tree:
        if chart.number not in folded or not chart.children:
            continue
        key = same[chart.number - 1]
        if key in first:
            like[chart.number] = first[key]
        elif len(folded) + len(chart.children) <= max_charts:
            first[key] = chart.number
            folded |= dict.fromkeys(chart.children, 0)
            continue
        folded[chart.number] = below[chart.number]
    names = [variable_pretty(name) for name in tree.variables]
    stack = [tree.root]
    while stack:
        chart = stack.pop()
        hidden, equal = folded[chart.number], like.get(chart.number)
        parts = [f"[{chart.number}]", position_pretty(chart.points, tree.variables)]
        if len(parts[1]) > LONGEST:
            cut = Formula(f"{parts[1][:LONGEST].rpartition(' + ')[0]} + …")
            parts[1:] = [cut, f"({len(chart.points)} monomials)"]
        if chart.axis is not None:
            parts.insert(0, f"{names[chart.axis]}:")
        note: list[str] = []
        others: list[str] = []
        if hidden:
            where = f"like those below [{equal}]" if equal else "folded"
            note = [f"(+ {counted(hidden, 'chart')} {where})"]
        elif chart.axes is not None:
            note = ["blow up", format_axes(chart.axes, names)]
            for name, axes in chart.others:
                if axes != chart.axes:
                    others += ["≠", name, format_axes(axes, names)]
        elif text := ENDINGS.get(chart.ending or ""):
            note = [f"({text})"]
        yield Line(chart, hidden, equal, parts, note, others)
        if not hidden:
            stack += [tree[child] for child in reversed(chart.children)]


def tree_to_text(tree: ChartTree, max_charts: int = 200) -> str:
    """An outline: one line a chart; subtrees are folded so that this many are shown at most."""
    lines = [*filter(None, [tree.title]), totals_text(tree), ""]
    below = {1: ""}  # what stands before the children of a chart
    for line in outline(tree, max_charts):
        chart, before = line.chart, ""
        if chart.parent is not None:
            last = chart.number == tree[chart.parent].children[-1]
            branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
            above = below[chart.parent]
            before, below[chart.number] = above + branch, above + bar
        lines.append(f"{before}{line}")
    return "\n".join(lines)


def tree_to_dot(tree: ChartTree) -> str:
    """Return Graphviz source of the whole tree, one node per chart; ``dot -Tsvg`` draws it."""
    quoted = json.JSONEncoder(ensure_ascii=False).encode
    lines = [
        "digraph resolution {",
        f"  label={quoted(f'{tree.title}: {totals_text(tree)}')};",
        '  node [shape=box, style=rounded, fontname="monospace"];',
    ]
    for line in outline(tree, tree.num_nodes, once=False):
        chart = line.chart
        colour = "" if chart.ending is None else ", color=" + ("red" if chart.is_cut else "green")
        lines.append(f"  c{chart.number} [label={quoted(str(line))}{colour}];")
        lines += [f"  c{chart.number} -> c{child};" for child in chart.children]
    return "\n".join([*lines, "}", ""])


def tree_to_latex(tree: ChartTree, max_charts: int = 50) -> str:
    r"""An outline for LaTeX of a page at most; needs ``\usepackage[edges]{forest}``."""
    style = "folder, grow'=0, font=\\small, s sep=0pt, inner ysep=0.5pt, outer ysep=0pt"
    lines = [f"\\begin{{forest}}\n  for tree={{{style}}}"]
    depth = -1
    for line in outline(tree, max_charts):
        lines[-1] += "]" * (depth + 1 - line.chart.depth)
        depth = line.chart.depth
        text = r" \quad ".join(" ".join(map(latex, each)) for each in line[3:] if each)
        lines.append(f"{'  ' * depth}  [{{{text}}}")
    return "\n".join(lines) + "]" * (depth + 1) + "\n\\end{forest}\n"
