"""Contracts as public code: checks for vector environments and players."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from resgym.game.devices import resolve_device
from resgym.game.rng import RowRandom
from resgym.game.rules import move, random_starts
from resgym.game.spec import GameSpec, check_integer, host_action_table
from resgym.game.state import GameState
from resgym.players.asking import check_answer
from resgym.players.registry import Player, check_role, rows_of, select_rows
from resgym.players.scripted import RandomAgent, RandomHost
from resgym.texts import shown

__all__ = ["ContractError", "check_modes", "check_player", "check_vector_env"]
_MOVES = 12
_OTHER, _OWN, _AXES = 0, 1, 2


def check_player(
    player: Player,
    dimension: int = 3,
    num_games: int = 64,
    *,
    spec: GameSpec | None = None,
    device: torch.device | str = "cpu",
) -> None:
    """Play games with a player, and raise if it violates the contract of `Player`.

    Its answers must be legal in finished and unfinished games, integers [N] on the right device,
    and the same twice. Each row's answer must be the same alone, among others and in another
    order. The player must not write to its arguments or use torch's global generator.

    At least 4 games are played, of ``spec`` or of a default game of ``dimension`` axes.

    Raises:
        AssertionError: the player violates the contract; the message explains how.
        TypeError, ValueError: an argument of the check is wrong.
    """
    spec = spec or GameSpec(dimension=dimension)
    num_games = check_integer("num_games", num_games, 4)
    device = resolve_device(device)
    try:
        role = check_role(getattr(player, "role", None), "the player's attribute role")
    except ValueError as error:
        raise AssertionError(str(error)) from None
    rng = RowRandom(torch.arange(num_games, device=device))
    table = host_action_table(spec.dimension, device, spec.least_axes)
    state = random_starts(spec, rng.split(_OTHER))
    for step in range(_MOVES):
        now = rng.split(1 + step)
        sets = table[RandomHost().act(state, None, now.split(_OTHER))]
        coords = state.answers(sets) if role == "agent" else None
        answer = _checked(player, state, coords, now.split(_OWN), f"move {step}")
        sets = sets if role == "agent" else table[answer]
        axis = RandomAgent().act(state, state.answers(sets), now.split(_AXES))
        state, _ = move(state, sets, answer if role == "agent" else axis, spec)
        # The first game is over after one move, in the origin: every player meets such games.
        points, count = state.points.clone(), state.count.clone()
        points[0], points[0, 0], count[0] = -1, 0, 1
        state = replace(state, points=points, count=count)


def _checked(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom, when: str
) -> Tensor:
    """Return the player's answer if every way of asking gives the same."""
    rows = torch.arange(state.num_games, device=state.device)
    answer = _asked(player, state, coords, rng, when)
    ways = {
        "is asked again": rows,
        "has its rows reordered": rng.split(7).key.argsort(),
        "gets half the rows": rows[: len(rows) // 2],
        **{f"gets row {row} alone": rows[row : row + 1] for row in (0, 1, len(rows) - 1)},
    }
    for how, index in ways.items():
        own = player if index is rows else rows_of(player, index)
        again = _asked(own, *select_rows(state, coords, rng, index), f"{when}, when it {how}")
        for at, before, after in zip(index, answer[index], again, strict=True):
            if before != after:
                raise AssertionError(
                    f"{player!r} answers differently when it {how}: row {int(at)} gave "
                    f"{int(before)}, then {int(after)} ({when})"
                )
    return answer


def _asked(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom, when: str
) -> Tensor:
    """The answer, after checks of its form, its values and of side effects."""
    given = [state.points, state.count, rng.key, *([] if coords is None else [coords])]
    before, random = [tensor.clone() for tensor in given], torch.random.get_rng_state()
    try:
        answer = player.act(state, coords, rng)
        if not torch.equal(random, torch.random.get_rng_state()):
            raise ValueError("it uses torch's global generator")
        if not all(map(torch.equal, given, before)):
            raise ValueError("it writes to its arguments")
        check_answer(answer, state, coords, "it")
    except Exception as error:
        raise AssertionError(f"{player!r}: {type(error).__name__}: {error} ({when})") from error
    # A copy, in case the player returns a buffer that it writes to again.
    return answer.to(torch.int64, copy=True)


class ContractError(AssertionError):
    """An environment violates the contract."""


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ContractError(message)


def _numpy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _numpy(value) for key, value in tree.items()}
    return tree.detach().cpu().numpy() if hasattr(tree, "detach") else np.asarray(tree)


def _leaves(tree: Any, name: str = "result") -> dict[str, np.ndarray]:
    if isinstance(tree, dict):
        return {k: v for key in tree for k, v in _leaves(tree[key], f"{name}[{key}]").items()}
    return {name: _numpy(tree)}


def _equal(one: Any, other: Any, rows: Any = slice(None)) -> bool:
    a, b = _leaves(one), _leaves(other)
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and np.array_equal(a[name][rows], b[name][rows])
        for name in a
    )


def _random_actions(env: VectorEnv, seed: int, time: int) -> np.ndarray:
    """Legal actions int64 [N] that depend on (seed, row, time) only."""
    space: Any = env.single_action_space
    masks = np.ones((env.num_envs, space.n), bool)
    if hasattr(env, "action_masks"):
        given = _numpy(env.action_masks())
        _require(
            given.dtype == bool and given.shape == masks.shape,
            f"action_masks must be bool {list(masks.shape)}, got {given.dtype} {list(given.shape)}",
        )
        masks = given
    chosen = np.zeros(env.num_envs, dtype=np.int64)
    for row, legal in enumerate(map(np.flatnonzero, masks)):
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
        make: builds the environment with this many rows; some episodes must end in ``steps``.
        num_envs: rows to check with, at least 2.
        steps: steps to play.
        seed: seed of the environment and of the random play.

    Raises:
        ContractError: the first broken clause, in one line.
        ValueError, TypeError: an argument of the check is out of range.
    """
    num_envs, steps = check_integer("num_envs", num_envs, 2), check_integer("steps", steps, 1)
    seed = check_integer("seed", seed, 0)
    env = make(num_envs)
    _check_declaration(env, num_envs)
    run = _Run(env, steps, seed, seed)
    _require(run.ends > 0, f"no episode ended within {steps} steps: give more steps")
    env.close()
    # The same play, so that only the environment's own seed can make a difference.
    other = _Run(make(num_envs), min(steps, 20), seed + 1000, seed)
    _require(
        not all(map(_equal, run.seen, other.seen)),
        f"seeds {seed} and {seed + 1000} give the same run: the seed has no effect",
    )
    # Row i of a run does not depend on how many rows there are.
    many = "rows depend on num_envs: they"
    for number, what in ((num_envs, f"two runs with seed {seed}"), (num_envs + 3, many), (1, many)):
        again, rows = _Run(make(number), steps, seed, seed), np.arange(min(number, num_envs))
        for time, (a, b) in enumerate(zip(run.seen, again.seen, strict=True)):
            _require(_equal(a, b, rows), f"{what} differ at step {time}")


def _check_declaration(env: VectorEnv, num_envs: int) -> None:
    _require(isinstance(env, VectorEnv), f"not a gymnasium VectorEnv: {type(env).__name__}")
    _require(env.num_envs == num_envs, f"num_envs is {env.num_envs}, asked for {num_envs}")
    mode = env.metadata.get("autoreset_mode")
    _require(
        isinstance(mode, AutoresetMode),
        f"metadata['autoreset_mode'] must be an AutoresetMode, got {mode!r}",
    )
    for name in ("observation_space", "action_space"):
        space, single = getattr(env, name), getattr(env, f"single_{name}")
        _require(
            space.shape == batch_space(single, num_envs).shape,
            f"{name} is not num_envs of single_{name}",
        )


class _Run:
    """Random play that is checked at every step.

    Attributes:
        seen: copies of what each step returned.
        ends: episodes that ended.
    """

    def __init__(self, env: VectorEnv, steps: int, seed: int, play_seed: int) -> None:
        self.env, self.mode = env, env.metadata["autoreset_mode"]
        self.ends, self.restarts = 0, list[bool]()  # of restarts, whether they can be seen
        self.returns, self.lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, np.int64)
        options: dict[str, Any] = {}
        observation, info = env.reset(seed=seed, options=options)
        _require(options == {}, "reset changed the caller's options")
        self._check_values(observation, info, "the first observation")
        self.seen = [deepcopy(observation)]
        held = [(observation, self.seen[0])]
        ended = np.zeros(env.num_envs, bool)
        for time in range(steps):
            last = deepcopy(observation)
            if self.mode == AutoresetMode.DISABLED and ended.any():
                observation = self._check_partial_reset(last, ended)
                self._note_restarts(last, observation, ended)
            result = env.step(_random_actions(env, play_seed, time + 1))
            _require(len(result) == 5, f"step must return 5 values, got {len(result)}")
            idle = ended & (self.mode == AutoresetMode.NEXT_STEP)
            observation, ended = result[0], self._check_step(result, last, idle, time)
            names = ("obs", "reward", "terminated", "truncated", "info")
            returned = dict(zip(names, result, strict=True))
            copy = deepcopy(returned)
            self.seen.append(copy | {"info": {}})
            held = [*held[-7:], (returned, copy)]
            _require(
                all(_equal(*pair) for pair in held),
                f"what an earlier step returned was overwritten by step {time}",
            )
        _require(
            any(self.restarts) or not self.restarts,
            "rows that ended never show another observation: they do not restart",
        )

    def _note_restarts(self, last: Any, observation: Any, rows: np.ndarray) -> None:
        """Keep whether the last observations differ from the first of the next episodes."""
        self.restarts += [not _equal(last, observation, row) for row in rows.nonzero()[0][:, None]]

    def _check_values(self, observation: Any, info: dict[str, Any], name: str) -> None:
        _require(
            self.env.observation_space.contains(_numpy(observation)),
            f"{name} is outside observation_space",
        )
        for key, array in _leaves(info, "info").items():
            _require(
                array.dtype.kind in "biuf",
                f"{key} must hold numbers or booleans, got dtype {array.dtype}",
            )

    def _check_step(self, result: Any, last: Any, idle: np.ndarray, time: int) -> np.ndarray:
        """Check what a step returned; return the rows that ended."""
        observation, info = result[0], result[4]
        reward, terminated, truncated = map(_numpy, result[1:4])
        # Rewards in NumPy are float64, as Gymnasium's own.
        floats = "float32" if hasattr(result[1], "detach") else "float32 or float64"
        for name, value, kinds in (
            ("reward", reward, floats),
            ("terminated", terminated, "bool"),
            ("truncated", truncated, "bool"),
        ):
            _require(
                str(value.dtype) in kinds.split() and value.shape == idle.shape,
                f"{name} must be {kinds} {list(idle.shape)}, got {value.dtype} {value.shape}",
            )
        self._check_values(observation, info, f"the observation of step {time}")
        ended = terminated | truncated
        self.ends += int(ended.sum())
        if self.mode == AutoresetMode.SAME_STEP and ended.any():
            self._check_final(observation, info, ended)
            self._note_restarts(info["final_obs"], observation, ended)
        _require(
            not reward[idle].any() and not ended[idle].any(),
            f"a restarted row must have reward 0 and not end (step {time})",
        )
        self._note_restarts(last, observation, idle)
        self.returns, self.lengths = self.returns + reward, self.lengths + ~idle
        if "episode" in info:
            mask = _numpy(info.get("_episode", False))
            _require(np.array_equal(mask, ended), "info['_episode'] must mark the rows that ended")
            for key, want in (("r", self.returns), ("l", self.lengths)):
                got = _numpy(info["episode"].get(key))
                _require(
                    got.shape == want.shape and np.allclose(got[ended], want[ended], atol=1e-3),
                    f"info['episode'][{key!r}] must be {want[ended].tolist()}, got {got}",
                )
        self.returns[ended] = self.lengths[ended] = 0
        return ended

    def _check_final(self, observation: Any, info: dict[str, Any], ended: np.ndarray) -> None:
        for key in ("final_obs", "_final_obs"):
            _require(key in info, f"info must have {key!r} when an episode ends (SAME_STEP)")
        final, mask = info["final_obs"], _numpy(info["_final_obs"])
        _require(np.array_equal(mask, ended), "info['_final_obs'] must mark the rows that ended")
        self._check_values(final, {}, "info['final_obs']")
        shared = any(
            np.shares_memory(a, b)
            for a in _leaves(final).values()
            for b in _leaves(observation).values()
        )
        _require(not shared, "final_obs shares memory with the observation")
        _require(
            _equal(observation, final, ~ended),
            "rows that did not end differ between final_obs and obs",
        )

    def _check_partial_reset(self, before: Any, ended: np.ndarray) -> Any:
        try:
            self.env.step(np.zeros(self.env.num_envs, dtype=np.int64))
        except Exception:  # any refusal will do, as long as it is one
            pass
        else:
            raise ContractError("stepping an ended row must be an error in DISABLED mode")
        options = {"reset_mask": ended.copy()}
        observation, _ = self.env.reset(options=options)
        _require(_equal(options, {"reset_mask": ended}), "reset changed the caller's options")
        _require(
            _equal(observation, before, ~ended),
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
        id: id of a registered environment, such as ``resgym/HironakaHost-v0``.
        steps: steps of each mode.
        seed: seed of the actions and the environment.
        starts: a set of starts, if the environment takes one.
        progress: called with a line before each mode.

    Returns:
        The problem found, by mode; empty text if the environment keeps the contract.

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
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise ValueError(
            f"id: got {shown(id)}; expected a registered environment whose make_vec takes "
            f"autoreset_mode: {error}"
        ) from error
    return found
