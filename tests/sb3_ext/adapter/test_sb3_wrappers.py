"""SB3's wrappers, evaluation and callbacks on top of TensorVecEnv."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import (
    VecNormalize,
)

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import MaskedToy


class PressNamed:
    """A perfect player with SB3's `predict`."""

    def predict(self, observation: Any, **_: Any) -> tuple[np.ndarray, None]:
        if isinstance(observation, dict):
            return observation["target"].argmax(axis=1), None
        return observation[:, : observation.shape[1] // 2].argmax(axis=1), None


@pytest.mark.parametrize("dict_obs", [False, True])
def test_evaluate_policy_uses_the_episodes_without_a_warning(dict_obs: bool) -> None:
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


@pytest.mark.parametrize("dict_obs", [False, True])
def test_vec_normalize(dict_obs: bool) -> None:
    keys = ["progress"] if dict_obs else None
    env = VecNormalize(TensorVecEnv(ToyVectorEnv(16, dict_obs)), norm_obs_keys=keys)
    env.seed(0)
    env.reset()
    seen, ends = [], 0
    for step in range(200):
        observation, _, dones, infos = env.step(np.zeros(16, dtype=int))
        if step >= 100:
            seen.append(observation["progress"] if dict_obs else observation)
        ends += int(dones.sum())
        for row in np.flatnonzero(dones):  # terminal observations are normalised as well
            final = infos[row]["terminal_observation"]
            progress = final["progress"][0] if dict_obs else final[-1]
            assert abs(progress) < 5
    assert ends > 100
    values = np.concatenate(seen)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(values.std(axis=0), 1, atol=0.1)
    if dict_obs:
        assert set(np.unique(observation["legal"])) == {0, 1}


def test_masks_pass_through_wrappers() -> None:
    env = VecNormalize(TensorVecEnv(ToyVectorEnv(3)), norm_obs=False)
    env.reset()
    assert is_masking_supported(env)
    assert not is_masking_supported(TensorVecEnv(MaskedToy(3)))
    np.testing.assert_array_equal(get_action_masks(env), env.unwrapped.venv.action_masks().numpy())
