"""Ids, keyword arguments of make and make_vec, closing, and what an import registers."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import resgym
from resgym.envs.environments import HironakaVectorEnv
from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, make_vec


@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
@pytest.mark.parametrize("env_id", IDS)
def test_spaces(env_id, dimension):
    num_actions = 2**dimension - dimension - 1
    single = gymnasium.make(env_id, dimension=dimension, max_num_points=7).unwrapped
    env = make_vec(env_id, 3, dimension=dimension, max_num_points=7)
    points = spaces.Box(-1, 1, (7, dimension), np.float32)
    shown = {"points": points, "coords": spaces.MultiBinary(dimension)}
    expected, size = {
        HOST: (points, num_actions),
        AGENT: (spaces.Dict(shown), dimension),
        BOTH: (spaces.Dict(**shown, to_play=spaces.Discrete(2)), max(num_actions, dimension)),
    }[env_id]
    assert single.observation_space == env.single_observation_space == expected
    assert single.action_space == env.single_action_space == spaces.Discrete(size)
    assert env.action_space == spaces.MultiDiscrete([size] * 3)
    assert env.unwrapped.all_actions_legal is (env_id == HOST)


def test_defaults():
    env = make_vec(HOST, 2)
    standard = resgym.GameSpec(3, 20, 20, "dominance", False, "basic", 1)
    assert env.plan.spec == resgym.GameSpec() == standard
    assert (env.reward, env.plan.invalid_action, env.form.output) == ("terminal", "error", "torch")
    assert env.plan.max_episode_steps == make_vec(BOTH, 2).plan.max_episode_steps == 200
    # Modes do not leak from one environment to the next through the class.
    make_vec(HOST, 2, autoreset_mode="DISABLED")
    assert make_vec(HOST, 2).metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert "autoreset_mode" not in HironakaVectorEnv.metadata


@pytest.mark.parametrize("env_id", IDS)
def test_nothing_works_before_the_first_reset(env_id):
    env = make_vec(env_id, 2, render_mode="ansi")
    for name, call in (
        ("step", lambda: env.step(np.zeros(2, dtype=np.int64))),
        ("action_masks", env.action_masks),
        ("render", env.render),
    ):
        with pytest.raises(ValueError, match=rf"^{name} before reset: call reset\(\) first$"):
            call()
    env.reset(seed=0)
    env.render()
    with pytest.raises(ValueError, match=r"^step before reset"):
        gymnasium.make(env_id).step(0)
