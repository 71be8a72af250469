"""What stable-baselines3 (2.9.2) keeps private and the trainer of two players needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import get_parameters_by_name

from sb3_ext.networks.observations import to_device

__all__ = [
    "begin_learning",
    "has_observation",
    "networks_were_replaced",
    "num_updates",
    "restart_episodes",
]


def num_updates(model: Any) -> int:
    """Gradient updates made so far; 0 before the first."""
    return int(getattr(model, "_n_updates", 0))


def begin_learning(
    model: Any, total_timesteps: int, callback: Any = None, *, reset_num_timesteps: bool = True
) -> BaseCallback:
    """What `learn` does before its loop, for who collects and updates by hand."""
    return model._setup_learn(total_timesteps, callback, reset_num_timesteps)[1]  # type: ignore[no-any-return]


def has_observation(model: Any) -> bool:
    """Whether the model knows where its environment stands."""
    return model._last_obs is not None


def restart_episodes(model: Any) -> None:
    """Start new episodes in every row of the model's environment."""
    if getattr(model, "_uses_tensors", lambda: False)():
        model._last_obs = to_device(model.env.reset_tensors(), model.device)
        model._last_legal = None
        return
    model._last_obs = model.env.reset()
    model._last_episode_starts = np.ones((model.env.num_envs,), dtype=bool)


def networks_were_replaced(model: Any) -> None:
    """Makes a DQN refer to the networks that its policy has now."""
    model._create_aliases()
    model.batch_norm_stats = get_parameters_by_name(model.q_net, ["running_"])
    model.batch_norm_stats_target = get_parameters_by_name(model.q_net_target, ["running_"])
