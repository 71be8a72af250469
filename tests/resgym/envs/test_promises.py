"""What environments say of themselves, so that learners can leave work out, against their play."""

import numpy as np
import pytest

from tests.resgym.envs.helpers import AGENT, BOTH, HOST, SHORT, act_random, array, make_vec


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
