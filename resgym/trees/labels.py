"""What is said of charts, and which are shown: the same in every form of a tree."""

from __future__ import annotations

from resgym.polynomials.monomials import position_pretty, variable_pretty
from resgym.trees.data import Chart, ChartTree

__all__ = [
    "chart_note",
    "chart_text",
    "ending_text",
    "folded_charts",
    "move_text",
    "subtree_sizes",
    "totals_text",
]


def totals_text(tree: ChartTree) -> str:
    """``7 moves deep, 54 charts, 31 leaves``, with the number of cut branches if there are any."""
    text = (
        f"{_count(tree.depth, 'move')} deep, {_count(tree.num_nodes, 'chart')}, "
        f"{tree.num_leaves} {'leaf' if tree.num_leaves == 1 else 'leaves'}"
    )
    return text if tree.complete else f"{text}, {_count(tree.num_cut, 'branch', 'branches')} cut"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def subtree_sizes(tree: ChartTree) -> list[int]:
    """Number of charts below every chart, itself included, in the order of the charts."""
    sizes = [1] * tree.num_nodes
    for chart in reversed(tree.charts):
        if chart.parent is not None:
            sizes[chart.parent - 1] += sizes[chart.number - 1]
    return sizes


def folded_charts(tree: ChartTree, max_charts: int) -> set[int]:
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


def move_text(tree: ChartTree, chart: Chart) -> str:
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


def chart_text(tree: ChartTree, chart: Chart) -> str:
    """Number and monomials in one line: ``2: x² + z⁵``."""
    return f"{chart.number}: {position_pretty(chart.points, tree.variables)}"


def chart_note(chart: Chart, hidden: int) -> str:
    """How a branch ends, or how many charts below are folded; may be empty."""
    return f"+ {hidden} charts folded" if hidden else ending_text(chart)
