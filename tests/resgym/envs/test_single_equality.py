"""A vector environment of B rows is B single environments, byte for byte."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from resgym.envs import HironakaEnv
from tests.resgym.envs.helpers import (
    AGENT,
    BOTH,
    HOST,
    IDS,
    SHORT,
    act_random,
    array,
    equal,
    leaves,
    make_vec,
    row_bytes,
)

NUM_ENVS = 5
CLASSES = {
    HOST: partial(HironakaEnv, seat="host"),
    AGENT: partial(HironakaEnv, seat="agent"),
    BOTH: HironakaEnv,
}
VARIANTS = {
    "default game": {},
    "short": {**SHORT, "reward": "points"},
    "four axes": {"dimension": 4, "max_num_points": 9, "reward": "step", "reposition": True,
                  "max_episode_steps": 25, "scale_observation": False},
}  # fmt: skip


def singles(make, mode: str) -> SyncVectorEnv:
    return SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=AutoresetMode[mode])


def same_final(vector_info: dict, single_info: dict, ended: np.ndarray) -> None:
    assert np.array_equal(array(vector_info["_final_obs"]), ended)
    assert np.array_equal(single_info["_final_obs"], ended)
    for row in np.flatnonzero(ended):
        single = single_info["final_obs"][row]
        single_leaves = [np.asarray(leaf) for leaf in leaves(single)]
        assert b"".join(x.tobytes() for x in single_leaves) == row_bytes(
            vector_info["final_obs"], row
        )


def compare(vector: Any, single: SyncVectorEnv, mode: str, steps: int, terminal_wins: bool) -> int:
    """Steps both with the same actions; returns how many episodes ended."""
    seen, _ = vector.reset(seed=40)
    expected, _ = single.reset(seed=40)
    ends = 0
    ended = np.zeros(NUM_ENVS, dtype=bool)
    for time in range(steps):
        assert equal(seen, expected)
        for row, env in enumerate(single.envs):
            if mode != "NEXT_STEP" or not ended[row]:
                masks = env.unwrapped.action_masks()
                assert np.array_equal(masks, array(vector.action_masks())[row])
        actions = act_random(vector, time)
        seen, *rest, info = vector.step(actions)
        expected, *single_rest, single_info = single.step(actions)
        reward, terminated, truncated = (array(each) for each in rest)
        single_reward, single_terminated, single_truncated = single_rest
        assert np.array_equal(reward.astype(np.float64), single_reward)
        assert np.array_equal(terminated, single_terminated)
        if not terminal_wins:
            # Gymnasium's TimeLimit raises its flag on a game that ends at the limit as well.
            single_truncated = single_truncated & ~single_terminated
        assert np.array_equal(truncated, single_truncated)
        # Gymnasium keeps the info of an ended row elsewhere, and none of a restarted one.
        flags = np.zeros(NUM_ENVS, dtype=bool)
        for kept in (single_info, single_info.get("final_info", {})):
            flags |= kept.get("overflow", flags)
        assert np.array_equal(array(info["overflow"]), flags)
        ended = terminated | truncated
        ends += int(ended.sum())
        if mode == "SAME_STEP" and ended.any():
            same_final(info, single_info, ended)
        if mode == "DISABLED" and ended.any():
            seen, _ = vector.reset(options={"reset_mask": ended})
            expected, _ = single.reset(options={"reset_mask": ended.copy()})
    return ends


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("env_id", IDS)
def test_made_by_gymnasium(env_id, variant):
    arguments = VARIANTS[variant]
    vector = make_vec(env_id, NUM_ENVS, output="numpy", **arguments)
    single = singles(lambda: gymnasium.make(env_id, **arguments), "SAME_STEP")
    assert compare(vector, single, "SAME_STEP", 200, terminal_wins=False) > 15
