"""A vector environment that keeps the contract, and many like it that break one clause of it."""

import itertools

import numpy as np
from gymnasium.vector import AutoresetMode

from resgym.envs.environments import HironakaVectorEnv
from tests.resgym.envs.helpers import SHORT

__all__ = ["BROKEN", "Right"]

_FRESH = itertools.count()


class Right(HironakaVectorEnv):
    """Short games of a host, in NumPy."""

    def __init__(self, num_envs, mode=AutoresetMode.SAME_STEP):
        super().__init__(num_envs, seat="host", output="numpy", autoreset_mode=mode, **SHORT)


def _broken(**methods):
    """The class with other methods."""
    return type("Broken", (Right,), methods)


def _stepping(change):
    """Steps that are changed in place: the list of the five results, and the rows that restart."""

    def step(env, actions):
        idle = env.games.ended.numpy().copy()
        results = list(Right.step(env, actions))
        change(results, idle)
        return tuple(results)

    return _broken(step=step)


def _at_ends(change):
    """Steps whose info is changed in place where an episode has ended."""
    return _stepping(lambda results, _: change(results[4]) if "final_obs" in results[4] else None)


def _seeded(seed_of):
    """Resets with a seed of their own in place of one that is given."""

    def reset(env, *, seed=None, options=None):
        seed = None if seed is None else seed_of(env, seed)
        return Right.reset(env, seed=seed, options=options)

    return _broken(reset=reset)


def _reset_with_a_key(env, *, seed=None, options=None):
    result = Right.reset(env, seed=seed, options=options)
    if options is not None:
        options["seen"] = True
    return result


def _restart_all(env, actions):
    """Where a row restarts, the others do too."""
    restart = env.games.ended.any()
    observation, *rest = Right.step(env, actions)
    if "final_obs" in rest[-1] or (restart and not (rest[1] | rest[2]).any()):
        observation, _ = Right.reset(env)
    return observation, *rest


def _step_ended_rows(env, actions):
    if (ended := env.games.ended).any():
        Right.reset(env, options={"reset_mask": ended})
    return Right.step(env, actions)


SAME, NEXT, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED

# What is broken: the mode it is broken in, the environment, and what the check must say.
BROKEN = {
    "reward [N, 1]": (SAME, _stepping(lambda r, _: r.insert(1, r.pop(1)[:, None])), "reward must"),
    "observation outside": (
        SAME, _stepping(lambda r, _: r.insert(0, r.pop(0) + 2)), "observation of step 0 is outside",
    ),
    "one row too many": (SAME, lambda n, mode: Right(n + 1, mode), "num_envs is 6, asked for"),
    "seed ignored": (SAME, _seeded(lambda env, seed: 0), "has no effect"),
    "unseeded": (SAME, _seeded(lambda env, seed: next(_FRESH)), "two runs with seed 0 differ"),
    "all rows restart": (
        SAME, _broken(step=_restart_all), "rows that did not end differ|depend on num_envs",
    ),
    "options get a key": (SAME, _broken(reset=_reset_with_a_key), "changed the caller's options"),
    "info with strings": (
        SAME, _stepping(lambda r, _: r[4].update(why="end")), "must hold numbers or booleans",
    ),
    "no final_obs": (SAME, _at_ends(lambda info: info.pop("final_obs")), "'final_obs'"),
    "wrong _final_obs": (
        SAME, _at_ends(lambda info: info.update(_final_obs=~info["_final_obs"])), "must mark",
    ),
    "final_obs outside": (
        SAME, _at_ends(lambda info: info.update(final_obs=info["final_obs"] + 2)),
        r"info\['final_obs'\] is outside",
    ),
    "returns wrong": (
        SAME, _at_ends(lambda info: info["episode"].update(r=info["episode"]["r"] + 1)),
        r"info\['episode'\]\['r'\] must be",
    ),
    "lengths missing": (
        SAME, _at_ends(lambda info: info["episode"].pop("l")),
        r"info\['episode'\]\['l'\] must be",
    ),
    "masks as numbers": (
        SAME, _broken(action_masks=lambda env: np.ones((env.num_envs, 4), dtype=np.int8)),
        r"action_masks must be bool \[5, 4\], got int8",
    ),
    "truncated scalar": (
        NEXT, _stepping(lambda r, _: r.insert(3, r.pop(3).any())), "truncated must be bool",
    ),
    "rows depend on num_envs": (
        NEXT, _seeded(lambda env, seed: seed + env.num_envs), "rows depend on num_envs",
    ),
    "all rows restart next": (NEXT, _broken(step=_restart_all), "must be"),
    "reward while restarting": (
        NEXT, _stepping(lambda r, idle: r.insert(1, r.pop(1) + idle.astype(np.float32))),
        "restarted row must have reward 0",
    ),
    "mask ignored": (
        DISABLED, _broken(reset=lambda env, seed=None, options=None: Right.reset(env, seed=seed)),
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
