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


def _changed(position: int, change) -> type[Countdown]:
    """A class whose step returns one of its five results changed."""

    def step(self, actions):
        result = list(Countdown.step(self, actions))
        result[position] = change(self, result[position])
        return tuple(result)

    return type("Changed", (Countdown,), {"step": step})


def _with_info(change) -> type[Countdown]:
    """A class whose info dictionary is changed in place; ``change`` gets (info, observation)."""

    def step(self, actions):
        result = Countdown.step(self, actions)
        change(result[4], result[0])
        return result

    return type("Changed", (Countdown,), {"step": step})


def _if_final(change):
    return lambda info, observation: change(info, observation) if "final_obs" in info else None


class NoMode(Countdown):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.metadata = {}


class ModeByName(Countdown):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.metadata = {"autoreset_mode": self.mode.name}


class OneRowTooMany(Countdown):
    def __init__(self, num_envs, *arguments):
        super().__init__(num_envs + 1, *arguments)


class UnbatchedSpace(Countdown):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.action_space = spaces.MultiDiscrete([2])


class SeedIgnored(Countdown):
    def generator(self, row):
        return np.random.default_rng([row, self.episode[row]])


class Unseeded(Countdown):
    def generator(self, row):
        return np.random.default_rng(next(_FRESH))


class SharedGenerator(Countdown):
    """Restarts draw from one generator in the order in which they come."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.shared = np.random.default_rng(seed)
        return super().reset(seed=seed, options=options)

    def generator(self, row):
        return self.shared


class SizeDependent(Countdown):
    def generator(self, row):
        return np.random.default_rng([self.seeds[row], self.episode[row], self.num_envs])


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


class RestartsEverythingSilently(RestartsEverything):
    def make_info(self, ended):
        return {}


class IgnoresTheMask(Countdown):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


class StepsEndedRows(Countdown):
    def step(self, actions):
        self.ended[:] = False
        return super().step(actions)


class AddsToOptions(Countdown):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        if options is not None:
            options["seen"] = True
        return result


class TakesTheMask(Countdown):
    def reset(self, *, seed=None, options=None):
        options = {} if options is None else options
        mask = options.pop("reset_mask", np.ones(self.num_envs, dtype=bool))
        return super().reset(seed=seed, options={"reset_mask": mask})


class ClearsTheMask(Countdown):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        if options and "reset_mask" in options:
            options["reset_mask"][:] = False
        return result


class OneBuffer(Countdown):
    """Observations are views of one array that every step writes to."""

    def observe(self):
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros((self.num_envs, 1), dtype=np.float32)
        self.buffer[:] = super().observe()["left"]
        return {"left": self.buffer, "noise": self.noise[:, None].copy()}


class OneRewardBuffer(Countdown):
    def step(self, actions):
        observation, reward, *rest = super().step(actions)
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros_like(reward)
        self.buffer[:] = reward
        return (observation, self.buffer, *rest)


class LiveStatistics(Countdown):
    """The returns in info are the running totals themselves."""

    def make_info(self, ended):
        info = super().make_info(ended)
        if info:
            if not hasattr(self, "live"):
                self.live = np.zeros(self.num_envs)
            self.live[:] = self.total
            info["episode"]["r"] = self.live
        return info


class NeverEnds(Countdown):
    LIMIT = 10**9

    def start(self, rows):
        super().start(rows)
        self.left[rows] = 10**9

    def observe(self):
        return {"left": np.zeros((self.num_envs, 1), np.float32), "noise": self.noise[:, None] + 0}


class RewardWhileRestarting(Countdown):
    def step(self, actions):
        idle = self.ended.copy()
        observation, reward, *rest = super().step(actions)
        return (observation, np.where(idle, 1, reward).astype(np.float32), *rest)


class EndsWhileRestarting(Countdown):
    def step(self, actions):
        idle = self.ended.copy()
        observation, reward, terminated, *rest = super().step(actions)
        return (observation, reward, terminated | idle, *rest)


class CountsTheRestart(Countdown):
    """The idle step of NEXT_STEP is counted as a step of the new episode."""

    def step(self, actions):
        idle = self.ended.copy()
        result = super().step(actions)
        self.steps += idle
        return result


class FirstObservationOutside(Countdown):
    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        return {"left": observation["left"] + 2, "noise": observation["noise"]}, info


class MasksAsNumbers(Countdown):
    def action_masks(self):
        return np.ones((self.num_envs, 2), dtype=np.int8)


class MasksOfOneRow(Countdown):
    def action_masks(self):
        return np.ones((1, 2), dtype=bool)


class FourValues(Countdown):
    def step(self, actions):
        observation, reward, terminated, truncated, info = super().step(actions)
        return observation, reward, terminated | truncated, info


def _alias(info, observation):
    info["final_obs"] = {"left": observation["left"], "noise": info["final_obs"]["noise"]}


def _sparse(info, observation):
    rows = info["_final_obs"]
    info["final_obs"] = {name: array[rows] for name, array in info["final_obs"].items()}


def _empty_others(info, observation):
    final, rows = info["final_obs"], info["_final_obs"]
    info["final_obs"] = {k: np.where(rows[:, None], v, np.float32(0)) for k, v in final.items()}


def _set(*path_and_value):
    *path, key, value = path_and_value

    def change(info, observation):
        target = info
        for name in path:
            target = target[name]
        target[key] = value(info) if callable(value) else value

    return change


SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED

# What is broken: the environment, the mode it is broken in, and what the check must say.
BROKEN: dict[str, tuple[Any, AutoresetMode, str]] = {
    "reward float64": (_changed(1, lambda env, x: x.astype(float)), SAME, "reward must be"),
    "reward [N, 1]": (_changed(1, lambda env, x: x[:, None]), SAME, "reward must be"),
    "terminated int8": (
        _changed(2, lambda env, x: x.astype(np.int8)),
        SAME,
        "terminated must",
    ),
    "truncated scalar": (_changed(3, lambda env, x: x.any()), NEXT, "truncated must be bool"),
    "observation outside": (
        _changed(0, lambda env, x: {**x, "left": x["left"] + 1}),
        SAME,
        "the observation of step 0 of row 0 is outside",
    ),
    "observation float64": (
        _changed(0, lambda env, x: {**x, "left": x["left"].astype(float)}),
        SAME,
        "is outside single_observation_space",
    ),
    "observation without a part": (
        _changed(0, lambda env, x: {"left": x["left"]}),
        SAME,
        "is outside single_observation_space",
    ),
    "observation NaN": (
        _changed(0, lambda env, x: {**x, "noise": x["noise"] * np.nan}),
        DISABLED,
        "is outside single_observation_space",
    ),
    "first observation outside": (FirstObservationOutside, SAME, "the first observation of row 0"),
    "four values": (FourValues, SAME, "step must return 5 values, got 4"),
    "no mode": (NoMode, SAME, r"metadata\['autoreset_mode'\] must be an AutoresetMode, got None"),
    "mode by name": (ModeByName, NEXT, "must be an AutoresetMode, got 'NEXT_STEP'"),
    "one row too many": (OneRowTooMany, SAME, "num_envs is 6, asked for 5"),
    "unbatched space": (UnbatchedSpace, SAME, "action_space has shape"),
    "no vector environment": (
        lambda *arguments: object(),
        SAME,
        "not a gymnasium VectorEnv: object",
    ),
    "seed ignored": (SeedIgnored, SAME, "the seed has no effect"),
    "unseeded": (Unseeded, SAME, "two runs with seed 0 differ"),
    "one generator for all rows": (SharedGenerator, SAME, "rows depend on num_envs"),
    "rows depend on num_envs": (SizeDependent, NEXT, "rows depend on num_envs"),
    "all rows restart": (
        RestartsEverything,
        SAME,
        "rows that did not end differ|depend on num_envs",
    ),
    "all rows restart next": (RestartsEverything, NEXT, "is not what the episode was"),
    "all rows restart silently": (RestartsEverythingSilently, NEXT, "rows depend on num_envs"),
    "no restart": (NeverRestarts, SAME, "they do not restart"),
    "no restart next": (NeverRestarts, NEXT, "they do not restart"),
    "no restart by reset": (NeverRestarts, DISABLED, "they do not restart"),
    "mask ignored": (IgnoresTheMask, DISABLED, "changed rows outside the mask"),
    "ended rows are stepped": (StepsEndedRows, DISABLED, "stepping an ended row must be an error"),
    "options get a key": (AddsToOptions, SAME, "reset changed the caller's options"),
    "options lose the mask": (TakesTheMask, DISABLED, "reset changed the caller's options"),
    "mask is cleared": (ClearsTheMask, DISABLED, "reset changed the caller's options"),
    "one observation buffer": (OneBuffer, NEXT, "obs.*returned earlier was overwritten"),
    "one observation buffer, restarting": (OneBuffer, SAME, "overwritten|shares memory"),
    "one reward buffer": (OneRewardBuffer, SAME, "reward.*returned earlier was overwritten"),
    "live statistics": (LiveStatistics, SAME, "episode.*returned earlier was overwritten"),
    "never ends": (NeverEnds, SAME, "no episode ended within 40 steps"),
    "reward while restarting": (RewardWhileRestarting, NEXT, "restarted row must have reward 0"),
    "ends while restarting": (
        EndsWhileRestarting,
        NEXT,
        "restarted row must have reward 0 and not",
    ),
    "restart counted": (CountsTheRestart, NEXT, r"info\['episode'\]\['l'\] is not what"),
    "info with strings": (
        _with_info(_set("why", "end")),
        SAME,
        "must hold numbers or booleans",
    ),
    "info with None": (_with_info(_set("why", None)), NEXT, "must hold numbers or booleans"),
    "info with objects": (
        _with_info(_set("final_info", lambda info: np.array([{}], dtype=object))),
        SAME,
        r"info\[final_info\] must hold numbers or booleans, got dtype object",
    ),
    "no final_obs": (
        _with_info(lambda info, _: info.pop("final_obs", 0)),
        SAME,
        "'final_obs'",
    ),
    "no _final_obs": (
        _with_info(lambda info, _: info.pop("_final_obs", 0)),
        SAME,
        "info must have '_final_obs'",
    ),
    "wrong _final_obs": (
        _with_info(_if_final(_set("_final_obs", lambda info: ~info["_final_obs"]))),
        SAME,
        r"info\['_final_obs'\] must mark",
    ),
    "final_obs of the ended rows only": (
        _with_info(_if_final(_sparse)),
        SAME,
        "must be dense",
    ),
    "final_obs shares memory": (
        _with_info(_if_final(_alias)),
        SAME,
        "shares memory|two runs|do not restart",
    ),
    "final_obs empty elsewhere": (
        _with_info(_if_final(_empty_others)),
        SAME,
        "rows that did not end differ",
    ),
    "final_obs outside": (
        _with_info(_if_final(lambda info, _: info["final_obs"]["left"].__iadd__(2))),
        SAME,
        r"info\['final_obs'\] of row 0 is outside",
    ),
    "returns wrong": (
        _with_info(_if_final(lambda info, _: info["episode"]["r"].__iadd__(1))),
        SAME,
        r"info\['episode'\]\['r'\] is not what the episode was",
    ),
    "lengths missing": (
        _with_info(_if_final(lambda info, _: info["episode"].pop("l"))),
        SAME,
        r"info\['episode'\] must have 'l'",
    ),
    "no mask of the statistics": (
        _with_info(lambda info, _: info.pop("_episode", 0)),
        DISABLED,
        r"info\['episode'\] must have its mask",
    ),
    "wrong mask of the statistics": (
        _with_info(_if_final(_set("_episode", lambda info: ~info["_episode"]))),
        SAME,
        r"info\['_episode'\] must mark",
    ),
    "masks as numbers": (MasksAsNumbers, SAME, r"action_masks must be bool \[5, 2\], got int8"),
    "masks of one row": (
        MasksOfOneRow,
        SAME,
        r"action_masks must be bool \[5, 2\], got bool \[1, 2\]",
    ),
}
