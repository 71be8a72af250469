"""Whole steps of a backend beside the same steps of the reference."""

from collections import Counter

import numpy as np
import pytest

from resgym.game.spec import MAX_COORDINATE
from tests.resgym.envs.helpers import act_random, make_vec, restart, same


def pair(env_id, fast="numba", **kwargs):
    """The same environment on the reference and on a backend."""
    return [
        make_vec(env_id, backend=name, **{"num_envs": 6, **kwargs}).unwrapped
        for name in ("torch", fast)
    ]


def reset_both(envs, **arguments):
    assert same(*(env.reset(**arguments) for env in envs))


def step_both(envs, time, illegal=False):
    """A step of both with the same actions, which gives the same, to the bit, and what it gave.

    Ended rows are reset before it in DISABLED mode. In some rows the actions may be illegal.
    """
    assert same(*map(restart, envs))
    actions = act_random(envs[0], time)
    if illegal:
        random = np.random.default_rng(time)
        wild = random.integers(-3, envs[0].single_action_space.n + 3, len(actions))
        actions = np.where(random.random(len(actions)) < 0.3, wild, actions)
    expected, found = (env.step(actions) for env in envs)
    assert same(expected, found), f"step {time}"
    if time % 3 == 0:  # a state that is looked at is never written to again
        assert same(*(env.state_dict() for env in envs)), f"after step {time}"
    return expected


def play_both(env_id, steps=60, illegal=False, fast="numba", stage=None, **kwargs):
    """Steps a backend and the reference side by side; returns how often what happened."""
    envs = pair(env_id, fast, **kwargs)
    seen = Counter()
    reset_both(envs, seed=5)
    for env in envs if stage else ():
        env.set_stage(**stage)
    for time in range(steps):
        *_, terminated, truncated, _ = step_both(envs, time, illegal)
        seen.update(terminated=int(terminated.sum()), truncated=int(truncated.sum()))
    return seen


def play_overflows(env_id, fast, rounds, **kwargs):
    """Games from the edge of the range, over and over, on a backend and the reference."""
    top = MAX_COORDINATE
    overflows = 0
    points = [[top, top - 1, 0], [top - 1, top, 1], [0, 1, top], [1, 0, top - 1]]
    envs = pair(env_id, fast, max_num_points=4, **kwargs)
    for round_ in range(rounds):
        reset_both(envs, seed=round_, options={"points": points})
        for step in range(2):
            *_, truncated, info = step_both(envs, 10 * round_ + step)
            overflows += int(info["overflow"].sum())
            assert bool((truncated >= info["overflow"]).all())
    assert overflows > 5


def refuse_steps(env_id, fast, **kwargs):
    """An illegal action, and an ended row in DISABLED, are named and change nothing."""
    _, env = pair(env_id, fast, autoreset_mode="DISABLED", max_episode_steps=1, **kwargs)
    env.reset(seed=3)
    good = act_random(env, 0)
    before = env.state_dict()
    for wrong in (99, -1):
        actions = good.copy()
        actions[4] = wrong
        with pytest.raises(ValueError, match=rf"row 4 .*, got {wrong}"):
            env.step(actions)
    assert same(env.state_dict(), before)
    env.step(good)
    with pytest.raises(ValueError, match=r"\[0, 1, 2, 3, 4, 5\] have ended"):
        env.step(good)
