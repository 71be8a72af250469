"""Provably optimal values of positions, and trees of optimal play."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from resgym.game.plain import canonical, prune
from resgym.game.spec import check_integer
from resgym.players.seats import OrderedRule
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import as_position
from resgym.solver.proof import Limits, OptimalPlay, Progress, Proof, prove
from resgym.solver.search_table import NO_TREE
from resgym.trees.data import Chart
from resgym.trees.growth import grow_tree, resolution_tree
from resgym.trees.tree import ResolutionTree

__all__ = ["Objective", "Progress", "Solution", "progress_report", "solve"]

Objective = Literal["depth", "nodes"]

GOALS = {"depth": "optimal tree, least depth", "nodes": "optimal tree, fewest nodes"}

TREE_LIMIT = 100_000
"""Largest tree that a solution carries."""

FALLBACK_NODES = 2000
"""Largest tree of Zeillinger's host that is grown for an upper bound."""


@dataclass(frozen=True)
class Solution:
    """What a solver has proved.

    Attributes:
        value: the optimum: moves on the longest branch, or nodes of the tree, root counted. None
            if it is not proved; ``math.inf`` if play provably never ends (best responses only).
        lower_bound: the optimum is proved to be at least this; equals ``value`` if proved.
        upper_bound: the optimum is at most this, by ``tree``; None if nothing is known.
        proved: whether the optimum is known, over all trees (also those deeper than ``max_depth``).
        objective: ``depth`` or ``nodes``.
        tree: a tree of optimal play; if not proved, one that reaches ``upper_bound``; None if there
            is none, or it has more than 100,000 nodes. For best responses with ``depth`` it is the
            record of one best game.
        seconds: time taken.
        positions_searched: positions whose moves were generated.
        stopped_by: ``max_depth``, ``time_limit``, ``max_positions`` or ``overflow``, on the command
            line also ``interrupt`` (Ctrl-C); None if proved.
    """

    value: int | float | None
    lower_bound: int | float
    upper_bound: int | float | None
    proved: bool
    objective: Objective
    tree: ResolutionTree | None
    seconds: float
    positions_searched: int
    stopped_by: str | None = None

    def __str__(self) -> str:
        unit = "moves" if self.objective == "depth" else "nodes"
        effort = f"{self.positions_searched} positions, {self.seconds:.2f} s"
        if self.proved:
            return f"{self.objective} {self.value} (proved; {effort})"
        above = "" if self.upper_bound is None else f", at most {self.upper_bound}"
        return (
            f"{self.objective}: at least {self.lower_bound}{above} {unit} "
            f"(stopped by {self.stopped_by}; {effort})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data without the tree; infinity is the text ``infinite``."""

        def plain(number: int | float | None) -> int | float | str | None:
            return "infinite" if number == math.inf else number

        return {
            "objective": self.objective,
            "value": plain(self.value),
            "lower_bound": plain(self.lower_bound),
            "upper_bound": plain(self.upper_bound),
            "proved": self.proved,
            "stopped_by": self.stopped_by,
            "seconds": self.seconds,
            "positions_searched": self.positions_searched,
        }


def solve(
    points: Any,
    objective: Objective = "depth",
    *,
    max_depth: int | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    agent: Any = None,
    host: Any = None,
    max_positions: int = 2_000_000,
) -> Solution:
    """The optimal value of a position, with proof.

    Without ``agent`` and ``host`` it is the host's optimum against every agent: the least depth, or
    the least number of nodes, of a resolution tree. With ``agent`` it is the shortest game that a
    host can have against this agent, with ``host`` the longest game that an agent can force on this
    host (``nodes``: the size of that host's tree). Both must be deterministic.

    Small positions take hundredths of a second. The first search of a process that needs some
    thousand positions waits a few seconds for numba, which later ones then have at once.

    Args:
        points: anything that `resgym.parse` reads.
        objective: ``depth`` (moves on the longest branch) or ``nodes`` (charts, root counted).
        max_depth: look at branches of at most so many moves.
        time_limit: seconds after which the search stops, checked every few hundredths of a second
            (less often in many axes). Zeillinger's tree, which then gives an upper bound, takes
            up to a second or so more.
        progress: called with a `Progress` again and again; True prints to stderr.
        agent: a name, a `Player`, a function or a saved model.
        host: the same for the other seat.
        max_positions: largest table, about 400 bytes an entry in three axes.

    Returns:
        A `Solution`; when stopped, with what has been proved so far.

    Raises:
        ValueError, TypeError: an argument is out of range or of a wrong type.
    """
    position = as_position(points)
    if objective not in get_args(Objective):
        raise ValueError(f"objective must be 'depth' or 'nodes', got {objective!r}")
    if max_depth is not None:
        check_integer("max_depth", max_depth, 0)
    if time_limit is not None:
        if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)):
            raise TypeError(f"time_limit must be seconds, got {time_limit!r}")
        if not time_limit >= 0:
            raise ValueError(f"time_limit must be at least 0, got {time_limit}")
    check_integer("max_positions", max_positions, 1)
    if agent is not None and host is not None:
        raise ValueError("agent and host must not both be given: nothing is left to optimise")
    limits = Limits(time_limit, max_positions, progress_report(progress))
    if agent is not None:
        from resgym.solver.responses import shortest_game

        return shortest_game(position, agent, objective, max_depth, limits)
    if host is not None:
        from resgym.solver.responses import longest_game

        return longest_game(position, host, objective, max_depth, limits)
    if objective == "depth":
        return _least_depth(position, max_depth, limits)
    return _least_nodes(position, max_depth, limits)


def progress_report(
    progress: bool | Callable[[Progress], None] | None,
) -> Callable[[Progress], None] | None:
    """A function for a running search to call, from the argument of `solve`; None for none."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress must be True, False or a function, got {progress!r}")
        return progress
    last = [-1.0]

    def show(now: Progress) -> None:
        if now.seconds - last[0] >= 1.0:
            last[0] = now.seconds
            print(
                f"at least {now.lower_bound}, {now.positions_searched} positions, "
                f"{now.seconds:.0f} s",
                file=sys.stderr,
            )

    return show


def _least_depth(position: Exponents, max_depth: int | None, limits: Limits) -> Solution:
    root = canonical(prune(list(position)))
    ceiling = NO_TREE if max_depth is None else max_depth
    proof = prove(root, "depth", limits, give_up_above=ceiling)
    if proof.settled:
        return _proved(position, "depth", proof, limits, proof.search.expanded)
    # How far a stretch of the search got beyond the limit is no part of the answer.
    lower = min(proof.lower, ceiling + 1)
    stopped = "max_depth" if proof.lower > ceiling else proof.stopped
    return _unproved(position, "depth", lower, stopped, limits, proof.search.expanded)


def _least_nodes(position: Exponents, max_depth: int | None, limits: Limits) -> Solution:
    root = canonical(prune(list(position)))
    if max_depth is None:
        proof = prove(root, "nodes", limits)
        expanded = proof.search.expanded
        if proof.settled:
            return _proved(position, "nodes", proof, limits, expanded)
        return _unproved(position, "nodes", proof.lower, proof.stopped, limits, expanded)
    # Charging 3 nodes for whatever hangs below the limit bounds all trees from below; forbidding it
    # gives the best tree within the limit. Where both agree, nothing deeper can be smaller.
    below = prove(root, "nodes", limits, remaining=max_depth, cut_cost=3)
    within = prove(root, "nodes", _reporting(limits, below), remaining=max_depth)
    expanded = below.search.expanded + within.search.expanded
    lower = below.lower
    if within.settled and within.lower >= NO_TREE:
        # Every tree has a branch of max_depth + 1 moves, with another answer beside each of them.
        lower = max(lower, 2 * (max_depth + 1) + 1)
    elif within.settled and within.lower == lower:
        return _proved(position, "nodes", within, limits, expanded)
    elif within.settled:
        tree = _optimal_tree(position, within)
        stopped = below.stopped or "max_depth"
        return Solution(
            None, lower, within.lower, False, "nodes", tree, limits.seconds, expanded, stopped
        )
    stopped = below.stopped or within.stopped or "max_depth"
    return _unproved(position, "nodes", lower, stopped, limits, expanded)


def _reporting(limits: Limits, below: Proof) -> Limits:
    """The same limits for a second search, whose bound holds for trees within the depth only."""
    progress = limits.progress
    if progress is None:
        return limits

    def report(now: Progress) -> None:
        searched = below.search.expanded + now.positions_searched
        progress(Progress(below.lower, searched, now.seconds))

    second = replace(limits, progress=report)
    second.started = limits.started
    return second


def _proved(
    position: Exponents, objective: Objective, proof: Proof, limits: Limits, expanded: int
) -> Solution:
    value = proof.lower
    tree = _optimal_tree(position, proof)
    return Solution(
        value, value, value, True, objective, tree, limits.seconds, expanded, proof.stopped
    )


def _unproved(
    position: Exponents,
    objective: Objective,
    lower: int,
    stopped: str | None,
    limits: Limits,
    expanded: int,
) -> Solution:
    """A stopped search, with Zeillinger's tree as the upper bound if that is small enough."""
    tree: ResolutionTree | None = resolution_tree(position, max_nodes=FALLBACK_NODES)
    upper = None
    if tree is not None and tree.complete:
        upper = tree.depth if objective == "depth" else tree.num_nodes
    else:
        tree = None
    return Solution(None, lower, upper, False, objective, tree, limits.seconds, expanded, stopped)


def _optimal_tree(position: Exponents, proof: Proof) -> ResolutionTree | None:
    play = OptimalPlay(proof)
    places: dict[int, OptimalPlay.Place] = {}
    sets: dict[int, tuple[int, ...]] = {}

    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        for chart in charts:
            if chart.parent is None or chart.axis is None:
                place = play.start(prune(list(position)))
            else:
                place = play.after(places[chart.parent], sets[chart.parent], chart.axis)
            places[chart.number] = place
            sets[chart.number] = play.best_axes(place)
        return [sets[chart.number] for chart in charts]

    objective = "depth" if proof.search.by_depth else "nodes"
    tree = grow_tree(
        position,
        choose,
        OrderedRule(position.dimension),
        max_depth=2**31,
        max_nodes=TREE_LIMIT,
        title=f"{GOALS[objective]}: {position.pretty()}",
    )
    return tree if tree.complete else None
