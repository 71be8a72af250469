"""Any vector environment of Gymnasium as a `VecEnv` of stable-baselines3.

There are two interfaces to the same rows. `reset` and `step` are SB3's, with numpy arrays; they do
Python work only for rows that ended. `reset_tensors` and `step_tensors` pass tensors and never wait
for the device.
"""

from __future__ import annotations

import copy
import hashlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from gymnasium.wrappers import HumanRendering, OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter.seam import (
    Observation,
    check_spaces,
    each_entry,
    entries_of,
    rows_of,
    to_arrays,
    to_numpy,
)

STEPS_BETWEEN_WRITES = 64
SHOWING: weakref.WeakSet[TensorVecEnv] = weakref.WeakSet()
"""Those that have returned observations, see `TensorVecEnv.shown`."""
VecEnvIndices = int | Iterable[int] | None
# Attributes that SB3 asks a single environment for.
_READING = ("action_masks", "render")  # methods whose result has one entry a row
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

    The attribute `shown` is the observation that `reset` or `step` has returned last.

    Results belong to the caller: they are copied, because an environment may write its next results
    into the same memory. An environment with `returns_new_tensors` = True promises not to, and its
    results are passed on.

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
        filename: str | os.PathLike[str] | None = None,
        info_keywords: Sequence[str] = (),
        **make_kwargs: Any,
    ) -> None:
        override_existing = True
        if isinstance(venv, (list, tuple)):
            venv, monitor = batched_env(venv, **make_kwargs)
            if monitor is not None:
                info_keywords = info_keywords or monitor.info_keywords
                if filename is None and monitor.results_writer is not None:
                    file = monitor.results_writer.file_handler
                    filename, override_existing = file.name, "a" not in file.mode
        elif make_kwargs:
            raise TypeError(f"{sorted(make_kwargs)}: only with a list of environment functions")
        self.venv = _checked(venv)
        super().__init__(
            self.venv.num_envs, self.venv.single_observation_space, self.venv.single_action_space
        )
        self.metadata = dict(self.venv.metadata)
        self.info_keywords = tuple(info_keywords)
        self._device: torch.device | None = None
        self._arrays = self._owner("device") is None  # until the first reset
        self._actions: Any = None
        self.shown: Any = None
        self._counted = torch.zeros(2, self.num_envs)  # returns and lengths so far
        self._start_time = time.time()
        form = getattr(self.venv.unwrapped, "form", None)
        self._counts, self._has_statistics = form is None, form is None or form.episode_statistics
        self._monitor_file: MonitorFile | None = None
        if filename is not None:
            env_id = str(getattr(self.venv.spec, "id", None))
            file_name = os.fspath(filename)
            self._monitor_file = MonitorFile(file_name, env_id, override_existing, info_keywords)
            weakref.finalize(self, self._monitor_file.close)  # also at exit

    @property
    def device(self) -> torch.device:
        """Device of the environment's tensors; may be unknown before the first reset."""
        if self._device is None:
            self._device = torch.device("cpu" if self._arrays else self._find("device"))
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
        self._arrays = not isinstance(next(iter(entries_of(observation).values())), Tensor)
        if self._arrays:
            self.reset_infos = infos_of(info, np.arange(self.num_envs))
        observation = self._owned(observation)
        first = next(iter(entries_of(observation).values()))
        self._device = first.device
        self._counted = torch.zeros(2, self.num_envs, device=first.device)
        return observation

    def _owned(self, results: Any) -> Any:
        # Looked up on the class, as a wrapper promises for itself.
        promised = getattr(type(self.venv), "returns_new_tensors", False) and not self._arrays
        return results if promised else owned(results)

    def step_tensors(
        self, actions: Tensor | np.ndarray
    ) -> tuple[Observation, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Step all rows without waiting for the device.

        Returns:
            Observations, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, and
            the info of the environment. Rows that ended show the first observation of their next
            episode (see `reached_observation`).

        Raises:
            ValueError: Rows ended without `final_obs` in the info.
        """
        *results, _, told = self._step(actions)
        return (*results, told)

    def _step(self, actions: Any, *, waiting: bool = False) -> tuple[Any, ...]:
        """As `step_tensors`, with what info says about rows that go on, and about those that ended.

        Gymnasium's own environments say these in `final_info`, if they are to restart at once.
        """
        values: Any = torch.as_tensor(actions, device=self.device)
        *results, info = self.venv.step(values.cpu().numpy() if self._arrays else values)
        told = dict(info)
        if "final_info" in info:  # the rest is about the next episodes
            own = ("final_obs", "_final_obs", "episode", "_episode")
            told = {**{key: info[key] for key in own if key in info}, **info["final_info"]}
        if self._arrays and "final_obs" in told:
            told["final_obs"] = self._dense(told["final_obs"], results[0])
        observation, rewards, terminated, truncated, told = self._owned((*results, told))
        ended = terminated | truncated
        if "final_obs" not in told:  # an environment that may leave it out has waited itself
            self._check_info(told, ended.nonzero()[:, 0], "final_obs")
        if self._counts:
            self._count(rewards, ended, told)
        if self._monitor_file is not None:
            self._monitor_file.add(told, now=waiting or self.device.type == "cpu")
        return observation, rewards.float(), terminated, truncated, info, told

    def _dense(self, final: Any, shown: Any) -> Any:
        """Gymnasium's own environments have one observation a row, None in those that go on."""
        if isinstance(final, dict) or final.dtype != object:
            return final
        rows = zip(final, iterate(self.venv.observation_space, shown), strict=True)
        space = self.venv.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, [now if last is None else last for last, now in rows], empty)

    def _count(self, rewards: Tensor, ended: Tensor, info: dict[str, Any]) -> None:
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
        masks = np.stack(self.env_method(name)) if self._arrays else self._find(name)()
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

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all rows: observations, rewards `[N]` float32, dones `[N]` bool, infos."""
        results = self._step(self._actions, waiting=True)
        observation, rewards, terminated, truncated, info, told = results
        dones = (terminated | truncated).cpu().numpy()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self._arrays:
            infos = infos_of(info, np.arange(self.num_envs))
        if dones.any():
            self._fill_infos(infos, np.flatnonzero(dones), told, (truncated & ~terminated))
        shown = self._show(observation)
        return shown, rewards.cpu().numpy().astype(np.float32), dones, infos

    def action_masks(self) -> np.ndarray:
        """Legal actions of the current observation, `[N, A]` bool, True = legal."""
        return self.action_masks_tensor().cpu().numpy().astype(bool)

    def _check_info(self, info: dict[str, Any], ended: Any, name: str) -> None:
        if name not in info and len(ended):
            raise ValueError(
                f"{name}: missing in the info of {self.venv} although rows {ended[:5].tolist()}"
                f" ended; it has {sorted(info)}"
            )

    def _fill_infos(
        self, infos: list[dict[str, Any]], ended: np.ndarray, told: dict[str, Any], timeout: Tensor
    ) -> None:
        if self._has_statistics:
            self._check_info(told, ended, "episode")
        final = each_entry(lambda value: value[torch.as_tensor(ended)], told["final_obs"])
        final, timeouts = to_numpy(final, self.observation_space), timeout.tolist()
        seconds = round(time.time() - self._start_time, 6)
        for position, (row, own) in enumerate(zip(ended, infos_of(told, ended), strict=True)):
            own["terminal_observation"] = each_entry(itemgetter(position), final)
            own["TimeLimit.truncated"] = timeouts[row]
            if "episode" in own:
                own["episode"] |= {"t": seconds, **{key: own[key] for key in self.info_keywords}}
            infos[row] = own

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, as tensors and plain data, for a checkpoint."""
        return {
            "counted": self._counted,
            "monitor": None if self._monitor_file is None else self._monitor_file.state_dict(),
            "venv": self._find("state_dict")(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved `state_dict`, without a reset; ValueError if it does not fit.

        A `monitor.csv` that continues is cut back to the episodes that it had then.
        """
        self._find("load_state_dict")(state["venv"])
        self._counted = state["counted"].to(self.device, copy=True)
        if self._monitor_file is not None and state["monitor"] is not None:
            self._monitor_file.load_state_dict(state["monitor"])
        self._reset_seeds()  # those of before have been used

    def __getstate__(self) -> dict[str, Any]:
        """A copy writes no monitor file: it is the original's."""
        return {**vars(self), "_monitor_file": None}

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


def owned(value: Any) -> Any:
    """Tensors that nobody else writes to, from tensors and arrays, also inside of others."""
    if isinstance(value, dict):
        return {key: owned(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(owned, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.tensor(value)
    return value.clone() if isinstance(value, Tensor) else value


def infos_of(info: Mapping[str, Any], rows: np.ndarray) -> list[dict[str, Any]]:
    """What an info with masks `_key` says about some rows, as SB3 has it: a dictionary for each."""
    found: list[dict[str, Any]] = [{} for _ in rows]
    for key, value in info.items():
        if key.startswith("_") or key in ("final_obs", "final_info"):
            continue
        if isinstance(value, dict):
            values: Any = infos_of(value, rows)
        elif isinstance(value, (Tensor, np.ndarray)) and value.ndim:
            part = to_arrays(value)[rows]
            values = part.tolist() if part.ndim == 1 else part.copy()
        else:
            continue
        known = to_arrays(info[f"_{key}"])[rows] if f"_{key}" in info else [True] * len(rows)
        for own, has, each in zip(found, known, values, strict=True):
            if has:
                own[key] = each
    return found


def _checked(venv: Any) -> VectorEnv:
    if not isinstance(venv, VectorEnv):
        raise TypeError(f"venv: got {type(venv).__name__}, need a VectorEnv")
    mode = venv.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"autoreset_mode: got {mode}, TensorVecEnv needs AutoresetMode.SAME_STEP (SB3 expects"
            " rows to restart within the step that ends them). Make the environment with"
            " autoreset_mode=AutoresetMode.SAME_STEP"
        )
    check_spaces(venv.single_observation_space, venv.single_action_space)
    return venv


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
        self._pending: list[tuple[float, dict[str, Any]]] = []
        header: dict[str, Any] = {"t_start": self._start, "env_id": env_id}
        self._keywords = tuple(info_keywords)
        self._writer = ResultsWriter(filename, header, self._keywords, override_existing)
        self._file = self._writer.file_handler

    def add(self, info: dict[str, Any], *, now: bool) -> None:
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
            for each in infos_of(told, np.flatnonzero(told["_episode"].cpu().numpy())):
                r, length = each["episode"]["r"], each["episode"]["l"]
                entry = {"r": round(r, 6), "l": length, "t": round(seconds, 6)}
                self._writer.logger.writerow(entry | {key: each[key] for key in self._keywords})
        self._pending.clear()
        self._file.flush()

    def state_dict(self) -> dict[str, Any]:
        """Write what has been collected; return the file's length and digest."""
        self.flush()
        content = Path(self._file.name).read_bytes()
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remove the episodes written after `state_dict`, which will be played again.

        A file that has changed before that point is left as it is.
        """
        self._pending.clear()
        begin = Path(self._file.name).read_bytes()[: state["bytes"]]
        if hashlib.sha256(begin).hexdigest() == state["sha256"] and not self._file.closed:
            self._file.seek(state["bytes"])
            self._file.truncate()

    def close(self) -> None:
        """Write what is left and close the file; again is harmless."""
        self.flush()
        self._writer.close()


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
        wrapper = type(foreign[0]).__name__
        raise ValueError(f"env_wrapper: {wrapper} cannot be put on the batched {spec.id}")
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
