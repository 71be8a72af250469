"""What the tests of the environments share: making, playing and comparing."""

import gymnasium
import numpy as np
import torch

HOST, AGENT, BOTH = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0", "resgym/Hironaka-v0"
IDS = (HOST, AGENT, BOTH)
MODES = ("SAME_STEP", "NEXT_STEP", "DISABLED")

# Small enough that games end after a few moves, by themselves and by the limit.
SHORT = {"max_num_points": 6, "max_value": 5, "max_episode_steps": 7}

# Keyword arguments that every environment gets unless it is made with others.
DEFAULTS = {}


def make_vec(env_id, num_envs=4, **arguments):
    return gymnasium.make_vec(env_id, num_envs=num_envs, **{**DEFAULTS, **arguments})


def array(value):
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def parts(tree):
    """The tensors or arrays of an observation, in the order of their names."""
    if isinstance(tree, dict):
        return [part for name in sorted(tree) for part in parts(tree[name])]
    return [tree]


def row_bytes(tree, row):
    """One row of an observation, every bit of it."""
    return b"".join(array(part)[row].tobytes() for part in parts(tree))


def same(first, second):
    """Whether two trees of tensors, arrays and plain data are equal, every bit and type of them."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    if not isinstance(first, (torch.Tensor, np.ndarray)):
        return bool(first == second)
    a = array(first)
    b = array(second)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def act_random(env, *words):
    """Legal actions that depend on the words and the row only; 0 where there is none."""
    rows = enumerate(map(np.flatnonzero, array(env.action_masks())))
    return np.array(
        [np.random.default_rng([*words, k]).choice(legal) if len(legal) else 0 for k, legal in rows]
    )


def restart(env):
    """In DISABLED mode reset the rows that have ended: what the reset gives, if there is one."""
    if env.metadata["autoreset_mode"].name != "DISABLED":
        return None  # and the state is not looked at
    ended = array(env.games.ended)
    return env.reset(options={"reset_mask": ended}) if ended.any() else None


def played(env, steps=30, seed=None, act=act_random):
    """A run from a reset with the seed, if one is given: all that each step shows of each row."""
    rows = range(env.num_envs)
    seen = []
    if seed is not None:
        observation, _ = env.reset(seed=seed)
        seen = [[row_bytes(observation, row) for row in rows]]
    for time in range(steps):
        observation, reward, terminated, truncated, info = env.step(act(env, time))
        shown = {
            "observation": observation, "masks": env.action_masks(), "overflow": info["overflow"],
            "reward": reward, "terminated": terminated, "truncated": truncated,
        }  # fmt: skip
        seen.append([row_bytes(shown, row) for row in rows])
        if (ended := array(terminated | truncated)).any():
            assert np.array_equal(array(info["_episode"]), ended)
            shown = {name: info[name] for name in ("episode", "final_obs") if name in info}
            for row in np.flatnonzero(ended):
                seen[-1][row] += row_bytes(shown, row)
        restart(env)
    return seen


def asked(state, coords, rng):
    """An opponent that no backend has compiled."""
    return coords.int().argmax(1) if coords is not None else state.count % 2


def alive(points):
    """The points of one row of an unscaled observation."""
    return [tuple(int(x) for x in point) for point in points if point[0] >= 0]
