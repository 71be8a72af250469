"""The base of the backends that are faster than the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.episode import Backend
from resgym.game.rewards import REWARD_NAMES
from resgym.game.rng import RowRandom
from resgym.game.rules import check_startable
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state, where_state
from resgym.game.stepping import AUTORESET_MODES, INVALID_ACTIONS, SEATS, StepPlan

ASKED = -1
"""Number of an opponent who does not play inside a pass."""

AGENTS = ("random", "choose_first", "choose_last")
"""Agents that play inside a pass; kernels take the index."""


@cache
def set_numbers(dimension: int, host: str | None) -> np.ndarray:
    """The sets int64 [A] that a host draws from, bit j for axis j: those of all actions, ascending.

    ``random_pair`` draws from the pairs (0, 1), (0, 2), ..., (1, 2), ... instead. The array is
    shared and cached: do not write to it.
    """
    pairs = combinations(range(dimension), 2)
    chosen = pairs if host == "random_pair" else action_axes(dimension)
    return np.array([sum(1 << axis for axis in axes) for axes in chosen], dtype=np.int64)


class FusedBackend(Backend):
    """Base of backends that play a step in one pass; the rest is left to the reference.

    The reference plays with their own single operations: Newton polytopes, rewards that are
    functions, sets of starts, and the opponents that a backend neither knows nor asks. Other rules
    than the default one it plays alone.
    """

    hosts: tuple[str, ...]
    """Hosts that play inside a pass, as `AGENTS`."""

    @classmethod
    def indices(cls, plan: StepPlan) -> tuple[int, int, int, int, int] | None:
        """The numbers that kernels take for a plan's words: indices, or `ASKED`.

        They are those of the seat, the opponent (0 where both seats are played), the reward, what
        becomes of an illegal action, and the autoreset mode. None for a plan whose moves, reward
        or starts no pass knows.
        """
        if plan.spec.rule != "basic" or plan.spec.polytope != "dominance":
            return None
        if plan.reward not in REWARD_NAMES or plan.starts is not None:
            return None
        players: dict[str, tuple[str | None, ...]]
        players = {"host": AGENTS, "agent": cls.hosts, "both": (plan.opponent,)}
        others = players[plan.seat]
        return (
            SEATS.index(plan.seat),
            others.index(plan.opponent) if plan.opponent in others else ASKED,
            REWARD_NAMES.index(str(plan.reward)),
            INVALID_ACTIONS.index(plan.invalid_action),
            AUTORESET_MODES.index(plan.autoreset_mode),
        )

    # The single operations: kernels keep minimal points, the reference finds vertices of them.

    def _moved(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor, Tensor]:
        """As `move` for dominance; also bool [N], which games moved."""
        raise NotImplementedError

    def _drawn(self, spec: GameSpec, rng: RowRandom) -> GameState:
        """As `random_starts` for dominance."""
        raise NotImplementedError

    def move(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor]:
        """As `resgym.game.rules.move`."""
        if spec.rule != "basic":
            return Backend.move(state, coords, axis, spec)
        after, moved, overflow = self._moved(state, coords.to(torch.bool), axis, _plain(spec))
        if spec.polytope == "newton":
            after = where_state(moved, _vertices(after, spec), state)
        return after, overflow

    def random_starts(self, spec: GameSpec, rng: RowRandom) -> GameState:
        """As `resgym.game.rules.random_starts`."""
        check_startable(spec)
        if spec.rule != "basic":
            return Backend.random_starts(spec, rng)
        state = self._drawn(_plain(spec), rng)
        # A position of several minimal points has several vertices: no start is finished after all.
        return _vertices(state, spec) if spec.polytope == "newton" else state


def _plain(spec: GameSpec) -> GameSpec:
    """The game whose minimal points `_vertices` takes up."""
    if spec.polytope == "dominance":
        return spec
    return replace(spec, polytope="dominance", reposition=False)


def _vertices(state: GameState, spec: GameSpec) -> GameState:
    """The vertices among minimal points, by the reference."""
    return canonical_state(state.points.permute(2, 1, 0).contiguous(), state.count, spec)
