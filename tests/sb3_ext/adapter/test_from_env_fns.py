"""One batched environment from a list of functions, as SB3 and rl_zoo3 make environments."""

import gymnasium
import pytest
from gymnasium.wrappers import TransformReward
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyEnv, ToyVectorEnv, register_toy

TOY_ID = register_toy()


def toy_of(env):
    toy = env.unwrapped.venv.unwrapped
    assert isinstance(toy, ToyVectorEnv)
    return toy


def test_keyword_arguments_reach_the_batched_environment():
    env = make_vec_env(
        TOY_ID,
        n_envs=5,
        seed=3,
        env_kwargs={"dict_obs": True, "num_actions": 6},
        vec_env_cls=TensorVecEnv,
        vec_env_kwargs={"illegal": "error"},
    )
    toy = toy_of(env)
    assert (env.num_envs, toy.num_envs, toy.num_actions) == (5, 5, 6)
    assert (toy.dict_obs, toy.illegal, toy.render_mode) == (True, "error", "rgb_array")
    observation = env.reset()
    assert toy.reset_calls[-1] == ([3, 4, 5, 6, 7], None)
    assert observation["legal"].shape == (5, 6)
    env.close()


@pytest.mark.parametrize("where", ["make", "wrapper"])
def test_time_limits_are_kept(where):
    def make():
        if where == "make":
            return gymnasium.make(TOY_ID, max_episode_steps=5)
        return Monitor(gymnasium.wrappers.TimeLimit(gymnasium.make(TOY_ID), 5))

    assert toy_of(TensorVecEnv([make] * 3)).horizon == 5


def test_what_cannot_be_batched_is_refused():
    with pytest.raises(ValueError, match="is not registered with Gymnasium"):
        TensorVecEnv([ToyEnv])
    with pytest.raises(ValueError, match="Pendulum-v1 has no vector_entry_point"):
        TensorVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    with pytest.raises(ValueError, match="env_wrapper: TransformReward"):
        TensorVecEnv([lambda: TransformReward(gymnasium.make(TOY_ID), abs)])
