"""Any vector environment that returns torch tensors, as a `VecEnv` of stable-baselines3.

Two doors to the same rows. The numpy door (`reset`, `step`) is SB3's, for algorithms that know
nothing of tensors; it does Python work only for rows that ended. The tensor door (`reset_tensors`,
`step_tensors`) hands tensors through and waits for the device in neither direction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter.episodes import EpisodeCounter, MonitorFile
from sb3_ext.adapter.from_env_fns import batched_env, layers_of
from sb3_ext.adapter.observations import (
    Observation,
    each_entry,
    entries_of,
    row_infos,
    rows_of,
    to_numpy,
)

VecEnvIndices = int | Iterable[int] | None
# Attributes that SB3 asks a single environment for.
_SINGLE = {"action_space": "single_action_space", "observation_space": "single_observation_space"}


class TensorVecEnv(VecEnv):
    """Adapts a `gymnasium.vector.VectorEnv` of N rows with tensor results to SB3.

    Wants of the environment: `metadata["autoreset_mode"]` is `AutoresetMode.SAME_STEP`; results
    are tensors `[N, ...]`; when a row ends, `info["final_obs"]` (dense, `[N, ...]`) and its mask
    `info["_final_obs"]`. If present, `info["episode"]` = {r, l} with `info["_episode"]` gives the
    statistics (otherwise they are counted here) and `action_masks()` the legal actions.

    In `infos` the dictionaries of rows that go on are empty and their own; those of rows that
    ended hold `terminal_observation`, `TimeLimit.truncated`, `episode` {r, l, t} and every further
    per-row entry of the environment's info.

    Args:
        venv: The environment; or a list of functions that make single ones, as for SB3's
            `DummyVecEnv`, from which one batched environment is made (see `batched_env`).
        filename: Write finished episodes to this `monitor.csv`. With a list of functions, the file
            of their `Monitor` is the default.
        info_keywords: Further entries of the info to write to the file.
        **make_kwargs: With a list of functions, keyword arguments of the batched environment.

    Raises:
        ValueError, TypeError: The environment is not one of this kind.
    """

    def __init__(
        self,
        venv: VectorEnv | Sequence[Callable[[], gymnasium.Env]],
        filename: str | os.PathLike[str] | None = None,
        info_keywords: Sequence[str] = (),
        **make_kwargs: Any,
    ) -> None:
        override_existing = True
        if isinstance(venv, (list, tuple)):
            venv, request = batched_env(venv, **make_kwargs)
            if filename is None and request is not None:
                filename, keywords, override_existing = request
                info_keywords = info_keywords or keywords
        elif make_kwargs:
            raise TypeError(f"{sorted(make_kwargs)}: only with a list of environment functions")
        self.venv = _checked(venv)
        super().__init__(
            self.venv.num_envs, self.venv.single_observation_space, self.venv.single_action_space
        )
        self.metadata = dict(self.venv.metadata)
        self._device: torch.device | None = None
        self._actions: Any = None
        self._start_time = time.time()
        self._counter = EpisodeCounter()
        self._monitor_file: MonitorFile | None = None
        if filename is not None:
            env_id = str(getattr(self.venv.spec, "id", None))
            file = (os.fspath(filename), env_id, tuple(info_keywords), override_existing)
            self._monitor_file = MonitorFile(*file)

    @property
    def device(self) -> torch.device:
        """Where the tensors of the environment live; may be unknown before the first reset."""
        if self._device is None:
            if not self.has_attr("device"):
                raise ValueError("device: unknown before the first reset of this environment")
            self._device = torch.device(self._find("device"))
        return self._device

    def reset_tensors(self) -> Observation:
        """Start new episodes in all rows with the seeds and options set before; tensors."""
        seeds = None if self._seeds == [None] * self.num_envs else list(self._seeds)
        options: Any = self._options[0]
        if any(each is not options for each in self._options):  # SB3 repeats what is for all rows
            options = {key: [each[key] for each in self._options] for key in options}
        observation, _ = self.venv.reset(seed=seeds, options=options or None)  # type: ignore[arg-type]
        self._reset_seeds()
        self._reset_options()
        self._counter.restart()
        first = next(iter(entries_of(observation).values()))
        self._device = getattr(first, "device", None)
        return observation

    def step_tensors(
        self, actions: Tensor | np.ndarray
    ) -> tuple[Observation, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Step all rows without waiting for the device.

        Returns:
            Observations, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, and
            the info of the environment, always with `episode` and `_episode` where there is
            `final_obs`. Rows that ended show the first observation of their next episode (see
            `reached_observation`).
        """
        values = torch.as_tensor(actions, device=self.device)
        observation, rewards, terminated, truncated, info = self.venv.step(values)
        info = self._counter.update(rewards, terminated | truncated, info)
        if self._monitor_file is not None:
            self._monitor_file.add(info)
        return observation, rewards, terminated, truncated, info

    @property
    def all_actions_legal(self) -> bool:
        """Whether the environment says that every action is legal in every position."""
        # The environment itself: a wrapper may have changed what it is about.
        own_masks = type(self).action_masks_tensor is TensorVecEnv.action_masks_tensor
        own = own_masks and hasattr(type(self.venv), "all_actions_legal")
        return own and bool(self.venv.all_actions_legal)  # type: ignore[attr-defined]

    def action_masks_tensor(self) -> Tensor:
        """Legal actions of the current observation, `[N, A]` bool, True = legal."""
        return self._find("action_masks")()  # type: ignore[no-any-return]

    def reset(self) -> Any:
        """Start new episodes in all rows; numpy observations, `[N, ...]`."""
        return to_numpy(self.reset_tensors(), self.observation_space)

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all rows: observations, rewards `[N]` float32, dones `[N]` bool, infos."""
        if self._actions is None:
            raise ValueError("step_wait: call step_async(actions) first")
        actions, self._actions = self._actions, None
        observation, rewards, terminated, truncated, info = self.step_tensors(actions)
        dones = (terminated | truncated).cpu().numpy()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if dones.any():
            self._fill_infos(infos, np.flatnonzero(dones), terminated, truncated, info)
        shown = to_numpy(observation, self.observation_space)
        return shown, rewards.cpu().numpy().astype(np.float32), dones, infos

    def action_masks(self) -> np.ndarray:
        """Legal actions of the current observation, `[N, A]` bool, True = legal."""
        return self.action_masks_tensor().cpu().numpy().astype(bool)

    def _fill_infos(
        self,
        infos: list[dict[str, Any]],
        ended: np.ndarray,
        terminated: Tensor,
        truncated: Tensor,
        info: dict[str, Any],
    ) -> None:
        if "final_obs" not in info:
            raise ValueError(
                f"final_obs: missing in the info of {self.venv} although rows {ended[:5].tolist()}"
                f" ended; it has {sorted(info)}"
            )
        rows = torch.as_tensor(ended, device=terminated.device)
        final = each_entry(lambda value: value[rows], info["final_obs"])
        final = to_numpy(final, self.observation_space)
        columns = (truncated & ~terminated, info["episode"]["r"], info["episode"]["l"])
        timeout, returns, lengths = (each[rows].tolist() for each in columns)
        seconds = round(time.time() - self._start_time, 6)
        for position, entry in enumerate(row_infos(info, rows, self.num_envs)):
            entry["terminal_observation"] = each_entry(itemgetter(position), final)
            entry["TimeLimit.truncated"] = timeout[position]
            entry["episode"] = {"r": returns[position], "l": lengths[position], "t": seconds}
            infos[ended[position]] = entry

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, as tensors and plain data, for a checkpoint."""
        return {
            "episodes": self._counter.state_dict(),
            "monitor": None if self._monitor_file is None else self._monitor_file.state_dict(),
            "venv": self._find("state_dict")(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, without a reset; ValueError if it does not fit.

        A `monitor.csv` that goes on is cut back to the episodes that it had then.
        """
        self._find("load_state_dict")(state["venv"])
        self._counter.load_state_dict(state["episodes"], self.device)
        if self._monitor_file is not None and state["monitor"] is not None:
            self._monitor_file.load_state_dict(state["monitor"])
        self._reset_seeds()  # those of before have been used

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute, one value per row (see `rows_of`)."""
        return rows_of(self._find(attr_name), self.num_envs, self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the environment; ValueError if not for all rows."""
        if sorted(set(self._get_indices(indices))) != list(range(self.num_envs)):
            raise ValueError(
                f"indices: got {indices}, but all {self.num_envs} rows are one environment and"
                f" {attr_name!r} can only be set for all of them"
            )
        owners = (layer for layer in layers_of(self.venv) if hasattr(layer, attr_name))
        setattr(next(owners, self.venv.unwrapped), attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of the environment once, for all rows; the results as `rows_of` says."""
        result = self._find(method_name)(*method_args, **method_kwargs)
        return rows_of(result, self.num_envs, self._get_indices(indices))

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether a wrapper is there; True for `Monitor`, whose work is done here.

        Not where the environment was made with ``episode_statistics=False``: another, SB3's
        `VecMonitor` say, is to count then.
        """
        form = getattr(self.venv.unwrapped, "form", None)
        found = issubclass(wrapper_class, Monitor) and getattr(form, "episode_statistics", True)
        found = found or any(isinstance(layer, wrapper_class) for layer in layers_of(self.venv))
        return [found for _ in self._get_indices(indices)]

    def get_images(self) -> list[np.ndarray | None]:
        """One frame per row; None where the environment draws none."""
        frames = self.venv.render() if self.render_mode == "rgb_array" else None
        return [None] * self.num_envs if frames is None else [np.asarray(each) for each in frames]

    def _find(self, name: str) -> Any:
        """An attribute of the outermost layer that has it: Gymnasium's wrappers hide them."""
        name = _SINGLE.get(name, name)
        layers = (layer for layer in layers_of(self.venv) if hasattr(layer, name))
        return getattr(next(layers, self.venv), name)

    def close(self) -> None:
        """Close the environment and the monitor file; again is harmless."""
        if self._monitor_file is not None:
            self._monitor_file.close()
        self.venv.close()


def _checked(venv: Any) -> VectorEnv:
    if not isinstance(venv, VectorEnv):
        raise TypeError(
            f"venv: got {type(venv).__name__}, need a gymnasium.vector.VectorEnv that returns torch"
            " tensors, or a list of environment functions"
        )
    mode = venv.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"autoreset_mode: got {mode}, TensorVecEnv needs AutoresetMode.SAME_STEP (SB3 expects"
            " rows to restart within the step that ends them)"
        )
    return venv
