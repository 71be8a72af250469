"""A small vector environment that keeps the contract, and many that break one clause of it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

__all__ = ["BROKEN", "Countdown"]

_FRESH = itertools.count()


class Countdown(VectorEnv):
    """Each row counts down from a number that its seed and episode draw; action 1 counts two.

    Observations are {"left": float32 [N, 1], "noise": float32 [N, 1]}. At zero the row is
    terminated, after four steps truncated. The reward is the action.
    """

    LONGEST = 6
    LIMIT = 4

    def __init__(self, num_envs: int, mode: AutoresetMode = AutoresetMode.SAME_STEP) -> None:
        self.num_envs, self.mode = num_envs, mode
        self.metadata = {"autoreset_mode": mode}
        unit = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.single_observation_space = spaces.Dict(left=unit, noise=unit)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.seeds, self.episode, self.left, self.steps = np.zeros((4, num_envs), dtype=np.int64)
        self.noise, self.total = np.zeros((2, num_envs), dtype=np.float32)
        self.ended = np.zeros(num_envs, dtype=bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        if seed is not None:
            self.seeds, self.episode[:] = seed + np.arange(self.num_envs), -1
        self.start(mask)
        return self.observe(), {}

    def start(self, rows: np.ndarray) -> None:
        for row in np.flatnonzero(rows):
            self.episode[row] += 1
            generator = self.generator(row)
            self.left[row] = generator.integers(1, self.LONGEST + 1)
            self.noise[row] = generator.random()
            self.steps[row] = self.total[row] = 0
            self.ended[row] = False

    def generator(self, row: int) -> np.random.Generator:
        return np.random.default_rng([self.seeds[row], self.episode[row]])

    def observe(self) -> dict[str, np.ndarray]:
        left = (self.left / self.LONGEST).astype(np.float32).clip(min=0)
        return {"left": left[:, None], "noise": self.noise[:, None].copy()}

    def step(self, actions):
        if self.mode == AutoresetMode.DISABLED and self.ended.any():
            raise ValueError("an ended row must be reset")
        idle = self.ended if self.mode == AutoresetMode.NEXT_STEP else np.zeros_like(self.ended)
        reward = np.where(idle, 0, actions).astype(np.float32)
        self.left = np.where(idle, self.left, self.left - 1 - actions)
        self.steps, self.total = self.steps + ~idle, self.total + reward
        terminated = (self.left <= 0) & ~idle
        truncated = (self.steps >= self.LIMIT) & ~terminated & ~idle
        ended = terminated | truncated
        info = self.make_info(ended)
        if self.mode == AutoresetMode.SAME_STEP:
            if ended.any():
                info["final_obs"], info["_final_obs"] = self.observe(), ended.copy()
            self.start(ended)
        else:
            self.start(idle)
            self.ended = ended
        return self.observe(), reward, terminated, truncated, info

    def make_info(self, ended: np.ndarray) -> dict[str, Any]:
        if not ended.any():
            return {}
        episode = {"r": self.total.copy(), "l": self.steps.copy()}
        return {"episode": episode, "_episode": ended.copy()}


def _broken(**methods: Any) -> type[Countdown]:
    """The class with other methods."""
    return type("Broken", (Countdown,), methods)


def _stepping(change: Any) -> type[Countdown]:
    """Steps that are changed in place: the list of the five results, and the rows that restart."""

    def step(env: Countdown, actions: Any) -> tuple[Any, ...]:
        idle = env.ended.copy()
        results = list(Countdown.step(env, actions))
        change(results, idle)
        return tuple(results)

    return _broken(step=step)


def _at_ends(change: Any) -> type[Countdown]:
    """Steps whose info is changed in place where an episode has ended."""
    return _stepping(lambda results, _: change(results[4]) if "final_obs" in results[4] else None)


def _drawing(words: Any) -> type[Countdown]:
    """Random numbers from other words of an environment and a row."""
    return _broken(generator=lambda env, row: np.random.default_rng(words(env, row)))


def _reset_with_a_key(env: Countdown, *, seed: Any = None, options: Any = None) -> Any:
    result = Countdown.reset(env, seed=seed, options=options)
    if options is not None:
        options["seen"] = True
    return result


def _step_ended_rows(env: Countdown, actions: Any) -> Any:
    env.ended[:] = False
    return Countdown.step(env, actions)


SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED
ALL_RESTART = _broken(
    start=lambda env, rows: Countdown.start(env, np.ones_like(rows) if rows.any() else rows)
)

# What is broken: the mode it is broken in, the environment, and what the check must say.
BROKEN: dict[str, tuple[AutoresetMode, Any, str]] = {
    "reward [N, 1]": (SAME, _stepping(lambda r, _: r.insert(1, r.pop(1)[:, None])), "reward must"),
    "observation outside": (
        SAME, _stepping(lambda r, _: r[0]["left"].__iadd__(1)), "observation of step 0 is outside",
    ),
    "one row too many": (SAME, lambda n, mode: Countdown(n + 1, mode), "num_envs is 6, asked for"),
    "seed ignored": (SAME, _drawing(lambda env, row: [row, env.episode[row]]), "has no effect"),
    "unseeded": (SAME, _drawing(lambda env, row: next(_FRESH)), "two runs with seed 0 differ"),
    "all rows restart": (SAME, ALL_RESTART, "rows that did not end differ|depend on num_envs"),
    "options get a key": (SAME, _broken(reset=_reset_with_a_key), "changed the caller's options"),
    "info with strings": (
        SAME, _stepping(lambda r, _: r[4].update(why="end")), "must hold numbers or booleans",
    ),
    "no final_obs": (SAME, _at_ends(lambda info: info.pop("final_obs")), "'final_obs'"),
    "wrong _final_obs": (
        SAME, _at_ends(lambda info: info.update(_final_obs=~info["_final_obs"])), "must mark",
    ),
    "final_obs outside": (
        SAME, _at_ends(lambda info: info["final_obs"]["left"].__iadd__(2)),
        r"info\['final_obs'\] is outside",
    ),
    "returns wrong": (
        SAME, _at_ends(lambda info: info["episode"]["r"].__iadd__(1)),
        r"info\['episode'\]\['r'\] must be",
    ),
    "lengths missing": (
        SAME, _at_ends(lambda info: info["episode"].pop("l")),
        r"info\['episode'\]\['l'\] must be",
    ),
    "masks as numbers": (
        SAME, _broken(action_masks=lambda env: np.ones((env.num_envs, 2), dtype=np.int8)),
        r"action_masks must be bool \[5, 2\], got int8",
    ),
    "truncated scalar": (
        NEXT, _stepping(lambda r, _: r.insert(3, r.pop(3).any())), "truncated must be bool",
    ),
    "rows depend on num_envs": (
        NEXT, _drawing(lambda env, row: [env.seeds[row], env.episode[row], env.num_envs]),
        "rows depend on num_envs",
    ),
    "all rows restart next": (NEXT, ALL_RESTART, "must be"),
    "reward while restarting": (
        NEXT, _stepping(lambda r, idle: r[1].__iadd__(idle.astype(np.float32))),
        "restarted row must have reward 0",
    ),
    "mask ignored": (
        DISABLED, _broken(reset=lambda env, seed=None, options=None: Countdown.reset(env)),
        "changed rows outside the mask",
    ),
    "ended rows are stepped": (
        DISABLED, _broken(step=_step_ended_rows), "stepping an ended row must be an error",
    ),
    "no mask of the statistics": (
        DISABLED, _stepping(lambda r, _: r[4].pop("_episode", 0)),
        r"info\['_episode'\] must mark",
    ),
}  # fmt: skip
