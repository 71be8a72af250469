"""The seam to stable-baselines3 (2.9.2): what it keeps private, reads and writes.

Its private parts, observations and infos as it reads them, one batch in place of its list of single
environments, and its ``monitor.csv``. All functions about models take any algorithm of SB3 or
sb3-contrib, ours included.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import HumanRendering, OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.utils import get_parameters_by_name
from torch import Tensor

from sb3_ext.types import Info, StateDict

UPDATES = "_n_updates"
"""The counter of gradient updates."""

COUNTERS = (
    "_current_progress_remaining",
    "_episode_num",
    "_n_calls",
    UPDATES,
    "exploration_rate",
    "num_timesteps",
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
    model._last_obs = model.env.reset()
    model._last_episode_starts = np.ones(model.env.num_envs, dtype=bool)
    model.last_legal = model.last_said = None  # of ours


def forget_observation(model: Any) -> None:
    """Makes the next `learn` reset the environment."""
    tell_buffer(model, "cut")
    model._last_obs = None


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
    """Raise ValueError for a space, or an entry of one, whose least value is not 0 (``start``).

    SB3 and our networks ignore ``start``.
    """
    for space in given:
        for entry in entries_of(getattr(space, "spaces", space)).values():
            if np.any(getattr(entry, "start", 0)):
                raise ValueError(f"space: got {entry}; expected one that starts at 0")


Observation = Tensor | dict[str, Tensor]


def entries_of(observation: Any) -> dict[str, Any]:
    """The entries of a dictionary observation; any other is one entry, named ``""``."""
    return observation if isinstance(observation, dict) else {"": observation}


def first_entry(observation: Any) -> Any:
    """Any entry, such as for the number of rows and the device, which all entries share."""
    return next(iter(entries_of(observation).values()))


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


def owned(value: Any, device: torch.device | str | None = None) -> Any:
    """Copy tensors and arrays into new tensors, also inside of dictionaries and tuples.

    They have no gradients, which simulators that can be differentiated would pass on.
    """
    if isinstance(value, dict):
        return {key: owned(each, device) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(owned(each, device) for each in value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.tensor(value)
    return value.detach().to(device, copy=True) if isinstance(value, Tensor) else value


def to_numpy(observation: Any, space: Any) -> Any:
    """Return a numpy copy in the dtype of the space; later steps do not change it."""
    return each_entry(lambda x, own: np.array(x.cpu().numpy(), own.dtype), observation, space)


def reached_observation(next_observation: Observation, info: Info) -> Observation:
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


# Wrappers that gymnasium.make and SB3's make_vec_env put on by themselves. The batched
# environment does their work: it checks its input, keeps its time limit, counts its episodes.
_REPLACED = (HumanRendering, Monitor, OrderEnforcing, PassiveEnvChecker, TimeLimit)


def batched_env(
    env_fns: Sequence[Callable[[], gymnasium.Env]], **kwargs: Any
) -> tuple[VectorEnv, Monitor | None]:
    """Make one vector environment of `len(env_fns)` rows like the environment of the first one.

    The first function is called once to learn the environment's specification (all must make the
    same one), then `gymnasium.make_vec` makes the batched one with the same keyword arguments, time
    limit, and `kwargs`.

    Returns:
        The environment; and the `Monitor` of the single environment, if there is one.

    Raises:
        ValueError: There are no functions, or no batched environment of tensors can be made.
    """
    env = env_fns[0]()
    env.close()
    *wrappers, innermost = layers_of(env)
    spec = copy.deepcopy(innermost.spec)
    limits = [each._max_episode_steps for each in wrappers if isinstance(each, TimeLimit)]
    foreign = [each for each in wrappers if not isinstance(each, _REPLACED)]
    if spec is None:
        raise ValueError(f"env_fns: {innermost} is not registered with Gymnasium")
    if spec.vector_entry_point is None:
        raise ValueError(f"env_fns: {spec.id} has no vector_entry_point; use SB3's DummyVecEnv")
    if foreign:
        raise ValueError(
            f"env_wrapper: {type(foreign[0]).__name__} cannot be put on the batched {spec.id}"
        )
    if limits:
        kwargs.setdefault("max_episode_steps", min(limits))
    batched = gymnasium.make_vec(
        spec, num_envs=len(env_fns), vectorization_mode="vector_entry_point", **kwargs
    )
    return batched, next((each for each in wrappers if isinstance(each, Monitor)), None)


def layers_of(env: Any) -> Iterator[Any]:
    """An environment and what it wraps, single or batched, outermost first."""
    yield env
    while isinstance(env, (gymnasium.Wrapper, VectorWrapper)):
        env = env.env
        yield env


STEPS_BETWEEN_WRITES = 64


def infos_of(info: Info, rows: np.ndarray) -> list[Info]:
    """What an info with masks `_key` says about some rows, as SB3 has it: a dictionary for each."""
    found: list[Info] = [{} for _ in rows]
    for key, value in info.items():
        if key.startswith("_") or key in ("final_obs", "final_info"):
            continue
        if isinstance(value, dict):
            values = infos_of(value, rows)
        elif isinstance(value, (Tensor, np.ndarray)) and value.ndim:
            part = to_arrays(value)[rows]
            values = part.tolist() if part.ndim == 1 else part
        else:
            continue
        known = to_arrays(info[f"_{key}"])[rows] if f"_{key}" in info else [True] * len(rows)
        for own, has, each in zip(found, known, values, strict=True):
            if has:
                own[key] = each
    return found


class MonitorFile:
    """Append finished episodes to a `monitor.csv`, the file of SB3's `Monitor`.

    Statistics are written at once, or without `now` after every 64 steps with finished episodes, on
    `flush` and on `close`, so that an accelerator rarely waits. The arguments are those of
    `Monitor`.
    """

    def __init__(
        self,
        filename: str,
        env_id: str,
        override_existing: bool = True,
        info_keywords: Sequence[str] = (),
    ) -> None:
        self._start = time.time()
        self._pending: list[tuple[float, Info]] = []
        self._keywords = tuple(info_keywords)
        self._writer = ResultsWriter(
            filename,
            {"t_start": self._start, "env_id": env_id},
            self._keywords,
            override_existing,
        )
        self._file = self._writer.file_handler

    def add(self, info: Info, *, now: bool) -> None:
        """Note the episodes that ended in a step."""
        if "episode" in info:
            names = ("episode", "_episode", *self._keywords)
            told = {name: info[name] for name in names if name in info}
            self._pending.append((time.time() - self._start, told))
        if now or len(self._pending) >= STEPS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._file.closed:
            return
        for seconds, told in self._pending:
            for each in infos_of(told, np.flatnonzero(told["_episode"].cpu())):
                own = each["episode"]
                entry = {"r": round(own["r"], 6), "l": own["l"], "t": round(seconds, 6)}
                self._writer.logger.writerow(entry | {key: each[key] for key in self._keywords})
        self._pending.clear()
        self._file.flush()

    def state_dict(self) -> StateDict:
        """Write what has been collected; return the file's length, digest and first moment."""
        self.flush()
        content = Path(self._file.name).read_bytes()
        return {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "start": self._start,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Remove the episodes written after `state_dict`, which will be played again.

        A file that has changed before that point is left as it is. Times count from the file's
        start, as SB3 sorts by them.
        """
        self._start = state.get("start", self._start)
        self._pending.clear()
        begin = Path(self._file.name).read_bytes()[: state["bytes"]]
        if hashlib.sha256(begin).hexdigest() == state["sha256"] and not self._file.closed:
            self._file.seek(state["bytes"])
            self._file.truncate()

    def close(self) -> None:
        """Write what is left and close the file; again is harmless."""
        self.flush()
        self._writer.close()
