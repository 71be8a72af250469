"""The same games one at a time, as plain Gymnasium environments with NumPy results."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from resgym.envs.arguments import MAX_SEED, parse_options
from resgym.envs.results import LegalDiscrete
from resgym.envs.vector_env import HironakaVectorEnv
from resgym.game.spec import check_integer
from resgym.game.stepping import EpisodeState


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
        fixed = {"output": "numpy", "autoreset_mode": AutoresetMode.DISABLED}
        vector_env = HironakaVectorEnv(**{"max_episode_steps": None, **fixed, **kwargs})
        self.vector_env = vector_env
        self.observation_space = vector_env.single_observation_space
        self.action_space = LegalDiscrete(vector_env.single_action_space, vector_env._legal_now)
        self.metadata = {**type(self).metadata, "render_modes": vector_env.metadata["render_modes"]}
        self.render_mode = vector_env.render_mode
        self._every_action = np.ones(vector_env.plan.num_actions, np.int8)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.action_space = LegalDiscrete(self.action_space, self.vector_env._legal_now)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; ``options={"points": ...}`` sets the start.

        The info of reset and step has ``action_mask`` int8 [A], 1 = legal, and ``overflow``, a bool
        array without axes.
        """
        if seed is not None:
            seed = check_integer("seed", seed, 0, MAX_SEED)
        if "reset_mask" in parse_options(options):
            raise ValueError("options must be 'points', got ['reset_mask']")
        observation, _ = self.vector_env.reset(seed=seed, options=options)
        # Only now, so that a refused reset has no effect; nothing here uses `np_random`.
        super().reset(seed=seed)
        return _row(observation), {"action_mask": self._mask(), "overflow": np.array(False)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; see the vector environment for its meaning."""
        values = np.asarray(action)
        if values.size != 1:
            raise ValueError(f"action must be one integer, got shape {values.shape}")
        observation, reward, terminated, truncated, info = self.vector_env.step(values.reshape(1))
        row_info = {"action_mask": self._mask(), "overflow": info["overflow"].reshape(())}
        if "rewards" in info:
            row_info["rewards"] = info["rewards"][0]
        ends = bool(terminated[0]), bool(truncated[0])
        return _row(observation), float(reward[0]), *ends, row_info

    @property
    def games(self) -> EpisodeState:
        """The current game, in row 0; see `HironakaVectorEnv.games`."""
        return self.vector_env.games

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

    def close(self) -> None:
        """Close the environment; it cannot be reset again."""
        self.vector_env.close()


def _row(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {name: part[0] for name, part in observation.items()}
    return observation[0]
