"""The seam to stable-baselines3 (2.9.2): its private parts, and observations as it reads them.

All functions about models take any algorithm of SB3 or sb3-contrib, ours included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.utils import get_parameters_by_name
from torch import Tensor

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


def check_spaces(*given: spaces.Space) -> None:
    """ValueError if numbers of a space do not begin at 0, as SB3 and our networks take it."""
    for space in given:
        for each in getattr(space, "spaces", {"": space}).values():
            if np.any(getattr(each, "start", 0)):
                raise ValueError(f"space: got {each}; expected one that starts at 0")


Observation = Tensor | dict[str, Tensor]


def entries_of(observation: Any) -> dict[str, Any]:
    """The entries of a dictionary observation; any other is one entry, named ``""``."""
    return observation if isinstance(observation, dict) else {"": observation}


def each_entry(function: Callable[..., Any], observation: Any, *others: Any) -> Any:
    """Apply a function to observations, or to the entries of each name in all of them."""
    if not isinstance(observation, dict):
        return function(observation, *others)
    return {
        key: function(value, *(other[key] for other in others))
        for key, value in observation.items()
    }


def to_device(observation: Any, device: torch.device) -> Any:
    """The observation as tensors on a device; data already there is not copied."""
    return each_entry(partial(torch.as_tensor, device=device), observation)


def to_arrays(observation: Any) -> Any:
    """Return the observation as numpy arrays; only tensors are converted."""
    return each_entry(lambda x: x.cpu().numpy() if isinstance(x, Tensor) else x, observation)


def to_numpy(observation: Observation, space: spaces.Space) -> Any:
    """Return a numpy copy in the dtype of the space; later steps do not change it."""
    if isinstance(observation, dict) and isinstance(space, spaces.Dict):
        return {key: to_numpy(value, space[key]) for key, value in observation.items()}
    return np.array(observation.detach().cpu().numpy(), dtype=space.dtype)  # type: ignore[union-attr]


def reached_observation(next_observation: Observation, info: Mapping[str, Any]) -> Observation:
    """Return the observations that a step reached, before any reset, to learn from.

    Args:
        next_observation: Observation that `step` returned, `[N, ...]` or a dictionary of such.
        info: Info of the same step, with `final_obs` and its mask `_final_obs` if a row ended.

    Returns:
        `final_obs` in rows that ended, `next_observation` in the others.
    """
    if "final_obs" not in info:
        return next_observation
    ended = info["_final_obs"]

    def select(shown: Tensor, final: Tensor) -> Tensor:
        return torch.where(ended.reshape(-1, *[1] * (shown.dim() - 1)), final, shown)

    return each_entry(select, next_observation, info["final_obs"])  # type: ignore[no-any-return]


def rows_of(value: Any, num_envs: int, indices: Iterable[int]) -> list[Any]:
    """One value per row, for SB3's `get_attr` and `env_method`.

    Tensors and arrays of shape `[N, ...]` and tuples of length N are taken as one entry per row,
    tensors as numpy; anything else belongs to all rows.
    """
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy().copy()
    per_row = isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    per_row = per_row and len(value) == num_envs
    return [value[index] if per_row else value for index in indices]
