"""Any vector environment of Gymnasium as a `VecEnv` of stable-baselines3.

There are two interfaces to the same rows. `reset` and `step` are SB3's, with numpy arrays; they do
Python work only for rows that ended. `reset_tensors` and `step_tensors` pass tensors and never wait
for the device.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter.seam import (
    MonitorFile,
    Observation,
    batched_env,
    check_spaces,
    each_entry,
    first_entry,
    infos_of,
    layers_of,
    owned,
    rows_of,
    to_arrays,
    to_numpy,
)
from sb3_ext.types import Info, StateDict, StrPath

SHOWING: weakref.WeakSet[TensorVecEnv] = weakref.WeakSet()
"""Those that have returned observations, see `TensorVecEnv.shown`."""
VecEnvIndices = int | Iterable[int] | None
_GOALS = "compute_reward"  # of any goals, which SB3's HER asks of one row
_READING = ("action_masks", _GOALS, "render")  # methods whose result has one entry a row
_SINGLE = {"action_space": "single_action_space", "observation_space": "single_observation_space"}


class TensorVecEnv(VecEnv):
    """Adapt a `gymnasium.vector.VectorEnv` of N rows to SB3.

    The environment needs `metadata["autoreset_mode"]` = `AutoresetMode.SAME_STEP`, and returns
    tensors or arrays `[N, ...]`. When a row ends, info has `final_obs` (dense, `[N, ...]`, or one
    observation a row as in `SyncVectorEnv`) with the mask `_final_obs`. It may have `episode` =
    {r, l} with the mask `_episode`; otherwise they are counted here. `action_masks()`, if present,
    returns the legal actions.

    In `infos`, rows that ended have `terminal_observation`, `TimeLimit.truncated`, `episode` {r, l,
    t}, and what the environment says at the end. Rows that continue have what an environment of
    arrays says, and nothing with tensors.

    The attribute `shown` is the observation that `reset` or `step` has returned last, and `said`
    what the environment told of the last step, another object in every one; None after a reset.
    Results belong to the caller: they are copied, because an environment may write its next ones
    into the same memory. One with `returns_new_tensors` = True promises not to.

    Args:
        venv: The environment; or a list of functions that make single ones, as for SB3's
            `DummyVecEnv`, from which one batched environment is made (see `batched_env`).
        filename: Write finished episodes to this `monitor.csv`. With a list of functions, the file
            of their `Monitor` is the default.
        info_keywords: Entries of the final info that the file and `episode` also get.
        **make_kwargs: With a list of functions, keyword arguments of the batched environment.

    Raises:
        ValueError, TypeError: The environment is not one of this kind.
    """

    def __init__(
        self,
        venv: VectorEnv | Sequence[Callable[[], gymnasium.Env]],
        filename: StrPath | None = None,
        info_keywords: Sequence[str] = (),
        **make_kwargs: Any,
    ) -> None:
        overrides = True
        if isinstance(venv, (list, tuple)):
            venv, monitor = batched_env(venv, **make_kwargs)
            if monitor is not None:
                info_keywords = info_keywords or monitor.info_keywords
                if filename is None and monitor.results_writer is not None:
                    file = monitor.results_writer.file_handler
                    # SB3 gives a new file that it is to append to no header.
                    overrides = "a" not in file.mode or not os.path.getsize(file.name)
                    filename = file.name
        elif make_kwargs:
            raise TypeError(f"{sorted(make_kwargs)}: only with a list of environment functions")
        self.venv = _checked(venv)
        super().__init__(
            self.venv.num_envs, self.venv.single_observation_space, self.venv.single_action_space
        )
        self.metadata = dict(self.venv.metadata)
        self.info_keywords = tuple(info_keywords)
        self._device: torch.device | None = None
        self._gives_arrays = self._owner("device") is None  # until the first reset
        self.said: Any = None
        self.shown: Any = None
        self._counted = torch.zeros(2, self.num_envs)  # returns and lengths so far
        self._start_time = time.time()
        form = getattr(self.venv.unwrapped, "form", None)
        self._counts_episodes = form is None
        self._has_statistics = form is None or form.episode_statistics
        self._monitor_file: MonitorFile | None = None
        if filename is not None:
            env_id = str(getattr(self.venv.spec, "id", None))
            self._monitor_file = MonitorFile(os.fspath(filename), env_id, overrides, info_keywords)
            weakref.finalize(self, self._monitor_file.close)  # also at exit

    @property
    def device(self) -> torch.device:
        """Device of the environment's tensors; may be unknown before the first reset."""
        if self._device is None:
            self._device = torch.device("cpu" if self._gives_arrays else self._find("device"))
        return self._device

    def reset_tensors(self) -> Observation:
        """Start new episodes in all rows with the seeds and options set before; tensors.

        Rows with other options than the first one are reset once more, with a `reset_mask`.
        """
        seeds: Any = None if self._seeds == [None] * self.num_envs else list(self._seeds)
        distinct = {id(each): each for each in self._options}  # SB3 repeats what is for all rows
        options = self._options[0] if len(distinct) == 1 else None
        observation, info = self.venv.reset(seed=seeds, options=options or None)
        for options in distinct.values() if len(distinct) > 1 else ():
            if options:
                mask = np.array([each is options for each in self._options])
                masked = {**options, "reset_mask": mask}
                observation, info = self.venv.reset(seed=seeds, options=masked)
        self._reset_seeds()
        self._reset_options()
        if not isinstance(info, dict):
            raise TypeError(f"info: got {type(info).__name__}; expected a dictionary")
        self._gives_arrays, self.said = not isinstance(first_entry(observation), Tensor), None
        if self._gives_arrays:
            self.reset_infos = infos_of(info, np.arange(self.num_envs))
        observation = self._owned(observation)
        self._device = first_entry(observation).device
        self._counted = torch.zeros(2, self.num_envs, device=self._device)
        return observation

    def _owned(self, results: Any) -> Any:
        # Looked up on the class, as a wrapper promises for itself.
        promised = getattr(type(self.venv), "returns_new_tensors", False) and not self._gives_arrays
        return results if promised else owned(results)

    def step_tensors(
        self, actions: Tensor | np.ndarray
    ) -> tuple[Observation, Tensor, Tensor, Tensor, Info]:
        """Step all rows without waiting for the device.

        Returns:
            Observations, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, and
            the info of the environment. Rows that ended show the first observation of their next
            episode (see `reached_observation`).

        Raises:
            ValueError: Rows ended without `final_obs` in the info.
        """
        values = torch.as_tensor(actions, device=self.device)
        *results, info = self.venv.step(values.cpu().numpy() if self._gives_arrays else values)
        told = dict(info)
        # Gymnasium's own environments have it; the rest is then about the next episodes.
        if "final_info" in info:
            own = ("final_obs", "_final_obs", "episode", "_episode")
            told = {key: info[key] for key in own if key in info} | info["final_info"]
        if self._gives_arrays and "final_obs" in told:
            told["final_obs"] = self._dense(told["final_obs"], results[0])
        observation, *numbers, told = self._owned((*results, told))
        rewards, *ends = (each.reshape(self.num_envs) for each in numbers)  # [N, 1] in some
        terminated, truncated = (each.bool() for each in ends)  # numbers in some environments
        ended = terminated | truncated
        # An environment that may leave it out has waited itself.
        if "final_obs" not in told and ended.any():
            raise ValueError(
                f"final_obs: missing in the info of {self.venv} although rows"
                f" {ended.nonzero()[:5, 0].tolist()} ended; it has {sorted(told)}"
            )
        if "final_obs" in told and not {*self.info_keywords} <= told.keys():
            raise ValueError(
                f"info_keywords: got {self.info_keywords}; expected some of {sorted(told)}"
            )
        if self._counts_episodes:
            self._count(rewards, ended, told)
        if self._monitor_file is not None:
            self._monitor_file.add(told, now=self.device.type == "cpu")
        self.said = (ended, truncated & ~terminated, info, told)
        return observation, rewards.float(), terminated, truncated, told

    def infos(self) -> list[Info]:
        """The infos that `step` returns, of the last step; waits for the device."""
        ended, timeout, info, told = self.said
        infos = infos_of(info if self._gives_arrays else {}, np.arange(self.num_envs))
        rows = np.flatnonzero(ended.cpu())
        if not len(rows):
            return infos
        final = each_entry(lambda value: value[torch.as_tensor(rows)], told["final_obs"])
        final = to_numpy(final, self.observation_space)
        timeouts = timeout.tolist()
        seconds = round(time.time() - self._start_time, 6)
        for position, (row, own) in enumerate(zip(rows, infos_of(told, rows), strict=True)):
            own["terminal_observation"] = each_entry(itemgetter(position), final)
            own["TimeLimit.truncated"] = timeouts[row]
            if "episode" in own:
                own["episode"] |= {"t": seconds, **{key: own[key] for key in self.info_keywords}}
            infos[row] = own
        return infos

    def _dense(self, final: Any, shown: Any) -> Any:
        """Gymnasium's own environments have one observation a row, None in rows that continue."""
        if isinstance(final, dict) or final.dtype != object:
            return final
        rows = zip(final, iterate(self.venv.observation_space, shown), strict=True)
        space = self.observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, [now if last is None else last for last, now in rows], empty)

    def _count(self, rewards: Tensor, ended: Tensor, info: Info) -> None:
        """Add the statistics of episodes, if the environment does not."""
        counted = self._counted + torch.stack([rewards, torch.ones_like(rewards)])
        self._counted = counted * ~ended
        if "episode" not in info:
            info |= {"episode": {"r": counted[0], "l": counted[1].long()}, "_episode": ended}

    @property
    def all_actions_legal(self) -> bool:
        """Whether the environment says that every action is legal in every position."""
        # The environment itself: a wrapper may have changed what it is about.
        own = hasattr(type(self.venv), "all_actions_legal")
        return own and bool(self.venv.all_actions_legal)  # type: ignore[attr-defined]

    def action_masks_tensor(self) -> Tensor:
        """Legal actions of the current observation, `[N, A]` bool, True = legal."""
        name = "action_masks"
        masks = np.stack(self.env_method(name)) if self._gives_arrays else self._find(name)()
        return torch.as_tensor(self._owned(masks), device=self.device).bool()

    def reset(self) -> Any:
        """Start new episodes in all rows; numpy observations, `[N, ...]`."""
        return self._show(self.reset_tensors())

    def _show(self, observation: Observation) -> Any:
        self.shown = to_numpy(observation, self.observation_space)
        SHOWING.add(self)
        return self.shown

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        # PyTorch does not take a list of arrays.
        self._actions = np.asarray(actions) if isinstance(actions, (list, tuple)) else actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[Info]]:
        """Step all rows: observations, rewards `[N]` float32, dones `[N]` bool, infos."""
        observation, rewards, terminated, truncated, _ = self.step_tensors(self._actions)
        self.flush()
        dones = (terminated | truncated).cpu().numpy()
        infos = self.infos()
        shown = self._show(observation)
        return shown, rewards.cpu().numpy(), dones, infos

    def action_masks(self) -> np.ndarray:
        """Legal actions of the current observation, `[N, A]` bool, True = legal."""
        return self.action_masks_tensor().cpu().numpy()

    def state_dict(self) -> StateDict:
        """All that the next steps depend on, as tensors and plain data, for a checkpoint."""
        return {
            "counted": self._counted,
            "monitor": None if self._monitor_file is None else self._monitor_file.state_dict(),
            "venv": self._find("state_dict")(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`, without a reset; ValueError if it does not fit.

        A `monitor.csv` that continues is cut back to the episodes that it had then.
        """
        self._find("load_state_dict")(state["venv"])
        self._counted = state["counted"].to(self.device, copy=True)
        if self._monitor_file is not None and state["monitor"] is not None:
            self._monitor_file.load_state_dict(state["monitor"])
        self._reset_seeds()  # those of before have been used

    def __getstate__(self) -> StateDict:
        """A copy writes no monitor file: it is the original's."""
        return {**vars(self), "_monitor_file": None, "said": None}

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute, one value per row (see `rows_of`)."""
        if singles := self._singles(attr_name, indices):
            return [each.get_wrapper_attr(attr_name) for each in singles]
        return rows_of(self._find(attr_name), self.num_envs, self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the environment; ValueError if it is one of all rows."""
        for each in (singles := self._singles(attr_name, indices)):
            each.set_wrapper_attr(attr_name, value)
        if not singles:
            self._check_rows(attr_name, indices)
            setattr(self._owner(attr_name) or self.venv.unwrapped, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of the environment once, for all rows; the results as `rows_of` says.

        A method of single environments, as in `SyncVectorEnv`, is called in each row.

        Raises:
            ValueError: The method is one of all rows, and `indices` are not all.
        """
        if singles := self._singles(method_name, indices):
            methods = [each.get_wrapper_attr(method_name) for each in singles]
            return [method(*method_args, **method_kwargs) for method in methods]
        if method_name not in _READING:
            self._check_rows(method_name, indices)
        result = self._find(method_name)(*method_args, **method_kwargs)
        if method_name == _GOALS:
            result = (to_arrays(result),) * self.num_envs
        return rows_of(result, self.num_envs, self._get_indices(indices))

    def _check_rows(self, name: str, indices: VecEnvIndices) -> None:
        if len({*self._get_indices(indices)}) < self.num_envs:
            raise ValueError(f"indices: got {indices}; {name} is one of all rows")

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return whether there is such a wrapper; True for `Monitor`, which this class replaces.

        It is False for an environment made with ``episode_statistics=False``, which expects another
        wrapper, such as SB3's `VecMonitor`, to count.
        """
        found = issubclass(wrapper_class, Monitor) and self._has_statistics
        found = found or any(isinstance(layer, wrapper_class) for layer in layers_of(self.venv))
        return [found for _ in self._get_indices(indices)]

    def get_images(self) -> list[np.ndarray | None]:
        """One frame per row; None where the environment draws none."""
        frames = self.venv.render() if self.render_mode == "rgb_array" else None
        return [None] * self.num_envs if frames is None else [np.asarray(each) for each in frames]

    def _find(self, name: str) -> Any:
        return getattr(self._owner(name) or self.venv, _SINGLE.get(name, name))

    def _owner(self, name: str) -> Any:
        """The outermost layer that has an attribute: Gymnasium's wrappers hide them."""
        name = _SINGLE.get(name, name)
        return next((layer for layer in layers_of(self.venv) if hasattr(layer, name)), None)

    def _singles(self, name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The single environments that an attribute belongs to, as in `SyncVectorEnv`, or none."""
        inside = getattr(self.venv.unwrapped, "envs", None) if self._owner(name) is None else None
        return [inside[row] for row in self._get_indices(indices)] if inside else []

    def flush(self) -> None:
        """Complete the monitor file."""
        if self._monitor_file is not None:
            self._monitor_file.flush()

    def close(self) -> None:
        """Close the environment and the monitor file; again is harmless."""
        if self._monitor_file is not None:
            self._monitor_file.close()
        self.venv.close()


def _checked(venv: Any) -> VectorEnv:
    if not isinstance(venv, VectorEnv):
        raise TypeError(f"venv: got {type(venv).__name__}, need a VectorEnv")
    mode = venv.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"autoreset_mode: got {mode}, TensorVecEnv needs AutoresetMode.SAME_STEP (SB3 expects"
            " rows to restart within the step that ends them). Make it with"
            " autoreset_mode='SameStep'; if it is not of resgym, by make_vec with"
            " vectorization_mode='sync', vector_kwargs={'autoreset_mode': 'SameStep'}"
        )
    check_spaces(venv.single_observation_space, venv.single_action_space)
    inside = venv.unwrapped
    # Asked first: a process ends when it is asked for what it lacks.
    if isinstance(inside, AsyncVectorEnv) and all(inside.call("has_wrapper_attr", "action_masks")):
        inside.action_masks = partial(inside.call, "action_masks")  # type: ignore[attr-defined]
    return venv
