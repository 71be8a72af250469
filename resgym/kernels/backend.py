"""The base of the backends that are faster than the reference."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.episode import Backend, answers_of_agents, check_refusal, name_sets
from resgym.game.spec import action_axes
from resgym.game.state import GameState
from resgym.game.stepping import (
    AUTORESET_MODES,
    INVALID_ACTIONS,
    REWARD_NAMES,
    SEATS,
    Ask,
    EpisodeState,
    Games,
    StepPlan,
    StepResult,
)

ASKED = -1
"""Index of an opponent that does not play inside a pass."""

AGENTS = ("random", "choose_first", "choose_last")
"""Agents that play inside a pass; kernels take the index."""

STARTING = len(AUTORESET_MODES)
"""In place of an autoreset mode: nothing is played, and the games marked 1 start."""


@cache
def set_numbers(dimension: int, host: str | None) -> np.ndarray:
    """The sets int64 [A] that a host draws from, bit j for axis j: those of all actions, ascending.

    ``random_pair`` draws from the pairs (0, 1), (0, 2), ..., (1, 2), ... instead. The array is
    shared and cached: do not write to it.
    """
    pairs = combinations(range(dimension), 2)
    chosen = pairs if host == "random_pair" else action_axes(dimension)
    return np.array([sum(1 << axis for axis in axes) for axes in chosen], dtype=np.int64)


class Numbers(NamedTuple):
    """The numbers by which kernels know what a pass does.

    Attributes:
        sets: int64 [A], the sets of the host's actions or, if the opponent is a host, those that it
            draws from.
        rules: indices of seat, opponent (0 where both seats are played, or `ASKED`), reward, what
            becomes of an illegal action, and autoreset mode or `STARTING`; whether rows restart in
            the pass; limit of steps; whether what is seen is scaled.
        starts: points drawn, number of values, attempts, whether to reposition.
    """

    sets: np.ndarray
    rules: tuple[int, ...]
    starts: tuple[int, ...]


def _numbers(plan: StepPlan, hosts: tuple[str, ...]) -> tuple[Numbers, Numbers] | None:
    """Return the numbers of a step and of a start; None if no pass knows the plan's rules."""
    if hosts not in plan.prepared:
        plan.prepared[hosts] = _prepared(plan, hosts)
    return plan.prepared[hosts]


def _prepared(plan: StepPlan, hosts: tuple[str, ...]) -> tuple[Numbers, Numbers] | None:
    spec, drawn = plan.spec, plan.start_spec
    if spec.rule != "basic" or spec.polytope != "dominance":
        return None
    if plan.reward not in REWARD_NAMES or plan.starts:
        return None
    players: dict[str, tuple[str | None, ...]]
    players = {"host": AGENTS, "agent": hosts, "both": (plan.opponent,)}
    others, seat = players[plan.seat], SEATS.index(plan.seat)
    opponent = others.index(plan.opponent) if plan.opponent in others else ASKED
    reward = REWARD_NAMES.index(str(plan.reward))
    illegal = INVALID_ACTIONS.index(plan.invalid_action)
    mode = AUTORESET_MODES.index(plan.autoreset_mode)
    # Hosts who are asked name their sets after the pass, and restarts wait for them.
    waits = opponent == ASKED and plan.seat == "agent"
    restarts = plan.autoreset_mode != "DISABLED" and not waits
    ends = plan.max_episode_steps, int(plan.scale_observation)
    starts = drawn.max_num_points, drawn.max_value + 1, drawn.start_attempts, int(spec.reposition)
    sets = set_numbers(spec.dimension, plan.opponent if plan.seat == "agent" else None)
    # Neither rewards nor illegal actions in a start: one binary for all of them.
    start = seat, opponent, 0, INVALID_ACTIONS.index("noop"), STARTING, 1, *ends
    step = seat, opponent, reward, illegal, mode, int(restarts), *ends
    return Numbers(sets, step, starts), Numbers(sets, start, starts)


class FusedBackend(Backend):
    """The base of backends that play a step in one pass, around the answers of asked opponents.

    The reference plays what no pass knows: other rules, Newton polytopes, rewards that are
    functions, sets of starts and given starts.
    """

    hosts: tuple[str, ...]
    """Hosts that play inside a pass, as `AGENTS`."""

    def _pass(
        self,
        plan: StepPlan,
        numbers: Numbers,
        games: Games,
        actions: Tensor,
        answers: Tensor | None = None,
    ) -> StepResult:
        """A step, or a start, by its numbers; `RefusedStep` as in `Backend.step`.

        ``answers`` int64 [N] are those of agents who were asked. With hosts who have to be asked it
        leaves all that was played or started without a set.
        """
        raise NotImplementedError

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """See `resgym.game.episode.Backend.step`."""
        numbers = _numbers(plan, self.hosts)
        if not numbers:
            return super().step(plan, games, actions, ask)
        own, start = numbers
        if own.rules[1] != ASKED:
            return self._pass(plan, own, games, actions)
        state = games.tensors()
        if plan.seat == "agent":
            result = self._pass(plan, own, state, actions)
            return self._ask_hosts(plan, start, state.ended, result, ask)
        known, active = actions.clamp(0, plan.num_actions - 1), ~state.ended
        legal = known == actions
        if devices.is_host_memory(actions.device):  # elsewhere the pass finds out, for one wait
            check_refusal(plan, active, legal)
        answers = answers_of_agents(plan, state, known, active & legal, ask)
        return self._pass(plan, own, state, actions, answers)

    def start(
        self, plan: StepPlan, games: Games, mask: Tensor, ask: Ask, given: GameState | None = None
    ) -> StepResult:
        """See `Backend.start`."""
        numbers = _numbers(plan, self.hosts)
        if not numbers or given:
            return super().start(plan, games, mask, ask, given)
        result = self._pass(plan, numbers[1], games, mask.to(torch.int64))
        if plan.seat != "agent" or numbers[1].rules[1] != ASKED:
            return result
        state = name_sets(plan, result.games.tensors(), mask, ask)
        return result._replace(games=state, coords=_observed_sets(state))

    def _ask_hosts(
        self, plan: StepPlan, start: Numbers, waiting: Tensor, result: StepResult, ask: Ask
    ) -> StepResult:
        """Finish a step of agents whose hosts are asked: hosts name sets, ended rows restart.

        ``waiting`` bool [N] are the rows that had ended before the step.
        """
        state, points = result.games.tensors(), result.points
        over, restart = torch.as_tensor(result.terminated), None
        same_step = plan.autoreset_mode == "SAME_STEP"
        if same_step and result.some_ended:
            restart = torch.as_tensor(result.ended)
            # The last observation of a game that was cut shows the set that would be played.
            cut = torch.as_tensor(result.truncated)
            state = name_sets(plan, state, cut & ~state.coords.any(1), ask)
        elif plan.autoreset_mode == "NEXT_STEP" and (
            not devices.is_host_memory(waiting.device) or waiting.any()
        ):
            restart = waiting
        last = _observed_sets(state)
        if restart is not None:
            started = self._pass(plan, start, state, restart.to(torch.int64))
            state, points, over = started.games.tensors(), started.points, over & ~restart
        state = name_sets(plan, state, ~(state.coords.any(1) | over), ask)
        coords = _observed_sets(state)
        if restart is not None and same_step:
            final = torch.where(restart[:, None], last, coords)
            result = result._replace(final_points=result.points, final_coords=final)
        return result._replace(games=state, points=points, coords=coords)


def _observed_sets(state: EpisodeState) -> Tensor:
    """int8 [N, D]: the sets as agents see them."""
    return state.position.answers(state.coords).to(torch.int8)
