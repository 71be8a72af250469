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


def _stepping(change) -> type[Countdown]:
    """A class whose steps return ``change(env, result, idle)``; idle rows have only restarted."""

    class Changed(Countdown):
        def step(self, actions):
            idle = self.ended.copy()
            return change(self, super().step(actions), idle)

    return Changed


def _changed(position: int, change) -> type[Countdown]:
    """A class whose step returns one of its five results changed."""
    return _stepping(
        lambda env, result, idle: (
            *result[:position], change(env, result[position]), *result[position + 1 :]
        )
    )  # fmt: skip


def _with_info(change) -> type[Countdown]:
    """A class whose info dictionary is changed in place; ``change`` gets (info, observation)."""

    def changed(env, result, idle):
        change(result[4], result[0])
        return result

    return _stepping(changed)


def _if_final(change):
    return _with_info(lambda info, seen: change(info, seen) if "final_obs" in info else None)


def _resetting(change) -> type[Countdown]:
    """A class whose reset is ``change(reset, seed, options)``, where ``reset`` is the right one."""

    class Changed(Countdown):
        def reset(self, *, seed=None, options=None):
            return change(super().reset, seed, options)

    return Changed


def _made(change) -> type[Countdown]:
    """A class whose objects are changed when they are made."""

    class Changed(Countdown):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            change(self)

    return Changed


def _drawing(words) -> type[Countdown]:
    """A class whose random numbers come from other words: ``words(env, row)``."""
    return type(
        "Changed",
        (Countdown,),
        {"generator": lambda env, row: np.random.default_rng(words(env, row))},
    )


def _masking(masks) -> type[Countdown]:
    return type("Changed", (Countdown,), {"action_masks": lambda env: masks(env.num_envs)})


class NeverRestarts(Countdown):
    """Ended rows go on from where they are, forgetting only their clock."""

    def start(self, rows):
        fresh = rows & (self.episode < 0)
        super().start(fresh)
        self.steps[rows] = self.total[rows] = 0
        self.ended[rows] = False


class RestartsEverything(Countdown):
    def start(self, rows):
        super().start(np.ones_like(rows) if rows.any() else rows)


class StepsEndedRows(Countdown):
    def step(self, actions):
        self.ended[:] = False
        return super().step(actions)


class OneBuffer(Countdown):
    """Observations are views of one array that every step writes to."""

    def observe(self):
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros((self.num_envs, 1), dtype=np.float32)
        self.buffer[:] = super().observe()["left"]
        return {"left": self.buffer, "noise": self.noise[:, None].copy()}


class NeverEnds(Countdown):
    LIMIT = 10**9

    def start(self, rows):
        super().start(rows)
        self.left[rows] = 10**9

    def observe(self):
        return {"left": np.zeros((self.num_envs, 1), np.float32), "noise": self.noise[:, None] + 0}


def _adds_to_options(reset, seed, options):
    result = reset(seed=seed, options=options)
    if options is not None:
        options["seen"] = True
    return result


def _alias(info, observation):
    info["final_obs"] = {"left": observation["left"], "noise": info["final_obs"]["noise"]}


def _sparse(info, observation):
    rows = info["_final_obs"]
    info["final_obs"] = {name: array[rows] for name, array in info["final_obs"].items()}


def _set(*path_and_value):
    *path, key, value = path_and_value

    def change(info, observation):
        target = info
        for name in path:
            target = target[name]
        target[key] = value(info) if callable(value) else value

    return change


SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED

# In each mode what is broken: the environment, and what the check must say.
_BROKEN_IN: dict[AutoresetMode, dict[str, tuple[Any, str]]] = {
    SAME: {
        "reward [N, 1]": (_changed(1, lambda env, x: x[:, None]), "reward must be"),
        "observation outside": (
            _changed(0, lambda env, x: {**x, "left": x["left"] + 1}),
            "the observation of step 0 is outside",
        ),
        "four values": (
            _stepping(lambda env, result, idle: (*result[:3], result[4])),
            "step must return 5 values, got 4",
        ),
        "no mode": (
            _made(lambda env: env.metadata.clear()),
            r"metadata\['autoreset_mode'\] must be an AutoresetMode, got None",
        ),
        "one row too many": (lambda n, mode: Countdown(n + 1, mode), "num_envs is 6, asked for 5"),
        "unbatched space": (
            _made(lambda env: setattr(env, "action_space", spaces.MultiDiscrete([2]))),
            "action_space is not num_envs",
        ),
        "seed ignored": (
            _drawing(lambda env, row: [row, env.episode[row]]),
            "the seed has no effect",
        ),
        "unseeded": (_drawing(lambda env, row: next(_FRESH)), "two runs with seed 0 differ"),
        "all rows restart": (RestartsEverything, "rows that did not end differ|depend on num_envs"),
        "no restart": (NeverRestarts, "they do not restart"),
        "options get a key": (_resetting(_adds_to_options), "reset changed the caller's options"),
        "never ends": (NeverEnds, "no episode ended within 40 steps"),
        "info with strings": (_with_info(_set("why", "end")), "must hold numbers or booleans"),
        "no final_obs": (_with_info(lambda info, _: info.pop("final_obs", 0)), "'final_obs'"),
        "wrong _final_obs": (
            _if_final(_set("_final_obs", lambda info: ~info["_final_obs"])),
            r"info\['_final_obs'\] must mark",
        ),
        "final_obs of the ended rows only": (_if_final(_sparse), "is outside"),
        "final_obs shares memory": (_if_final(_alias), "shares memory|two runs|do not restart"),
        "final_obs outside": (
            _if_final(lambda info, _: info["final_obs"]["left"].__iadd__(2)),
            r"info\['final_obs'\] is outside",
        ),
        "returns wrong": (
            _if_final(lambda info, _: info["episode"]["r"].__iadd__(1)),
            r"info\['episode'\]\['r'\] must be",
        ),
        "lengths missing": (
            _if_final(lambda info, _: info["episode"].pop("l")),
            r"info\['episode'\]\['l'\] must be",
        ),
        "masks as numbers": (
            _masking(lambda n: np.ones((n, 2), dtype=np.int8)),
            r"action_masks must be bool \[5, 2\], got int8",
        ),
    },
    NEXT: {
        "truncated scalar": (_changed(3, lambda env, x: x.any()), "truncated must be bool"),
        "rows depend on num_envs": (
            _drawing(lambda env, row: [env.seeds[row], env.episode[row], env.num_envs]),
            "rows depend on num_envs",
        ),
        "all rows restart next": (RestartsEverything, "must be"),
        "one observation buffer": (OneBuffer, "was overwritten"),
        "reward while restarting": (
            _stepping(lambda env, r, idle: (r[0], r[1] + idle.astype(np.float32), *r[2:])),
            "restarted row must have reward 0",
        ),
    },
    DISABLED: {
        "mask ignored": (
            _resetting(lambda reset, seed, options: reset(seed=seed)),
            "changed rows outside the mask",
        ),
        "ended rows are stepped": (StepsEndedRows, "stepping an ended row must be an error"),
        "no mask of the statistics": (
            _with_info(lambda info, _: info.pop("_episode", 0)),
            r"info\['_episode'\] must mark",
        ),
    },
}

# What is broken: the environment, the mode it is broken in, and what the check must say.
BROKEN: dict[str, tuple[Any, AutoresetMode, str]] = {
    what: (make, mode, message)
    for mode, cases in _BROKEN_IN.items()
    for what, (make, message) in cases.items()
}
