"""Both seats in one environment: a host's half-move, then an agent's, one a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from torch import Tensor

from resgym.envs.autoreset import Observation, Outcome, TensorVectorEnv
from resgym.envs.one_pass import step_plan
from resgym.envs.table import Table, resolve_device
from resgym.game.actions import host_action_table
from resgym.game.rewards import RewardFunction, Transition, resolve_reward, role_reward
from resgym.game.spec import GameSpec, Polytope, check_integer
from resgym.kernels.step import StepPlan

__all__ = ["HironakaVectorEnv", "half_move_limit", "points_space"]


def points_space(spec: GameSpec, scale_observation: bool) -> spaces.Box:
    """Box [P, D] of float32 that holds the points of an observation."""
    high = 1.0 if scale_observation else np.inf
    return spaces.Box(-1.0, high, (spec.max_num_points, spec.dimension), np.float32)


def half_move_limit(max_episode_steps: int | None) -> int | None:
    """The limit in half-moves that stands for a limit in whole moves; None is no limit."""
    if max_episode_steps is None:
        return None
    return 2 * check_integer("max_episode_steps", max_episode_steps, 1)


class HironakaVectorEnv(TensorVectorEnv):
    """N games seen from the seat whose turn it is (``resgym/Hironaka-v0``).

    Observation: ``points`` float32 [N, P, D] (descending lexicographic order, scaled by the largest
    coordinate, absent rows -1), ``coords`` int8 [N, D] (the set the host has named, zeros on the
    host's turn), ``to_play`` int64 [N] (0 host, 1 agent).

    Action: ``Discrete(max(2^D - D - 1, D))``. On the host's turn k < 2^D - D - 1 names the k-th
    axis set (`resgym.game.action_axes`), on the agent's turn k is an axis of that set;
    `action_masks` gives the legal ones.

    Reward: of the player who made the half-move; a host's half-move gets 0, because what it leads
    to is known only after the answer. ``info["rewards"]`` float32 [N, 2] has both roles' rewards
    (host, agent) on the half-move that completes a move.

    ``max_episode_steps`` counts steps of this environment, hence half-moves.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        dimension: int = 3,
        max_num_points: int = 20,
        max_value: int = 20,
        polytope: Polytope = "dominance",
        reposition: bool = False,
        scale_observation: bool = True,
        reward: str | RewardFunction = "terminal",
        max_episode_steps: int | None = 200,
        invalid_action: str = "error",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        device: torch.device | str = "cpu",
        output: str = "torch",
        backend: str = "auto",
        render_mode: str | None = None,
    ) -> None:
        """Makes the environment; nothing is drawn before `reset`.

        Args:
            num_envs: games in parallel, N.
            dimension: axes D, 2 to 10.
            max_num_points: rows P of a position, and points of a random start.
            max_value: random starts are uniform on 0..max_value inclusive.
            polytope: which points a move keeps, ``dominance`` or ``newton``.
            reposition: subtract the per-axis minimum after every move.
            scale_observation: divide the observed points by the position's largest coordinate.
            reward: ``terminal``, ``step``, ``survival``, ``points`` or a callable that gets a
                `resgym.game.Transition` and returns float32 [N].
            max_episode_steps: steps after which an episode is truncated; None for no limit.
            invalid_action: ``error``, ``noop``, ``penalty`` or ``terminate``.
            autoreset_mode: SAME_STEP, NEXT_STEP or DISABLED.
            device: where the games live and results are made.
            output: ``torch`` (tensors on ``device``) or ``numpy``.
            backend: ``auto`` or the name of an implementation of the move.
            render_mode: ``ansi``, ``human``, and with 2 or 3 axes ``rgb_array`` (needs matplotlib)
                or ``svg``; see `render`. None for no frames.

        Raises:
            ValueError, TypeError: an argument is out of range; the message names it.
        """
        num_envs = check_integer("num_envs", num_envs, 1)
        spec = GameSpec(dimension, max_num_points, max_value, polytope, reposition)
        if spec.max_num_points < 2:
            raise ValueError("max_num_points must be at least 2 to play, got 1")
        if not isinstance(scale_observation, bool):
            raise TypeError(f"scale_observation must be True or False, got {scale_observation!r}")
        resolve_reward(reward)
        self.spec_of_game = spec
        self.scale_observation = scale_observation
        self.reward = reward
        resolved = resolve_device(device)
        self._sets = host_action_table(spec.dimension, resolved)
        self._num_actions = max(spec.num_host_actions, spec.dimension)
        super().__init__(
            Table(num_envs, spec, resolved, backend),
            spaces.Dict(
                points=points_space(spec, scale_observation),
                coords=spaces.MultiBinary(spec.dimension),
                to_play=spaces.Discrete(2),
            ),
            spaces.Discrete(self._num_actions),
            max_episode_steps=max_episode_steps,
            invalid_action=invalid_action,
            autoreset_mode=autoreset_mode,
            output=output,
            render_mode=render_mode,
        )

    def _legal(self) -> Tensor:
        agent = self.table.coords.any(1)[:, None]
        action = torch.arange(self._num_actions, device=self.device)
        host_legal = (action < self.spec_of_game.num_host_actions).expand(self.num_envs, -1)
        agent_legal = torch.zeros_like(host_legal)
        agent_legal[:, : self.spec_of_game.dimension] = self.table.coords
        return torch.where(agent, agent_legal, host_legal)

    def _play(self, actions: Tensor, mask: Tensor) -> Outcome:
        table = self.table
        agent = table.coords.any(1)
        axis = actions.clamp(max=self.spec_of_game.dimension - 1)
        before, coords = table.state, table.coords
        answering = mask & agent
        overflow = table.answer(axis, answering)
        chosen = self._sets[actions.clamp(max=self.spec_of_game.num_host_actions - 1)]
        table.name_set(chosen, mask & ~agent)
        finished = answering & table.state.finished()
        rewards = [
            torch.where(
                answering,
                role_reward(
                    self.reward,
                    Transition(before, coords, axis, table.state, finished, role),
                ),
                0.0,
            )
            for role in ("host", "agent")
        ]
        self._rewards = torch.stack(rewards, 1)
        return Outcome(rewards[1], finished, overflow)

    def _finish(
        self, active: Tensor, illegal: Tensor, outcome: Outcome
    ) -> tuple[Observation, Any, Any, Any, dict[str, Any]]:
        result = super()._finish(active, illegal, outcome)
        result[4]["rewards"] = self._out(self._rewards)
        return result

    def _observe(self, rows: Tensor | None = None) -> Observation:
        state, coords = self.table.state, self.table.coords
        if rows is not None:
            state, coords = state.select(rows), coords[rows]
        points = self.table.backend.observe_points(state, self.scale_observation)
        return self._observation(points, coords.to(torch.int8))

    def _observation(self, points: Any, coords: Any) -> Observation:
        # 1 where a named set awaits the agent's answer; adding 0 makes int64 of booleans, be they
        # tensors or arrays.
        return {"coords": coords, "points": points, "to_play": coords.any(1) + 0}

    def _plan(self) -> StepPlan | None:
        return step_plan(self, "both", None)
