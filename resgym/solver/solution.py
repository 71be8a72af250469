"""What a solver has proved, and the hosts and trees that show it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from resgym.game.exact import OrderedRule, Position, moved, search_actions
from resgym.game.spec import Axes, GameSpec
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import Goal, Objective, Points
from resgym.texts import Data, Table, counted
from resgym.trees.growth import Choose, ResolutionTree, Respond, grow_tree
from resgym.trust import packaged

TREE_LIMIT = 100_000
"""Largest tree of a solution."""

NO_CERTIFICATE = (
    "certificate: only the optimum of rule 'basic' has one, without host, agent, max_depth, stop "
    "and centres; a pickled solution has none"
)


def grown_tree(
    position: Exponents,
    choose: Choose,
    title: str,
    max_nodes: int = TREE_LIMIT,
    respond: Respond | None = None,
    rule: OrderedRule | None = None,
) -> ResolutionTree | None:
    """Grow the tree of a host (see `grow_tree`), unless it is too large; default rule for None."""
    rule = OrderedRule(GameSpec(position.dimension)) if rule is None else rule
    tree = grow_tree(position, choose, rule, max_nodes=max_nodes, respond=respond, title=title)
    return tree if tree.complete else None


def by_position(best: Callable[[Position], Axes]) -> Choose:
    """Return the host of a tree that chooses by the points of a chart alone."""
    return lambda charts: [best(chart.points) for chart in charts]


def best_set(points: Points, goal: Goal, bounds: Callable[[Points], tuple[Any, Any]]) -> Axes:
    """Return a set after which the proved bound of a position's value is reached.

    Of several sets it takes one with the least sum of bounds over the answers, then the first
    action. From a settled position on, every position that these sets lead to is resolved within
    the value of the first one.

    Args:
        points: a pruned position.
        goal: what the host minimises.
        bounds: returns lower and upper bounds of a position, such as `Search.known`.
    """

    def rank(axes: Axes) -> tuple[Any, Any]:
        above = [bounds(moved(points, axes, axis))[1] for axis in axes]
        return goal.total(above), sum(above)

    return min(search_actions(len(points[0])), key=rank)


@dataclass(frozen=True)
class Solution(Table):
    """The result of a solver.

    Attributes:
        value: the optimum: moves on the longest branch, nodes of the tree including the root, or
            its leaves. None if not proved; ``math.inf`` if play provably never ends (best responses
            only).
        lower_bound: proved lower bound of the optimum; equals ``value`` if proved.
        upper_bound: upper bound of the optimum, by ``tree``; None if unknown.
        proved: whether the optimum is known, over all trees (also those deeper than ``max_depth``).
        objective: ``depth``, ``nodes`` or ``leaves``.
        seconds: time taken.
        positions_searched: positions whose moves were generated.
        stopped_by: ``max_depth``, ``time_limit``, ``max_positions`` or ``overflow``; on the command
            line also ``interrupt`` (Ctrl-C). None if proved.
        grow: function that grows ``tree``.
        claims: arguments of `resgym.proofs.certificate.certificate`.
    """

    value: int | float | None
    lower_bound: int | float
    upper_bound: int | float | None
    proved: bool
    objective: Objective
    seconds: float
    positions_searched: int
    stopped_by: str | None = None
    grow: Callable[[], ResolutionTree | None] | None = field(
        default=None, repr=False, compare=False
    )
    claims: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def tree(self) -> ResolutionTree | None:
        """A tree of optimal play; if not proved, a tree that reaches ``upper_bound``.

        None if there is none, or it has more than 100,000 nodes. For best responses with ``depth``
        it is the record of one best game. The tree is grown on first use.
        """
        return None if self.grow is None else self.grow()

    def certificate(self) -> str:
        """Return a proof of the bounds, as lines of JSON that `resgym.certificate_check` checks.

        Raises:
            ValueError: not for best responses, ``max_depth``, ``stop``, ``centres``, other rules
                and pickled solutions, nor for numbers that are too large.
        """
        if self.claims is None:
            raise ValueError(NO_CERTIFICATE)
        return packaged("resgym.proofs.certificate:certificate")(*self.claims)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tree": self.tree, "grow": None, "claims": None}

    def __str__(self) -> str:
        unit = "moves" if self.objective == "depth" else self.objective
        effort = f"{counted(self.positions_searched, 'position')}, {self.seconds:.2f} s"
        if self.proved:
            return f"{self.objective} {self.value} (proved; {effort})"
        above = "" if self.upper_bound is None else f", at most {self.upper_bound}"
        return (
            f"{self.objective}: at least {self.lower_bound}{above} {unit} "
            f"(stopped by {self.stopped_by}; {effort})"
        )

    def to_dict(self) -> Data:
        """Return plain data without the tree; infinity is the text ``infinite``."""
        names = (
            "objective value lower_bound upper_bound proved stopped_by seconds positions_searched"
        )
        values = {name: getattr(self, name) for name in names.split()}
        return {name: "infinite" if value == math.inf else value for name, value in values.items()}
