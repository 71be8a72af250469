"""Provably optimal values of positions, and trees of optimal play."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from resgym.game.plain import prune, reduced
from resgym.game.spec import GameSpec, RuleName, check_integer
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import as_position
from resgym.solver.proof import PATIENCE_LOADING, Proof, best_set, prove
from resgym.solver.search import GOALS, Objective, Points
from resgym.solver.solution import (
    Limits,
    Progress,
    Solution,
    check_objective,
    grown_tree,
    progress_report,
)
from resgym.solver.variants import solve_variant
from resgym.trees.data import Chart

if TYPE_CHECKING:
    from resgym.players.seats import Seat

FALLBACK_NODES = 2000
"""Largest tree of Zeillinger's host that is grown for an upper bound."""


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
    rule: RuleName = "basic",
    unit: int = 1,
    weights: Sequence[int] | None = None,
) -> Solution:
    """The optimal value of a position, with proof.

    Without ``agent`` and ``host`` it is the host's optimum against every agent: the least depth, or
    the least number of nodes or of leaves, of a resolution tree. With ``agent`` it is the shortest
    game that a host can have against this agent, with ``host`` the longest game that an agent can
    force on this host (``nodes``, ``leaves``: those of that host's tree). Both must be
    deterministic.

    With ``max_depth=0`` the lower bound is there without a search. Most positions of 20 points in
    three axes take milliseconds; the first longer search of a process waits for the compiled search
    to be loaded, or the first time of all to be compiled, and later ones have it at once.

    Args:
        points: anything that `resgym.parse` reads.
        objective: ``depth`` (moves on the longest branch), ``nodes`` (charts, root counted) or
            ``leaves`` (charts with one point left; a single game has one, so not with ``agent``).
        max_depth: look at branches of at most so many moves.
        time_limit: seconds after which it stops, with what has been proved until then.
        progress: called with a `Progress` again and again; True prints to stderr.
        agent: a name, a `Player`, a function or a saved model.
        host: the same for the other seat.
        max_positions: largest table, about 500 bytes an entry in three axes.
        rule: which rule is played; see docs/game.md. Rules other than ``basic`` are solved for
            ``depth`` and ``nodes``, by trying everything: small positions only.
        unit: with ``polyhedra``, exponents are multiples of 1/unit.
        weights: with ``thom``, those of the axes; 1 by default. The last point is the distinguished
            one.

    Returns:
        A `Solution`; when stopped, with what has been proved so far.

    Raises:
        ValueError, TypeError: an argument is out of range or of a wrong type.
    """
    position = as_position(points)
    check_objective(objective)
    if max_depth is not None:
        check_integer("max_depth", max_depth, 0)
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float, type(None))):
        raise TypeError(f"time_limit must be seconds, got {time_limit!r}")
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit must be at least 0, got {time_limit}")
    check_integer("max_positions", max_positions, 1)
    if agent is not None and host is not None:
        raise ValueError("agent and host must not both be given: nothing is left to optimise")
    if time_limit is not None:
        # Before the clock starts: the bound from above comes from a player, who needs torch.
        import resgym.players.seats  # noqa: F401
    limits = Limits(time_limit, max_positions, progress_report(progress))
    spec = GameSpec(position.dimension, rule=rule, unit=unit)
    if rule != "basic":
        if agent is not None or host is not None:
            raise ValueError(f"agent and host are for rule 'basic', got rule {rule!r}")
        return solve_variant(position, spec, weights, objective, max_depth, limits)
    if weights is not None:
        raise ValueError("weights are for rule 'thom', got rule 'basic'")
    # Players need torch, the least tree of a small position does not.
    if agent is not None:
        from resgym.solver.responses import shortest_game

        return shortest_game(position, agent, objective, max_depth, limits)
    if host is not None:
        from resgym.solver.responses import longest_game

        return longest_game(position, host, objective, max_depth, limits)
    start = prune(position)
    if time_limit is not None and time_limit >= PATIENCE_LOADING:
        # What he needs besides is loaded once he is asked, which must not come late either.
        _zeillinger(position).host_sets([tuple(start)])
    if GOALS[objective].by_sum and max_depth is not None:
        return _least_tree_within(position, start, objective, max_depth, limits)
    proof = prove(start, objective, limits, highest=math.inf if max_depth is None else max_depth)
    expanded = proof.search.expanded
    if proof.settled:
        return _proved(position, proof, limits, expanded)
    return _unproved(position, objective, proof.lower, proof.stopped, limits, expanded)


def _least_tree_within(
    position: Exponents, start: Points, objective: Objective, max_depth: int, limits: Limits
) -> Solution:
    # Charging no more than the lower bound for whatever is too deep bounds all trees from below;
    # forbidding it gives the best tree within the limit. Where both agree, nothing deeper can be
    # smaller.
    below = prove(start, objective, limits, left=max_depth, cut=True)

    def report(now: Progress) -> None:
        # What the second search proves holds for trees within the depth only.
        searched = below.search.expanded + now.positions_searched
        limits.progress(Progress(below.lower, searched, now.seconds))

    within = prove(start, objective, replace(limits, progress=report), left=max_depth)
    expanded = below.search.expanded + within.search.expanded
    lower = below.lower
    stopped = below.stopped or within.stopped or "max_depth"
    if within.settled and within.lower < within.search.kernels.NO_TREE:
        solution = _proved(position, within, limits, expanded)
        if within.lower == lower:
            return solution
        return replace(solution, value=None, lower_bound=lower, proved=False, stopped_by=stopped)
    if within.settled:
        # Every tree has a branch of max_depth + 1 moves, with another answer beside each of them.
        lower = max(lower, GOALS[objective].at_least(max_depth + 1))
    return _unproved(position, objective, lower, stopped, limits, expanded)


def _proved(position: Exponents, proof: Proof, limits: Limits, expanded: int) -> Solution:
    # Three charts of four differ from another one by a shift or a factor alone.
    best = cache(partial(best_set, proof.search))

    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        left = proof.left - charts[0].depth if proof.left > 0 else -1
        return [best(reduced(chart.points), left) for chart in charts]

    objective: Objective = proof.search.objective
    goal = "least" if objective == "depth" else "fewest"
    title = f"optimal tree, {goal} {objective}: {position.pretty()}"
    grow = partial(grown_tree, position, choose, title)
    value = proof.lower
    return Solution(value, value, value, True, objective, limits.seconds, expanded, None, grow)


def _zeillinger(position: Exponents) -> Seat:
    from resgym.players.seats import Seat

    return Seat("zeillinger", "host", position)


def _unproved(
    position: Exponents,
    objective: Objective,
    lower: int,
    stopped: str | None,
    limits: Limits,
    expanded: int,
) -> Solution:
    """A stopped search, with Zeillinger's tree as the upper bound if that is small enough."""
    seat = _zeillinger(position)

    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        if limits.seconds_left <= 0:
            raise TimeoutError
        return seat.host_sets([chart.points for chart in charts])

    tree, upper = None, None
    with suppress(TimeoutError):
        title = f"host zeillinger: {position.pretty()}"
        tree = grown_tree(position, choose, title, FALLBACK_NODES)
    if tree is not None:
        sizes = {"depth": tree.depth, "nodes": tree.num_nodes, "leaves": tree.num_leaves}
        upper = sizes[objective]
    return Solution(
        None, lower, upper, False, objective, limits.seconds, expanded, stopped, lambda: tree
    )
