"""All uses of private parts of stable-baselines3 (2.9.2).

All functions take any algorithm of SB3 or sb3-contrib, ours included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.utils import get_parameters_by_name

from sb3_ext.adapter.observations import to_device

UPDATES = "_n_updates"
"""The counter of gradient updates."""

COUNTERS = (
    *("_current_progress_remaining", "_episode_num", "_n_calls", UPDATES),
    *("exploration_rate", "num_timesteps"),
)
"""Plain numbers that a run continues from."""

OBSERVATIONS = ("_last_obs", "_last_original_obs", "_last_episode_starts")
"""Attributes of the last observation; the second is the one before `VecNormalize`."""


def num_updates(model: Any) -> int:
    """Gradient updates made so far; 0 before the first."""
    return int(getattr(model, UPDATES, 0))


def progress_remaining(model: Any) -> float:
    """From 1 at the start of `learn` to 0 at its end."""
    return float(model._current_progress_remaining)


def begin_learning(
    model: Any, total_timesteps: int, callback: Any = None, *, reset_num_timesteps: bool = True
) -> BaseCallback:
    """What `learn` does before its loop, which returns the callback to collect with."""
    return model._setup_learn(total_timesteps, callback, reset_num_timesteps)[1]  # type: ignore[no-any-return]


def tell_buffer(model: Any, method: str) -> None:
    """Call a method of a model's replay buffer, if it has one of that name.

    ``cut`` before transitions of other games; ``allocate`` takes the memory, or raises a
    ValueError if there is too little.
    """
    getattr(getattr(model, "replay_buffer", None), method, lambda: None)()


def restart_episodes(model: Any) -> None:
    """Start new episodes in every row of the model's environment."""
    tell_buffer(model, "cut")
    if getattr(model, "collects_tensors", False):
        model._last_obs = to_device(model.env.reset_tensors(), model.device)
        model.last_legal = None
        return
    model._last_obs = model.env.reset()
    model._last_episode_starts = np.ones((model.env.num_envs,), dtype=bool)


def forget_observation(model: Any) -> None:
    """Makes the next `learn` reset the environment."""
    tell_buffer(model, "cut")
    model._last_obs = None


def has_observation(model: Any) -> bool:
    """Return whether the model has a last observation."""
    return model._last_obs is not None


def networks_were_replaced(model: Any) -> None:
    """Makes a DQN refer to the networks that its policy has now."""
    model._create_aliases()
    model.batch_norm_stats = get_parameters_by_name(model.q_net, ["running_"])
    model.batch_norm_stats_target = get_parameters_by_name(model.q_net_target, ["running_"])


def walk_callbacks(callback: Any) -> Iterator[BaseCallback]:
    """A callback, those in its list, and those inside of them, in order; None has none."""
    if isinstance(callback, (list, tuple)):
        for child in callback:
            yield from walk_callbacks(child)
    elif isinstance(callback, CallbackList):
        yield from walk_callbacks(callback.callbacks)
    elif isinstance(callback, BaseCallback):
        yield callback
        yield from walk_callbacks(getattr(callback, "callback", None))


def call_each(callback: Any, method: str) -> None:
    """Call a method of every callback inside of one, if it has one of that name."""
    for each in walk_callbacks(callback):
        getattr(each, method, lambda: None)()
