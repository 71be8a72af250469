"""Any vector environment that returns torch tensors, as a `VecEnv` of stable-baselines3.

There are two interfaces to the same rows. `reset` and `step` are SB3's, with numpy arrays; they do
Python work only for rows that ended. `reset_tensors` and `step_tensors` pass tensors and never wait
for the device.
"""

from __future__ import annotations

import copy
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers import HumanRendering, OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter.seam import Observation, each_entry, entries_of, rows_of, to_numpy

STEPS_BETWEEN_WRITES = 64
VecEnvIndices = int | Iterable[int] | None
# Attributes that SB3 asks a single environment for.
_SINGLE = {"action_space": "single_action_space", "observation_space": "single_observation_space"}


class TensorVecEnv(VecEnv):
    """Adapt a `gymnasium.vector.VectorEnv` of N rows with tensor results to SB3.

    The environment needs `metadata["autoreset_mode"]` = `AutoresetMode.SAME_STEP` and results that
    are tensors `[N, ...]`. When a row ends, info has `final_obs` (dense, `[N, ...]`) with the mask
    `_final_obs`, and `episode` = {r, l} with the mask `_episode`. `action_masks()`, if present,
    returns the legal actions.

    In `infos`, rows that continue have an empty dictionary each; rows that ended have
    `terminal_observation`, `TimeLimit.truncated` and `episode` {r, l, t}.

    Args:
        venv: The environment; or a list of functions that make single ones, as for SB3's
            `DummyVecEnv`, from which one batched environment is made (see `batched_env`).
        filename: Write finished episodes to this `monitor.csv`. With a list of functions, the file
            of their `Monitor` is the default.
        **make_kwargs: With a list of functions, keyword arguments of the batched environment.

    Raises:
        ValueError, TypeError: The environment is not one of this kind.
    """

    def __init__(
        self,
        venv: VectorEnv | Sequence[Callable[[], gymnasium.Env]],
        filename: str | os.PathLike[str] | None = None,
        **make_kwargs: Any,
    ) -> None:
        override_existing = True
        if isinstance(venv, (list, tuple)):
            venv, monitor = batched_env(venv, **make_kwargs)
            if filename is None and monitor is not None:
                filename, override_existing = monitor
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
        form = getattr(self.venv.unwrapped, "form", None)
        self._has_statistics = getattr(form, "episode_statistics", True)
        self._monitor_file: MonitorFile | None = None
        if filename is not None:
            env_id = str(getattr(self.venv.spec, "id", None))
            self._monitor_file = MonitorFile(os.fspath(filename), env_id, override_existing)

    @property
    def device(self) -> torch.device:
        """Device of the environment's tensors; may be unknown before the first reset."""
        if self._device is None:
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
        first = next(iter(entries_of(observation).values()))
        self._device = getattr(first, "device", None)
        return observation

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
        values = torch.as_tensor(actions, device=self.device)
        observation, rewards, terminated, truncated, info = self.venv.step(values)
        if "final_obs" not in info:  # an environment that may leave it out has waited itself
            self._check_info(info, (terminated | truncated).nonzero()[:, 0], "final_obs")
        if self._monitor_file is not None:
            self._monitor_file.add(info)
        return observation, rewards, terminated, truncated, info

    @property
    def all_actions_legal(self) -> bool:
        """Whether the environment says that every action is legal in every position."""
        # The environment itself: a wrapper may have changed what it is about.
        own = hasattr(type(self.venv), "all_actions_legal")
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
        observation, rewards, terminated, truncated, info = self.step_tensors(self._actions)
        dones = (terminated | truncated).cpu().numpy()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if dones.any():
            self._fill_infos(infos, np.flatnonzero(dones), terminated, truncated, info)
        shown = to_numpy(observation, self.observation_space)
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
        self,
        infos: list[dict[str, Any]],
        ended: np.ndarray,
        terminated: Tensor,
        truncated: Tensor,
        info: dict[str, Any],
    ) -> None:
        if self._has_statistics:
            self._check_info(info, ended, "episode")
        rows = torch.as_tensor(ended, device=terminated.device)
        final = each_entry(lambda value: value[rows], info["final_obs"])
        final = to_numpy(final, self.observation_space)
        timeout = (truncated & ~terminated)[rows].tolist()
        results = {key: value[rows].tolist() for key, value in info.get("episode", {}).items()}
        seconds = round(time.time() - self._start_time, 6)
        for position, row in enumerate(ended):
            infos[row]["terminal_observation"] = each_entry(itemgetter(position), final)
            infos[row]["TimeLimit.truncated"] = timeout[position]
            if results:
                episode = {key: values[position] for key, values in results.items()}
                infos[row]["episode"] = {**episode, "t": seconds}

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, as tensors and plain data, for a checkpoint."""
        return {
            "monitor": None if self._monitor_file is None else self._monitor_file.state_dict(),
            "venv": self._find("state_dict")(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved `state_dict`, without a reset; ValueError if it does not fit.

        A `monitor.csv` that continues is cut back to the episodes that it had then.
        """
        self._find("load_state_dict")(state["venv"])
        if self._monitor_file is not None and state["monitor"] is not None:
            self._monitor_file.load_state_dict(state["monitor"])
        self._reset_seeds()  # those of before have been used

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute, one value per row (see `rows_of`)."""
        return rows_of(self._find(attr_name), self.num_envs, self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the environment; ValueError if not for all rows."""
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise ValueError(f"indices: got {indices}; {attr_name} is one of all rows")
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
        raise TypeError(f"venv: got {type(venv).__name__}, need a VectorEnv of torch tensors")
    mode = venv.metadata.get("autoreset_mode")
    if mode != AutoresetMode.SAME_STEP:
        raise ValueError(
            f"autoreset_mode: got {mode}, TensorVecEnv needs AutoresetMode.SAME_STEP (SB3 expects"
            " rows to restart within the step that ends them)"
        )
    return venv


class MonitorFile:
    """Append finished episodes to a `monitor.csv`, the file of SB3's `Monitor`.

    Statistics are collected as tensors and written after every 64 steps with finished episodes, on
    `flush` and on `close`, so that an accelerator rarely waits. The arguments are those of
    `Monitor`.
    """

    def __init__(self, filename: str, env_id: str, override_existing: bool = True) -> None:
        self._start = time.time()
        self._pending: list[tuple[float, Tensor, dict[str, Tensor]]] = []
        header: dict[str, Any] = {"t_start": self._start, "env_id": env_id}
        self._writer = ResultsWriter(filename, header, override_existing=override_existing)
        self._file = self._writer.file_handler

    def add(self, info: dict[str, Any]) -> None:
        """Note the episodes that ended in a step."""
        if "episode" in info:
            self._pending.append((time.time() - self._start, info["_episode"], info["episode"]))
        if len(self._pending) >= STEPS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        """Write what has been gathered."""
        if self._file.closed:
            return
        for seconds, ended, episode in self._pending:
            columns = (episode[key][ended].tolist() for key in ("r", "l"))
            for total, length in zip(*columns, strict=True):
                entry = {"r": round(total, 6), "l": length, "t": round(seconds, 6)}
                self._writer.logger.writerow(entry)
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
) -> tuple[VectorEnv, tuple[str, bool] | None]:
    """Make one vector environment of `len(env_fns)` rows like the environment of the first one.

    The first function is called once to learn the environment's specification (all must make the
    same one), then `gymnasium.make_vec` makes the batched one with the same keyword arguments, time
    limit, and `kwargs`.

    Returns:
        The environment; and for the monitor file of the single environment, if any, its name and
        whether to overwrite it.

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
    return batched, _monitor_request(wrappers)


def layers_of(env: Any) -> Iterator[Any]:
    """An environment and what it wraps, single or batched, outermost first."""
    yield env
    while isinstance(env, (gymnasium.Wrapper, VectorWrapper)):
        env = env.env
        yield env


def _monitor_request(wrappers: Sequence[Any]) -> tuple[str, bool] | None:
    for each in wrappers:
        if isinstance(each, Monitor) and each.results_writer is not None:
            file = each.results_writer.file_handler
            return file.name, "a" not in file.mode
    return None
