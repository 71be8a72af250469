"""Resolution trees: their data, and the forms in which people and other programs read them."""

from __future__ import annotations

from resgym.trees.data import ChartTree
from resgym.trees.html import tree_to_html
from resgym.trees.svg import tree_to_svg
from resgym.trees.text import tree_to_dot, tree_to_text

__all__ = ["ResolutionTree"]


class ResolutionTree(ChartTree):
    """A `ChartTree` that writes itself; each method is the function of the same form."""

    to_text = tree_to_text
    to_dot = tree_to_dot
    to_svg = tree_to_svg
    to_html = tree_to_html
