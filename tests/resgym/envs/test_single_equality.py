"""A vector environment of B rows is B single environments, byte for byte."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.resgym.envs.helpers import IDS, SHORT, act_random, make_vec, parts, row_bytes, same

NUM_ENVS = 5
VARIANTS = {
    "default game": {},
    "short": {**SHORT, "reward": "points"},
    "four axes": {"dimension": 4, "max_num_points": 9, "reward": "step", "reposition": True,
                  "max_episode_steps": 25, "scale_observation": False},
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("env_id", IDS)
def test_made_by_gymnasium(env_id, variant):
    arguments = VARIANTS[variant]
    vector = make_vec(env_id, NUM_ENVS, output="numpy", **arguments)
    makers = [lambda: gymnasium.make(env_id, **arguments)] * NUM_ENVS
    single = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    seen, _ = vector.reset(seed=40)
    expected, _ = single.reset(seed=40)
    ends = 0
    for time in range(120):
        assert same(seen, expected)
        masks = [env.unwrapped.action_masks() for env in single.envs]
        assert np.array_equal(masks, vector.action_masks())
        actions = act_random(vector, time)
        seen, reward, terminated, truncated, info = vector.step(actions)
        expected, *results, single_info = single.step(actions)
        # Gymnasium's TimeLimit raises its flag on a game that ends at the limit as well.
        results[2] &= ~results[1]
        for found, wanted in zip((reward, terminated, truncated), results, strict=True):
            assert np.array_equal(found, wanted)
        # Gymnasium keeps the info of an ended row elsewhere.
        flags = np.zeros(NUM_ENVS, dtype=bool)
        for kept in (single_info, single_info.get("final_info", {})):
            flags |= kept.get("overflow", flags)
        assert np.array_equal(info["overflow"], flags)
        ended = terminated | truncated
        ends += int(ended.sum())
        if ended.any():
            assert np.array_equal(info["_final_obs"], ended)
            assert np.array_equal(single_info["_final_obs"], ended)
        for row in np.flatnonzero(ended):
            final = map(np.asarray, parts(single_info["final_obs"][row]))
            assert b"".join(part.tobytes() for part in final) == row_bytes(info["final_obs"], row)
    assert ends > 15
