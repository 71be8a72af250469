"""The environments, made from their arguments: many games at once, and one game for Gymnasium."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from resgym.envs.base import PlannedVectorEnv
from resgym.envs.forms import (
    MAX_SEED,
    Info,
    LegalDiscrete,
    ResultForm,
    StateDict,
    array_of,
    parse_autoreset_mode,
    parse_options,
)
from resgym.game import devices
from resgym.game.rules import check_startable
from resgym.game.spec import (
    GameSpec,
    Polytope,
    Role,
    check_choice,
    check_flag,
    check_integer,
    hints_keywords,
)
from resgym.game.stepping import (
    INVALID_ACTIONS,
    NO_LIMIT,
    SEATS,
    RewardFunction,
    Seat,
    StepPlan,
    check_reward,
)
from resgym.kernels.dispatch import resolve_backend
from resgym.players.registry import check_role
from resgym.polynomials.starts import resolve_starts


class HironakaVectorEnv(PlannedVectorEnv):
    """N games seen from one seat, or from the seat whose turn it is.

    ``seat="host"`` (``resgym/HironakaHost-v0``): a step is a whole move. Action
    ``Discrete(2^D - D - 1)``: k names the k-th axis set (`resgym.game.spec.action_axes`).
    Observation float32 [N, P, D]: the points in descending lexicographic order, scaled by the
    largest coordinate; absent rows are -1.

    ``seat="agent"`` (``resgym/HironakaAgent-v0``): a step is a whole move. Action ``Discrete(D)``,
    an axis of the observed set. Observation ``points`` as above and ``coords`` int8 [N, D], the
    host's set, which is also the mask of legal actions.

    ``seat="both"`` (``resgym/Hironaka-v0``): a step is a half-move. Action
    ``Discrete(max(2^D - D - 1, D))``; `action_masks` gives the legal ones. Observation ``points``,
    ``coords`` (zeros on the host's turn), ``to_play`` int64 [N] (0 host, 1 agent). The reward is
    that of the player who made the half-move; a host's half-move gets 0, because its result is
    known only after the answer. ``info["rewards"]`` float32 [N, 2] has the rewards of host and
    agent on the half-move that completes a move.
    """

    @hints_keywords
    def __init__(
        self,
        num_envs: int = 1,
        *,
        seat: Seat = "both",
        opponent: Any = None,
        dimension: int = 3,
        max_num_points: int = 20,
        max_value: int = 20,
        polytope: Polytope = "dominance",
        reposition: bool = False,
        rule: str = "basic",
        unit: int = 1,
        scale_observation: bool = True,
        reward: str | RewardFunction = "terminal",
        max_episode_steps: int | None = 200,
        invalid_action: str = "error",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        device: torch.device | str = "cpu",
        output: str = "torch",
        backend: str = "auto",
        render_mode: str | None = None,
        starts: Any = None,
        observation: str = "points",
        episode_statistics: bool = True,
        full_info: bool = False,
    ) -> None:
        """Make the environment; nothing is drawn before `reset`.

        Args:
            num_envs: number of parallel games N.
            seat: the side that you play: ``host``, ``agent`` or ``both``.
            opponent: the player of the other seat, see `set_opponent`; None is ``random``.
            dimension: number of axes D, 2 to 10.
            max_num_points: rows P of a position, and points of a random start.
            max_value: random starts are uniform on 0..max_value inclusive.
            polytope: which points a move keeps, ``dominance`` or ``newton``.
            reposition: subtract the per-axis minimum after every move.
            rule: ``basic``, ``polyhedra`` or ``thom``; see docs/game.md.
            unit: with ``polyhedra``, coordinates are multiples of 1/unit.
            scale_observation: divide the observed points by the position's largest coordinate.
            reward: ``terminal``, ``step``, ``survival``, ``points`` or a callable that gets a
                `resgym.Transition` and returns float32 [N].
            max_episode_steps: steps after which an episode is truncated; None for no limit.
            invalid_action: ``error``, ``noop``, ``penalty`` or ``terminate``.
            autoreset_mode: SAME_STEP, NEXT_STEP or DISABLED.
            device: device of the games and results.
            output: ``torch`` (tensors on ``device``) or ``numpy``.
            backend: ``auto``, or the name of an implementation of the moves.
            render_mode: ``ansi``, ``human``, and with 2 or 3 axes ``rgb_array`` (needs matplotlib)
                or ``svg``; see `render`. None for no frames.
            starts: positions that episodes start from, drawn uniformly: a file, see
                `resgym.polynomials.starts.read_starts`, or lists of points. None: random starts.
            observation: ``points``, or ``flat`` for one row of numbers per game.
            episode_statistics: False leaves ``episode`` out of info, for wrappers that count.
            full_info: put all keys into the info of every reset and step, including ``action_mask``
                int8 [N, A].

        Raises:
            ValueError, TypeError: an argument is out of range; the message names it.
        """
        check_choice("seat", seat, SEATS)
        num_envs = check_integer("num_envs", num_envs, 1, 2**62)
        spec = GameSpec(dimension, max_num_points, max_value, polytope, reposition, rule, unit)
        check_startable(spec)
        check_flag("scale_observation", scale_observation)
        check_reward(reward)
        limit = NO_LIMIT if max_episode_steps is None else max_episode_steps
        resolved = devices.resolve_device(device)
        # Positions before and after a step, an observation, and the bounds of its space.
        size = 32 * max_num_points * dimension
        if num_envs * size > 2**28:
            devices.check_memory(f"num_envs: {num_envs} games", num_envs * size, size, resolved)
        plan = StepPlan(
            spec,
            start_spec=spec,
            seat=seat,
            reward=reward,
            invalid_action=check_choice("invalid_action", invalid_action, INVALID_ACTIONS),
            autoreset_mode=parse_autoreset_mode(autoreset_mode).name,
            max_episode_steps=check_integer("max_episode_steps", limit, 1),
            scale_observation=scale_observation,
            starts=resolve_starts(starts, spec, resolved),
        )
        backend_found = resolve_backend(backend, resolved, spec)
        form = ResultForm(output, observation, episode_statistics, full_info)
        super().__init__(num_envs, plan, backend_found, resolved, form, render_mode, opponent)


class AlternatingPlayers(HironakaVectorEnv):
    """One seat of an environment of both seats: a step is a whole move.

    It is a `HironakaVectorEnv` with ``seat`` and ``opponent``, and with the game, reward, limits
    and modes of ``env``. It plays games of its own, which start at its first reset.
    ``max_episode_steps`` of ``env`` counts half-moves, so an episode here has at most half as many
    steps.
    """

    def __init__(self, env: HironakaVectorEnv, seat: Role = "host", opponent: Any = None) -> None:
        """Make the environment.

        Raises:
            ValueError, TypeError: ``env`` does not have both seats, or the seat or opponent is
                invalid.
        """
        if not isinstance(env, HironakaVectorEnv) or env.seat != "both":
            raise TypeError(
                f"env must be a HironakaVectorEnv with both seats, got {type(env).__name__}"
            )
        plan = replace(
            env.plan,
            seat=check_role(seat, "seat"),
            max_episode_steps=(env.plan.max_episode_steps + 1) // 2,
        )
        PlannedVectorEnv.__init__(
            self, env.num_envs, plan, env.backend, env.device, env.form, env.render_mode, opponent
        )
        self.env = env

    def close_extras(self, **kwargs: Any) -> None:
        """Close the wrapped environment too."""
        self.env.close()


class HironakaEnv(gymnasium.Env[Any, Any]):
    """One game of a `HironakaVectorEnv` without autoreset; takes its keyword arguments.

    Without `gymnasium.make` there is no time limit unless ``max_episode_steps`` is given.
    """

    metadata = HironakaVectorEnv.metadata

    def __init__(self, **kwargs: Any) -> None:
        for name in ("num_envs", "output", "autoreset_mode", "episode_statistics", "full_info"):
            if name in kwargs:
                raise TypeError(f"{name} is for make_vec: a single environment has none")
        # `gymnasium.make` adds the time limit itself.
        kwargs = {"max_episode_steps": None, **kwargs}
        vector_env = HironakaVectorEnv(
            output="numpy", autoreset_mode=AutoresetMode.DISABLED, **kwargs
        )
        self.vector_env = vector_env
        self.observation_space = vector_env.single_observation_space
        self.action_space = LegalDiscrete(vector_env.single_action_space, vector_env._legal_now)
        self.metadata = type(self).metadata | {"render_modes": vector_env.metadata["render_modes"]}
        self.render_mode = vector_env.render_mode
        self._every_action = np.ones(vector_env.plan.num_actions, np.int8)

    def __setstate__(self, state: StateDict) -> None:
        vars(self).update(state)
        self.action_space = LegalDiscrete(self.action_space, self.vector_env._legal_now)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Start an episode; ``options={"points": ...}`` sets the start.

        With rule ``thom``, ``weights`` may be given too. The info of reset and step has
        ``action_mask`` int8 [A], 1 = legal, and ``overflow``, a bool array without axes.

        Raises:
            ValueError, TypeError: the seed or an option does not fit; nothing changes then.
        """
        if seed is not None:
            seed = check_integer("seed", seed, 0, MAX_SEED)
        if "reset_mask" in parse_options(options):
            raise ValueError("options must be 'points' or 'weights', got 'reset_mask'")
        observation, _ = self.vector_env.reset(seed=seed, options=options)
        # Only now, so that a refused reset has no effect; nothing here uses `np_random`.
        super().reset(seed=seed)
        return _row(observation), {"action_mask": self._mask(), "overflow": np.array(False)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Play one action; see the vector environment for its meaning."""
        values = array_of("action", action)
        if values.size != 1:
            raise ValueError(f"action must be one integer, got shape {values.shape}")
        observation, reward, terminated, truncated, info = self.vector_env.step(values.reshape(1))
        row_info = {"action_mask": self._mask(), "overflow": info["overflow"].reshape(())}
        if "rewards" in info:
            row_info["rewards"] = info["rewards"][0]
        return (
            _row(observation),
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            row_info,
        )

    def __getattr__(self, name: str) -> Any:
        """Get what is as in `HironakaVectorEnv`: the game, its sizes, and what changes them."""
        if name in ("games", "plan", "set_opponent", "set_stage"):
            return getattr(self.vector_env, name)
        return self.__getattribute__(name)  # the usual error

    def _mask(self) -> np.ndarray:
        """Return int8 [A], as `Discrete.sample` takes it."""
        if self.vector_env.all_actions_legal:
            return self._every_action.copy()
        return self.action_masks().astype(np.int8)

    def action_masks(self) -> np.ndarray:
        """Bool [A], True = legal."""
        return np.asarray(self.vector_env.action_masks()[0])

    def render(self) -> Any:
        """Return the frame of the game in ``render_mode``."""
        frames = self.vector_env.render()
        return None if frames is None else frames[0]


def _row(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {name: part[0] for name, part in observation.items()}
    return observation[0]
