"""The base of the backends that are faster than the reference."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.actions import action_axes
from resgym.game.episode import Backend, answers_of_agents, name_sets
from resgym.game.rewards import REWARD_NAMES
from resgym.game.state import GameState
from resgym.game.stepping import (
    AUTORESET_MODES,
    INVALID_ACTIONS,
    SEATS,
    Ask,
    EpisodeState,
    Games,
    ResetResult,
    StepPlan,
    StepResult,
)

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
    """Base of backends that play a step in one pass, around the answers of who has to be asked.

    What no pass knows is left to the reference: other rules, Newton polytopes, rewards that are
    functions, sets of starts and given ones.
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

    def _numbers(self, plan: StepPlan) -> Any:
        """What passes take for a plan; None for one that they do not know."""
        raise NotImplementedError

    def _refuse(self, plan: StepPlan, numbers: Any, state: EpisodeState, actions: Tensor) -> None:
        """Raises `RefusedStep` before anybody is asked, where that can be seen for free."""

    def _pass(
        self, plan: StepPlan, numbers: Any, games: Games, actions: Tensor, answers: Tensor | None
    ) -> StepResult:
        """A step; ``answers`` int64 [N] are those of agents who were asked.

        With hosts who have to be asked it restarts no row, and leaves all that was played without a
        set.
        """
        raise NotImplementedError

    def _starts(self, plan: StepPlan, numbers: Any, games: Games, mask: Tensor) -> ResetResult:
        """Starts in the rows of ``mask``, bool [N], without a set if hosts have to be asked."""
        raise NotImplementedError

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """See `resgym.game.episode.Backend.step`."""
        numbers = self._numbers(plan)
        if numbers is None:
            return super().step(plan, games, actions, ask)
        if numbers.plays:
            return self._pass(plan, numbers, games, actions, None)
        state = games.tensors()
        self._refuse(plan, numbers, state, actions)
        if plan.seat == "agent":
            result = self._pass(plan, numbers, state, actions, None)
            return self._ask_hosts(plan, numbers, state.ended, result, ask)
        known = actions.clamp(0, plan.num_actions - 1)
        playing = (known == actions) & ~state.ended
        answers = answers_of_agents(plan, state, known, playing, ask)
        return self._pass(plan, numbers, state, actions, answers)

    def start(
        self, plan: StepPlan, games: Games, mask: Tensor, ask: Ask, given: GameState | None = None
    ) -> ResetResult:
        """See `Backend.start`."""
        numbers = self._numbers(plan)
        if numbers is None or given is not None:
            return super().start(plan, games, mask, ask, given)
        result = self._starts(plan, numbers, games, mask)
        if plan.seat != "agent" or numbers.plays:
            return result
        state = name_sets(plan, result.games.tensors(), mask, ask)
        return ResetResult(state, result.points, _shown(state))

    def _ask_hosts(
        self, plan: StepPlan, numbers: Any, waiting: Tensor, result: StepResult, ask: Ask
    ) -> StepResult:
        """What is left of a step of agents whose hosts are asked: sets to name, rows to restart.

        ``waiting`` bool [N] are the rows that had ended before the step.
        """
        state = result.games.tensors()
        over, restart = torch.as_tensor(result.terminated), None
        last = _shown(state)
        if plan.autoreset_mode == "SAME_STEP" and result.ended is not None:
            restart = torch.as_tensor(result.ended)
            # The last observation of a game that was cut shows the set that would be played.
            cut = torch.as_tensor(result.truncated)
            state = name_sets(plan, state, cut & ~state.coords.any(1), ask)
            last = _shown(state)
        elif plan.autoreset_mode == "NEXT_STEP" and (
            not devices.is_host_memory(waiting.device) or bool(waiting.any())
        ):
            restart = waiting
        points = result.points
        if restart is not None:
            started = self._starts(plan, numbers, state, restart)
            state, points, over = started.games.tensors(), started.points, over & ~restart
        state = name_sets(plan, state, ~(state.coords.any(1) | over), ask)
        shown = _shown(state)
        if restart is not None and plan.autoreset_mode == "SAME_STEP":
            final = torch.where(restart[:, None], last, shown)
            result = result._replace(final_points=result.points, final_coords=final)
        return result._replace(games=state, points=points, coords=shown)


def _shown(state: EpisodeState) -> Tensor:
    """int8 [N, D]: the sets as agents see them."""
    return state.position.answers(state.coords).to(torch.int8)
