"""Contracts as public code: checks for vector environments and players."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from resgym.game.spec import check_integer
from resgym.players.checking import check_player

__all__ = ["ContractError", "check_modes", "check_player", "check_vector_env"]


class ContractError(AssertionError):
    """An environment violates the contract."""


def _require(condition: object, message: str) -> None:
    if not bool(condition):
        raise ContractError(message)


def _array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


def _leaves(tree: Any, name: str = "result") -> dict[str, np.ndarray]:
    if isinstance(tree, dict):
        return {k: v for key in tree for k, v in _leaves(tree[key], f"{name}[{key}]").items()}
    return {name: _array(tree)}


def _copy(tree: Any) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in _leaves(tree).items()}


def _equal(a: dict[str, np.ndarray], b: dict[str, np.ndarray], rows: np.ndarray) -> bool:
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and np.array_equal(a[name][rows], b[name][rows])
        for name in a
    )


def _row(tree: Any, row: int) -> Any:
    if isinstance(tree, dict):
        return {key: _row(value, row) for key, value in tree.items()}
    return _array(tree)[row]


def _require_array(name: str, value: Any, kind: type[np.generic], *shape: int) -> np.ndarray:
    array = _array(value)
    _require(
        array.dtype == kind and array.shape == shape,
        f"{name} must be {np.dtype(kind)} {list(shape)}, got {array.dtype} {list(array.shape)}",
    )
    return array


def _random_actions(env: VectorEnv, seed: int, time: int) -> np.ndarray:
    """Legal actions int64 [N] that depend on (seed, row, time) only."""
    number = int(env.single_action_space.n)  # type: ignore[attr-defined]
    masks = np.ones((env.num_envs, number), dtype=bool)
    if hasattr(env, "action_masks"):
        masks = _require_array("action_masks", env.action_masks(), np.bool_, *masks.shape)
    chosen = np.zeros(env.num_envs, dtype=np.int64)
    for row in range(env.num_envs):
        legal = np.flatnonzero(masks[row])
        if len(legal):
            chosen[row] = legal[np.random.default_rng([seed, row, time]).integers(len(legal))]
    return chosen


def check_vector_env(
    make: Callable[[int], VectorEnv], *, num_envs: int = 5, steps: int = 200, seed: int = 0
) -> None:
    """Checks that vector environments keep Gymnasium's contract and ours, by random legal play.

    Spaces and batch spaces agree; observations, rewards (float32, in NumPy also float64),
    terminations and truncations (bool) have the right shapes and types and lie in their spaces;
    info holds numbers and booleans only; the same seed gives the same run, another seed another; a
    row does not depend on the number of rows; rows that do not end are untouched by the ends of
    others; final observations are dense, kept apart from live memory and in their space; episode
    statistics, where there are any, are those of the episodes; results are never overwritten later;
    options are not modified; rows restart as the autoreset mode declares.

    Args:
        make: builds the environment with so many rows; it must end some episodes within ``steps``.
        num_envs: rows to check with, at least 2.
        steps: steps to play.
        seed: of the environment and of the random play.

    Raises:
        ContractError: the first broken clause, in one line.
        ValueError, TypeError: an argument of the check is out of range.
    """
    num_envs, steps = check_integer("num_envs", num_envs, 2), check_integer("steps", steps, 1)
    seed = check_integer("seed", seed, 0)
    env = make(num_envs)
    _check_declaration(env, num_envs)
    first, ends = _record(env, steps, seed, seed)
    _require(ends > 0, f"no episode ended within {steps} steps: give more steps")
    env.close()
    again, _ = _record(make(num_envs), steps, seed, seed)
    all_rows = np.arange(num_envs)
    for time, (a, b) in enumerate(zip(first, again, strict=True)):
        _require(_equal(a, b, all_rows), f"two runs with seed {seed} differ at step {time}")
    # The same play, so that only the environment's own seed can make a difference.
    other, _ = _record(make(num_envs), min(steps, 20), seed + 1000, seed)
    _require(
        any(not _equal(a, b, all_rows) for a, b in zip(first, other, strict=False)),
        f"seeds {seed} and {seed + 1000} give the same run: the seed has no effect",
    )
    # Row i of a run does not depend on how many rows there are.
    wide, _ = _record(make(num_envs + 3), steps, seed, seed)
    narrow, _ = _record(make(1), steps, seed, seed)
    for time, (a, b, c) in enumerate(zip(first, wide, narrow, strict=True)):
        _require(
            _equal(a, b, all_rows) and _equal(a, c, np.arange(1)),
            f"rows depend on num_envs: they differ at step {time}",
        )


def _check_declaration(env: VectorEnv, num_envs: int) -> None:
    _require(isinstance(env, VectorEnv), f"not a gymnasium VectorEnv: {type(env).__name__}")
    _require(env.num_envs == num_envs, f"num_envs is {env.num_envs}, asked for {num_envs}")
    mode = env.metadata.get("autoreset_mode")
    _require(
        isinstance(mode, AutoresetMode),
        f"metadata['autoreset_mode'] must be an AutoresetMode, got {mode!r}",
    )
    for name in ("observation_space", "action_space"):
        shape = getattr(env, name).shape
        if shape is not None:
            single = getattr(env, f"single_{name}").shape
            _require(
                tuple(shape) == (num_envs, *single),
                f"{name} has shape {shape}, not num_envs of {single}",
            )


def _check_observation(env: VectorEnv, observation: Any, name: str) -> None:
    for row in range(env.num_envs):
        _require(
            env.single_observation_space.contains(_row(observation, row)),
            f"{name} of row {row} is outside single_observation_space",
        )


def _check_info(info: dict[str, Any]) -> None:
    for name, array in _leaves(info, "info").items():
        _require(
            array.dtype.kind in "biuf",
            f"{name} must hold numbers or booleans, got dtype {array.dtype}",
        )


def _check_statistics(
    info: dict[str, Any], ended: np.ndarray, returns: np.ndarray, lengths: np.ndarray
) -> None:
    if "episode" not in info:
        return
    _require("_episode" in info, "info['episode'] must have its mask info['_episode']")
    mask = _array(info["_episode"])
    _require(np.array_equal(mask, ended), "info['_episode'] must mark the rows that ended")
    for key, want in (("r", returns), ("l", lengths)):
        _require(key in info["episode"], f"info['episode'] must have {key!r}")
        got = _array(info["episode"][key])
        _require(
            got.shape == want.shape and np.allclose(got[ended], want[ended], atol=1e-3),
            f"info['episode'][{key!r}] is not what the episode was: "
            f"{got[ended].tolist()} instead of {want[ended].tolist()}",
        )


def _record(
    env: VectorEnv, steps: int, seed: int, play_seed: int
) -> tuple[list[dict[str, np.ndarray]], int]:
    """Plays and checks every step; returns what was seen (copies) and how many episodes ended."""
    mode = env.metadata["autoreset_mode"]
    returns, lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=np.int64)
    options: dict[str, Any] = {}
    observation, info = env.reset(seed=seed, options=options)
    _require(options == {}, "reset changed the caller's options")
    _check_observation(env, observation, "the first observation")
    _check_info(info)
    held = [({"obs": observation}, _copy({"obs": observation}))]
    seen = [_copy(observation)]
    ended = np.zeros(env.num_envs, dtype=bool)
    ends, restarts = 0, list[bool]()  # of each row that restarted, whether it can be seen
    for time in range(steps):
        # Where a row restarts: its last observation, to tell whether it shows another one then.
        last, restarted = _copy(observation), ended
        if mode == AutoresetMode.DISABLED and ended.any():
            observation = _check_partial_reset(env, observation, ended)
            restarts += _changes(last, observation, ended)
        result = env.step(_random_actions(env, play_seed, time + 1))
        _require(len(result) == 5, f"step must return 5 values, got {len(result)}")
        observation, reward, terminated, truncated, info = result
        outcome = {"reward": reward, "terminated": terminated, "truncated": truncated}
        for name, value in outcome.items():
            kind = np.float32 if name == "reward" else np.bool_
            if name == "reward" and getattr(value, "dtype", None) == np.float64:
                kind = np.float64  # as Gymnasium's own, in NumPy
            _require_array(name, value, kind, env.num_envs)
        _check_info(info)
        _check_observation(env, observation, f"the observation of step {time}")
        ended = _array(terminated) | _array(truncated)
        ends += int(ended.sum())
        idle = restarted if mode == AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        if mode == AutoresetMode.SAME_STEP and ended.any():
            _check_final(env, observation, info, ended)
            restarts += _changes(_leaves(info["final_obs"]), observation, ended)
        if idle.any():
            _require(
                not _array(reward)[idle].any() and not ended[idle].any(),
                f"a restarted row must have reward 0 and not end (step {time})",
            )
            restarts += _changes(last, observation, idle)
        returns, lengths = returns + _array(reward), lengths + ~idle
        _check_statistics(info, ended, returns, lengths)
        returns, lengths = np.where(ended, 0, returns), np.where(ended, 0, lengths)
        seen.append({**_copy(observation), **_copy(outcome)})
        returned = {"obs": observation, **outcome, "info": info}
        held = [*held[-7:], (returned, _copy(returned))]
        for old, copy in held:
            for name, now in _leaves(old).items():
                _require(
                    np.array_equal(now, copy[name]),
                    f"{name} returned earlier was overwritten by step {time}",
                )
    _require(
        any(restarts) or not restarts,
        "rows that ended never show another observation: they do not restart",
    )
    return seen, ends


def _changes(last: dict[str, np.ndarray], observation: Any, rows: np.ndarray) -> list[bool]:
    """Whether the last observation of some rows differs from the first of their next episode."""
    now = _leaves(observation)
    return [not _equal(last, now, row) for row in rows.nonzero()[0][:, None]]


def _check_final(env: VectorEnv, observation: Any, info: dict[str, Any], ended: np.ndarray) -> None:
    for key in ("final_obs", "_final_obs"):
        _require(key in info, f"info must have {key!r} when an episode ends (SAME_STEP)")
    final, mask = info["final_obs"], _array(info["_final_obs"])
    _require(np.array_equal(mask, ended), "info['_final_obs'] must mark the rows that ended")
    want, got = _leaves(observation), _leaves(final)
    _require(
        want.keys() == got.keys()
        and all(want[k].shape == got[k].shape and want[k].dtype == got[k].dtype for k in want),
        "info['final_obs'] must be dense, with the structure of the observation",
    )
    _check_observation(env, final, "info['final_obs']")
    _require(
        not any(np.shares_memory(a, b) for a in got.values() for b in want.values()),
        "final_obs shares memory with the observation",
    )
    going = np.flatnonzero(~ended)
    _require(_equal(want, got, going), "rows that did not end differ between final_obs and obs")


def _check_partial_reset(env: VectorEnv, before: Any, ended: np.ndarray) -> Any:
    kept = _copy(before)
    try:
        env.step(np.zeros(env.num_envs, dtype=np.int64))
    except Exception:  # any refusal will do, as long as it is one
        pass
    else:
        raise ContractError("stepping an ended row must be an error in DISABLED mode")
    options = {"reset_mask": ended.copy()}
    observation, _ = env.reset(options=options)
    _require(
        list(options) == ["reset_mask"] and np.array_equal(options["reset_mask"], ended),
        "reset changed the caller's options",
    )
    _require(
        _equal(_leaves(observation), kept, np.flatnonzero(~ended)),
        "a reset with reset_mask changed rows outside the mask",
    )
    return observation


def check_modes(
    id: str,
    steps: int = 200,
    seed: int = 0,
    starts: Any = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Run `check_vector_env` in every autoreset mode.

    Args:
        id: of a registered environment, such as ``resgym/HironakaHost-v0``.
        steps: to play.
        seed: of the actions and the environment.
        starts: a set of starts, if the environment takes one.
        progress: called with a line before each mode.

    Returns:
        The problem found in each mode; nothing where the environment keeps the contract.

    Raises:
        ValueError: there is no such environment, or it takes no ``autoreset_mode``.
    """
    given = {} if starts is None else {"starts": starts}
    found = {}
    try:
        for mode in ("SAME_STEP", "NEXT_STEP", "DISABLED"):
            make = partial(gymnasium.make_vec, id, autoreset_mode=mode, **given)
            found[mode] = ""
            progress(f"{id} {mode}: {steps} steps")
            try:
                check_vector_env(make, steps=steps, seed=seed)
            except ContractError as error:
                found[mode] = str(error)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"id: got {id!r}; expected a registered environment: {error}") from error
    except TypeError as error:
        raise ValueError(
            f"id: got {id!r}; expected an environment whose make_vec takes autoreset_mode, such as "
            f"resgym/HironakaHost-v0: {error}"
        ) from error
    return found
