"""Players of both seats that play by the solver, within a budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.plain import Position, canonical, moved, prune, reduced
from resgym.game.rng import RowRandom
from resgym.game.spec import Role, check_integer
from resgym.game.state import GameState
from resgym.players import Player, resolve_player
from resgym.players.base import given_sets
from resgym.solver.proof import Proof, best_sets, prove
from resgym.solver.solution import Limits, Objective, check_objective

DEFAULT_BUDGET = 20_000
"""A fifth of a second or so for a position in three axes, compiled; enough for nearly every one of
20 points with values up to 20."""

REMEMBERED = 50_000
"""Positions whose result is kept; a result depends on the position and the budget alone."""


def _prove(points: Position, objective: str, budget: int) -> Proof:
    return prove(points, objective, Limits(None, 2**62), max_expansions=budget)


@lru_cache(maxsize=REMEMBERED)
def _best_set(points: Position, objective: str, budget: int) -> tuple[int, ...] | None:
    """The host's best set in a position, or None if the budget does not settle it."""
    proof = _prove(points, objective, budget)
    return best_sets(proof.search, [points])[0] if proof.settled else None


@lru_cache(maxsize=REMEMBERED)
def _bound(form: Position, objective: str, budget: int) -> tuple[int, bool]:
    """The proved lower bound of a canonical position and whether it is the value."""
    proof = _prove(form, objective, budget)
    return proof.lower, proof.settled


@dataclass(frozen=True)
class _OptimalPlayer:
    """What the players of both seats share; see `OptimalHost`."""

    objective: Objective = "depth"
    budget: int = DEFAULT_BUDGET
    fallback: Any = None
    role: ClassVar[Role]

    def __post_init__(self) -> None:
        check_objective(self.objective)
        check_integer("budget", self.budget, 1)
        assert self._fallback.role == self.role

    @cached_property
    def _fallback(self) -> Player:
        return resolve_player(self.fallback, self.role)

    def _filled(
        self, answers: list[int], state: GameState, coords: Tensor | None, rng: RowRandom
    ) -> Tensor:
        """The answers int64 [N], with those of the fallback where they are -1."""
        answer = torch.tensor(answers, dtype=torch.int64, device=state.device)
        open_rows = (answer < 0).nonzero()[:, 0]
        if len(open_rows):
            sets = None if coords is None else coords[open_rows]
            rows = state.select(open_rows), sets, rng.select(open_rows)
            answer[open_rows] = self._fallback.act(*rows)
        return answer


@dataclass(frozen=True)
class OptimalHost(_OptimalPlayer):
    """Plays a set that reaches the proved optimum against the worst agent.

    Every position is solved by itself, one after the other in Python, so it is slow: meant for
    trees, comparisons and labels, not for training opponents. Results are remembered. In a
    position that the budget does not settle, ``fallback`` answers. What it plays depends on the
    position alone.

    Attributes:
        objective: ``depth`` or ``nodes``.
        budget: positions expanded per decision, at least 1.
        fallback: the host that answers otherwise: a name, a `Player` or a function.
    """

    fallback: Any = "zeillinger"
    role: ClassVar[Role] = "host"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        numbers = {axes: action for action, axes in enumerate(action_axes(state.points.shape[2]))}
        answers = []
        for points in state.point_lists():
            if len(points) == 1:
                answers.append(0)
                continue
            axes = _best_set(reduced(prune(points)), self.objective, self.budget)
            answers.append(-1 if axes is None else numbers[axes])
        return self._filled(answers, state, None, rng)


@dataclass(frozen=True)
class OptimalAgent(_OptimalPlayer):
    """Plays an axis after which the host's proved optimum is worst, the lowest of equally bad ones.

    As slow as `OptimalHost`, and with the same attributes; the budget is for each answer looked at.
    If it settles too few of the answers to tell which is worst, ``fallback`` answers.
    """

    fallback: Any = "greedy_points"
    role: ClassVar[Role] = "agent"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        answers = []
        for points, chosen in zip(state.point_lists(), coords.tolist(), strict=True):
            axes = tuple(axis for axis, flag in enumerate(chosen) if flag)
            answers.append(axes[0] if len(points) == 1 else self._worst_axis(tuple(points), axes))
        return self._filled(answers, state, coords, rng)

    def _worst_axis(self, points: Position, axes: tuple[int, ...]) -> int:
        """The axis of the largest value, or -1 if what is proved does not tell."""
        bounds = {
            axis: _bound(canonical(moved(points, axes, axis)), self.objective, self.budget)
            for axis in axes
        }
        worst = max(axes, key=lambda axis: (bounds[axis][0], -axis))
        told = all(bounds[axis][1] for axis in axes if axis != worst)
        return worst if told else -1
