"""A tree as an outline for the terminal, and as Graphviz source."""

from __future__ import annotations

from resgym.game.spec import check_integer
from resgym.polynomials.monomials import position_pretty, variable_pretty
from resgym.trees.data import Chart, ChartTree
from resgym.trees.labels import (
    ending_text,
    folded_charts,
    move_text,
    subtree_sizes,
    totals_text,
)

__all__ = ["tree_to_dot", "tree_to_text"]


def tree_to_text(tree: ChartTree, max_charts: int = 200) -> str:
    """An outline: one line a chart, with its move, number, monomials and the host's next set.

    Args:
        tree: any tree.
        max_charts: subtrees are folded so that at most so many charts are shown.
    """
    check_integer("max_charts", max_charts, 1)
    folded, sizes = folded_charts(tree, max_charts), subtree_sizes(tree)
    lines = [tree.title, totals_text(tree), ""] if tree.title else [totals_text(tree), ""]
    # (chart, what stands before it, what stands before its children)
    stack: list[tuple[Chart, str, str]] = [(tree.root, "", "")]
    while stack:
        chart, before, below = stack.pop()
        lines.append(before + _line(tree, chart, sizes[chart.number - 1] - 1, folded))
        if chart.number in folded:
            continue
        for child in reversed(chart.children):
            last = child == chart.children[-1]
            stack.append(
                (
                    tree[child],
                    below + ("└─ " if last else "├─ "),
                    below + ("   " if last else "│  "),
                )
            )
    return "\n".join(lines)


def _line(tree: ChartTree, chart: Chart, below: int, folded: set[int]) -> str:
    text = ""
    if chart.axis is not None:
        text = f"{variable_pretty(tree.variables[chart.axis])}: "
    text += f"[{chart.number}] {position_pretty(chart.points, tree.variables)}"
    if chart.number in folded:
        return f"{text}   (+ {below} charts folded)"
    if chart.axes is not None:
        names = ", ".join(variable_pretty(tree.variables[axis]) for axis in chart.axes)
        return f"{text}   blow up {{{names}}}"
    note = ending_text(chart)
    return f"{text}   ({note})" if note else text


def tree_to_dot(tree: ChartTree) -> str:
    """Graphviz source of the whole tree, one node a chart; ``dot -Tsvg`` draws it.

    Args:
        tree: any tree.
    """
    heading = f"{tree.title}\n{totals_text(tree)}"
    lines = [
        "digraph resolution {",
        "  rankdir=LR;",
        f"  label={_quoted(heading)};",
        '  node [shape=box, style=rounded, fontname="monospace"];',
        '  edge [fontname="monospace"];',
    ]
    for chart in tree:
        label = f"{chart.number}: {position_pretty(chart.points, tree.variables)}"
        note = ending_text(chart)
        label += f"\n{note}" if note else ""
        style = ""
        if chart.is_cut:
            style = ', style="rounded,dashed", color=red'
        elif chart.ending is not None:
            style = ", color=darkgreen"
        lines.append(f"  c{chart.number} [label={_quoted(label)}{style}];")
    lines.extend(
        f"  c{chart.parent} -> c{chart.number} [label={_quoted(move_text(tree, chart))}];"
        for chart in tree
        if chart.parent is not None
    )
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
