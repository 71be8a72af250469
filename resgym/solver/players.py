"""Players of both seats that use the solver, within a budget."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from resgym.game.exact import Position, moved, prune, reduced
from resgym.game.rng import RowRandom
from resgym.game.spec import Axes, Role, action_axes, check_choice, check_integer, coords_to_action
from resgym.game.state import GameState
from resgym.players import Mixture, Player, RandomAgent, make_mixture, resolve_player
from resgym.players.asking import Seat
from resgym.players.registry import given_sets, select_rows
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import GOALS, Limits, Objective, Proof, TooMuch, prove
from resgym.solver.solution import best_set

DEFAULT_BUDGET = 20_000
"""About a fifth of a second for a position in three axes, compiled; enough for nearly every
position of 20 points with values up to 20."""

REMEMBERED = 50_000
"""Number of cached results; a result depends on the position and the budget alone."""


def _prove(points: Position, objective: Objective, budget: int) -> Proof:
    return prove(points, objective, Limits(), max_expansions=budget)


@lru_cache(maxsize=REMEMBERED)
def _best_set(points: Position, objective: Objective, budget: int) -> Axes | None:
    """Return the host's best set in a position, or None if the budget is not enough."""
    proof = _prove(points, objective, budget)
    return best_set(points, proof.search.goal, proof.search.known) if proof.settled else None


@lru_cache(maxsize=REMEMBERED)
def _bound(points: Position, objective: Objective, budget: int) -> tuple[int, bool]:
    """Return the proved lower bound of a canonical position, and whether it is the value."""
    proof = _prove(points, objective, budget)
    return proof.lower, proof.settled


@dataclass(frozen=True)
class _OptimalPlayer:
    """The part that the players of both seats share; see `OptimalHost`."""

    objective: Objective = "depth"
    budget: int = DEFAULT_BUDGET
    fallback: Any = None
    role: ClassVar[Role]

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, GOALS)
        check_integer("budget", self.budget, 1)
        _ = self._fallback  # an error is raised now, not in a game

    @cached_property
    def _fallback(self) -> Player:
        return resolve_player(self.fallback, self.role, field="fallback")

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        named = action_axes(state.dimension)
        if self.role == "host":
            sets = [self._set(reduced(prune(points))) for points in state.point_lists()]
            answers = [-1 if axes is None else named.index(axes) for axes in sets]
        else:
            numbers = coords_to_action(given_sets(coords)).tolist()
            positions = zip(state.point_lists(), numbers, strict=True)
            answers = [self._worst_axis(tuple(points), named[n]) for points, n in positions]
        answer = torch.tensor(answers, dtype=torch.int64, device=state.device)
        open_rows = (answer < 0).nonzero()[:, 0]
        if len(open_rows):
            answer[open_rows] = self._fallback.act(*select_rows(state, coords, rng, open_rows))
        return answer

    def _set(self, points: Position) -> Axes | None:
        return _best_set(points, self.objective, self.budget)

    def _worst_axis(self, points: Position, axes: Axes) -> int:
        """Return the axis of the largest value, or -1 if that is not proved."""
        bounds = {
            axis: _bound(reduced(moved(points, axes, axis)), self.objective, self.budget)
            for axis in axes
        }
        worst = max(axes, key=lambda axis: (bounds[axis][0], -axis))
        decided = all(bounds[axis][1] for axis in axes if axis != worst)
        return worst if decided else -1


@dataclass(frozen=True)
class OptimalHost(_OptimalPlayer):
    """Choose a set that reaches the proved optimum against the worst agent.

    Positions are solved one by one in Python and cached, so this host is slow: use it for trees,
    comparisons and labels, not as a training opponent. In a position that exceeds the budget,
    ``fallback`` answers. The choice depends on the position alone.

    Attributes:
        objective: ``depth``, ``nodes`` or ``leaves``.
        budget: positions to expand per decision, at least 1.
        fallback: the host that answers otherwise: a name, a `Player` or a function.
    """

    fallback: Any = "zeillinger"
    role: ClassVar[Role] = "host"
    invariant = "shift"


@dataclass(frozen=True)
class OptimalAgent(_OptimalPlayer):
    """Choose the axis after which the host's proved optimum is worst; ties go to the lowest axis.

    As slow as `OptimalHost`, with the same attributes; the budget is for each answer. If too few
    answers can be proved to tell which is worst, ``fallback`` answers.
    """

    fallback: Any = "greedy_points"
    role: ClassVar[Role] = "agent"
    invariant = "shift"


@lru_cache(maxsize=REMEMBERED)
def _safe_sets(points: Position, budget: int) -> dict[Axes, list[Position]]:
    """Return the sets that reach the least depth, with the positions after each answer.

    There are none if the budget does not prove the least depth.
    """
    proof = _prove(points, "depth", budget)
    search, safe = proof.search, {}
    for axes in action_axes(len(points[0])) if proof.settled else ():
        search.allow(max(0, budget - search.expanded))
        with suppress(OverflowError, TooMuch):
            if search.reaches(search.numbers(points, axes), proof.lower):
                safe[axes] = [reduced(moved(points, axes, axis)) for axis in axes]
    return safe


@lru_cache(maxsize=REMEMBERED)
def _chances(points: Position, agents: Mixture) -> dict[Axes, list[float]]:
    """Return how likely each axis of each set is as the answer of one of several agents."""
    sets = action_axes(len(points[0]))
    chances = {axes: [0.0] * len(axes) for axes in sets}
    shares = agents.shares or (1 / len(agents.players),) * len(agents.players)
    for agent, share in zip(agents.players, shares, strict=True):
        if isinstance(agent, RandomAgent):
            for axes, before in chances.items():
                chances[axes] = [chance + share / len(axes) for chance in before]
        else:
            seat = Seat(agent, "agent", Exponents(points))
            for axes, axis in zip(sets, seat.agent_axes([points] * len(sets), sets), strict=True):
                chances[axes][axes.index(axis)] += share
    return chances


@lru_cache(maxsize=REMEMBERED)
def _quickest(
    points: Position, budget: int, agents: Mixture, lookahead: int
) -> tuple[float, Axes | None]:
    """Return the fewest moves that a `SafeHost` expects, and its set unless it looks no further."""
    if len(points) == 1:
        return 0.0, action_axes(len(points[0]))[0]
    safe = _safe_sets(points, budget) if lookahead else {}
    if not safe:
        return 1 + math.log2(len(points)), None
    chances, expected = _chances(points, agents), {}
    for axes, after in safe.items():
        expected[axes] = 1 + math.fsum(
            chance * _quickest(each, budget, agents, lookahead - 1)[0]
            for chance, each in zip(chances[axes], after, strict=True)
            if chance
        )
    best = min(expected, key=expected.__getitem__)
    return expected[best], best


@dataclass(frozen=True)
class SafeHost(OptimalHost):
    """Never exceed the least depth, and be as fast against weak agents as that allows.

    Of the sets that are proved to reach the least depth the host chooses the one with the fewest
    expected moves against the weak agents, looking some moves ahead. So its exact worst case is the
    least depth from **every** position, as long as none exceeds the budget; in a position that
    does, ``fallback`` answers.

    Attributes:
        agents: the weak agents to expect: one, several or their weights, as for `make_mixture`.
            Each answer is assumed to come from a random one of them. All but ``random`` must be
            deterministic.
        lookahead: moves to look ahead, at least 1; beyond them it expects 1 + log2(points).
    """

    agents: Any = "random"
    lookahead: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective != "depth":
            raise ValueError(f"objective must be 'depth' for a safe host, got {self.objective!r}")
        check_integer("lookahead", self.lookahead, 1)
        _ = self._mixture  # likewise

    @cached_property
    def _mixture(self) -> Mixture:
        return make_mixture(self.agents, "agent", field="agents")

    def _set(self, points: Position) -> Axes | None:
        safe = _safe_sets(points, self.budget) if len(points) > 1 else {}
        if len(safe) == 1:
            return next(iter(safe))
        return _quickest(points, self.budget, self._mixture, self.lookahead)[1]
