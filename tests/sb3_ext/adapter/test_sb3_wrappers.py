"""SB3's wrappers, evaluation and callbacks on top of TensorVecEnv."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_maskable
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import (
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecVideoRecorder,
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


def test_vec_monitor_counts_the_same(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        env = VecMonitor(TensorVecEnv(ToyVectorEnv(3)), str(tmp_path / "outer"))
    plain = TensorVecEnv(ToyVectorEnv(3))
    for each in (env, plain):
        each.seed(2)
        each.reset()
    episodes = 0
    for _ in range(30):
        *_, infos = env.step(np.zeros(3, dtype=int))
        *_, expected = plain.step(np.zeros(3, dtype=int))
        for info, other in zip(infos, expected, strict=True):
            assert info.keys() == other.keys()
            if info:
                episodes += 1
                assert info["episode"]["r"] == other["episode"]["r"]
                assert info["episode"]["l"] == other["episode"]["l"]
    env.close()
    assert len((tmp_path / "outer.monitor.csv").read_text().splitlines()) == episodes + 2


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


def test_vec_frame_stack() -> None:
    env = VecFrameStack(TensorVecEnv(ToyVectorEnv(3, horizon=5)), n_stack=2)
    env.seed(0)
    before = env.reset()
    for _ in range(12):
        observation, _, dones, infos = env.step(np.zeros(3, dtype=int))
        for row in range(3):
            if dones[row]:
                assert not observation[row, :9].any()
                np.testing.assert_array_equal(
                    infos[row]["terminal_observation"][:9], before[row, 9:]
                )
            else:
                np.testing.assert_array_equal(observation[row, :9], before[row, 9:])
        before = observation


def test_masks_pass_through_wrappers() -> None:
    env = VecNormalize(TensorVecEnv(ToyVectorEnv(3)), norm_obs=False)
    env.reset()
    assert is_masking_supported(env)
    assert not is_masking_supported(TensorVecEnv(MaskedToy(3)))
    np.testing.assert_array_equal(get_action_masks(env), env.unwrapped.venv.action_masks().numpy())


def test_maskable_evaluation_passes_the_masks() -> None:
    class FirstLegal:
        def predict(self, observation: Any, action_masks: Any = None, **_: Any) -> Any:
            return action_masks.argmax(axis=1), None

    env = TensorVecEnv(ToyVectorEnv(3, illegal="error"))
    returns, _ = evaluate_maskable(
        FirstLegal(), env, n_eval_episodes=9, return_episode_rewards=True
    )
    assert len(returns) == 9


def test_video(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    env = TensorVecEnv(ToyVectorEnv(2, render_mode="rgb_array"))
    recorder = VecVideoRecorder(env, str(tmp_path), lambda step: step == 0, video_length=5)
    recorder.reset()
    for _ in range(6):
        recorder.step(np.zeros(2, dtype=int))
    recorder.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 0
    assert recorder.frames_per_sec == 7


def test_eval_callback_keeps_the_best_model(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = PPO("MlpPolicy", TensorVecEnv(ToyVectorEnv(8)), n_steps=16, batch_size=64, seed=0)
    callback = EvalCallback(
        TensorVecEnv(ToyVectorEnv(3)),
        n_eval_episodes=6,
        eval_freq=16,
        best_model_save_path=str(tmp_path),
        log_path=str(tmp_path),
        verbose=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(2 * 8 * 16, callback=callback)
    results = np.load(tmp_path / "evaluations.npz")
    assert results["results"].shape == (2, 6)
    assert callback.best_mean_reward == results["results"].mean(axis=1).max()
    assert (tmp_path / "best_model.zip").exists()
