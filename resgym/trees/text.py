"""Trees in words: charts, the outline for the terminal, Graphviz source."""

from __future__ import annotations

import json

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, variable_pretty
from resgym.render.positions import counted
from resgym.trees.data import Chart, ChartTree


def totals_text(tree: ChartTree) -> str:
    """Format totals: ``7 moves deep, 54 charts, 31 leaves``, and the number of cut branches."""
    text = (
        f"{counted(tree.depth, 'move')} deep, {counted(tree.num_nodes, 'chart')}, "
        f"{counted(tree.num_leaves, 'leaf', 'leaves')}"
    )
    return text if tree.complete else f"{text}, {counted(tree.num_cut, 'branch', 'branches')} cut"


def charts_below(tree: ChartTree) -> dict[int, int]:
    """Return, for each chart number, how many charts are below it."""
    below = dict.fromkeys(range(1, tree.num_nodes + 1), 0)
    for chart in reversed(tree.charts):
        if chart.parent is not None:
            below[chart.parent] += 1 + below[chart.number]
    return below


def shown_charts(tree: ChartTree, max_charts: int) -> dict[int, int]:
    """Return, for each chart number to show, how many charts below it are folded into it.

    Charts are opened level by level while all their children fit into ``max_charts``.
    """
    below, shown = charts_below(tree), {1: 0}
    for chart in tree:
        if chart.number not in shown or not chart.children:
            continue
        if len(shown) + len(chart.children) <= max_charts:
            shown.update(dict.fromkeys(chart.children, 0))
        else:
            shown[chart.number] = below[chart.number]
    return shown


def move_text(tree: ChartTree, chart: Chart) -> str:
    """Format the move that leads to a chart: ``{x, y} → x``; empty for the root."""
    if chart.parent is None or chart.axis is None:
        return ""
    names = [variable_pretty(name) for name in tree.variables]
    axes = tree[chart.parent].axes or ()
    return f"{{{','.join(names[axis] for axis in axes)}}} → {names[chart.axis]}"


def ending_text(chart: Chart) -> str:
    """Describe a cut branch or a smooth end; empty otherwise."""
    return {
        "depth": "cut: depth limit",
        "size": "cut: size limit",
        "overflow": "cut: exponents too large",
        "smooth": "smooth",
        "below_one": "below 1",
        "no_contribution": "no contribution",
    }.get(chart.ending or "", "")


def chart_text(tree: ChartTree, chart: Chart) -> str:
    """Format number and monomials in one line: ``2: x² + z⁵``."""
    return f"{chart.number}: {position_pretty(chart.points, tree.variables)}"


def chart_note(chart: Chart, hidden: int) -> str:
    """Describe how a branch ends, or how many charts are folded; may be empty."""
    return f"+ {hidden} charts folded" if hidden else ending_text(chart)


def tree_to_text(tree: ChartTree, max_charts: int = 200) -> str:
    """Format an outline, one line per chart: its move, number, monomials and the host's next set.

    Subtrees are folded so that at most ``max_charts`` charts are shown.
    """
    check_integer("max_charts", max_charts, 1)
    shown = shown_charts(tree, max_charts)
    lines = [tree.title, totals_text(tree), ""] if tree.title else [totals_text(tree), ""]
    # (chart, what stands before it, what stands before its children)
    stack: list[tuple[Chart, str, str]] = [(tree.root, "", "")]
    while stack:
        chart, before, below = stack.pop()
        lines.append(before + _line(tree, chart, shown[chart.number]))
        if shown[chart.number]:
            continue
        for child in reversed(chart.children):
            last = child == chart.children[-1]
            branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
            stack.append((tree[child], below + branch, below + bar))
    return "\n".join(lines)


def _line(tree: ChartTree, chart: Chart, hidden: int) -> str:
    text = ""
    if chart.axis is not None:
        text = f"{variable_pretty(tree.variables[chart.axis])}: "
    text += f"[{chart.number}] {position_pretty(chart.points, tree.variables)}"
    if chart.axes is not None and not hidden:
        names = ", ".join(variable_pretty(tree.variables[axis]) for axis in chart.axes)
        return f"{text}   blow up {{{names}}}"
    note = chart_note(chart, hidden)
    return f"{text}   ({note})" if note else text


def tree_to_dot(tree: ChartTree) -> str:
    """Return Graphviz source of the whole tree, one node per chart; ``dot -Tsvg`` draws it."""
    quoted = json.JSONEncoder(ensure_ascii=False).encode
    heading = f"{tree.title}\n{totals_text(tree)}"
    lines = [
        "digraph resolution {",
        "  rankdir=LR;",
        f"  label={quoted(heading)};",
        '  node [shape=box, style=rounded, fontname="monospace"];',
        '  edge [fontname="monospace"];',
    ]
    for chart in tree:
        label = "\n".join(filter(None, [chart_text(tree, chart), ending_text(chart)]))
        style = ', style="rounded,dashed", color=red' if chart.is_cut else ", color=darkgreen"
        style = "" if chart.ending is None else style
        lines.append(f"  c{chart.number} [label={quoted(label)}{style}];")
    lines.extend(
        f"  c{chart.parent} -> c{chart.number} [label={quoted(move_text(tree, chart))}];"
        for chart in tree
        if chart.parent is not None
    )
    return "\n".join([*lines, "}", ""])
