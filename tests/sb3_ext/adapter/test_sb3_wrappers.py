"""SB3's wrappers, evaluation and callbacks on top of TensorVecEnv."""

import warnings

import numpy as np
import pytest
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import MaskedToy


class PressNamed:
    """A perfect player with SB3's `predict`."""

    def predict(self, observation, **_):
        if isinstance(observation, dict):
            return observation["target"].argmax(axis=1), None
        return observation[:, : observation.shape[1] // 2].argmax(axis=1), None


@pytest.mark.parametrize("dict_obs", [False, True])
def test_evaluate_policy_uses_the_episodes_without_a_warning(dict_obs):
    env = TensorVecEnv(ToyVectorEnv(4, dict_obs))
    env.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returns, lengths = evaluate_policy(
            PressNamed(), env, n_eval_episodes=30, return_episode_rewards=True
        )
    assert len(returns) == 30
    assert returns == lengths  # one point a step
    assert len(set(lengths)) > 3


def test_masks_pass_through_wrappers():
    env = VecNormalize(TensorVecEnv(ToyVectorEnv(3)), norm_obs=False)
    env.reset()
    assert is_masking_supported(env)
    assert not is_masking_supported(TensorVecEnv(MaskedToy(3)))
    np.testing.assert_array_equal(get_action_masks(env), env.unwrapped.venv.action_masks().numpy())
