"""What environments say of themselves, so that learners can leave work out, against their play."""

import numpy as np
import pytest

from tests.resgym.backends import every_backend
from tests.resgym.envs.helpers import (
    AGENT,
    BOTH,
    HOST,
    IDS,
    SHORT,
    act_random,
    array,
    asked,
    leaves,
    make_vec,
    row_bytes,
)


@pytest.mark.parametrize(("env_id", "expected"), [(HOST, True), (AGENT, False), (BOTH, False)])
def test_all_actions_are_legal_where_it_is_said(env_id, expected):
    env = make_vec(env_id, 6, **SHORT)
    assert env.unwrapped.all_actions_legal is expected
    env.reset(seed=1)
    seen = []
    for step in range(12):
        seen.append(array(env.action_masks()))
        env.step(act_random(env, step))
    assert bool(np.all(seen)) is expected


@every_backend
@pytest.mark.parametrize("opponent", [None, ["random", asked]])
@pytest.mark.parametrize("env_id", IDS)
def test_final_observations_are_those_of_all_rows(env_id, opponent, backend):
    """In the rows that go on they are the observation, bit by bit, and not in those that ended."""
    given = {} if opponent is None or env_id == BOTH else {"opponent": opponent}
    env = make_vec(env_id, 8, backend=backend, **SHORT, **given)
    assert env.unwrapped.final_obs_of_all_rows
    env.reset(seed=3)
    went_on = ended = 0
    for step in range(25):
        observation, _, _, _, info = env.step(act_random(env, step))
        if "final_obs" not in info:
            continue
        shapes = [leaf.shape for leaf in leaves(observation)]
        assert [leaf.shape for leaf in leaves(info["final_obs"])] == shapes
        for row, done in enumerate(array(info["_final_obs"]).tolist()):
            same = row_bytes(info["final_obs"], row) == row_bytes(observation, row)
            assert same is not done
            ended += done
            went_on += not done
    assert ended > 10
    assert went_on > 10
