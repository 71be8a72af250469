"""Evaluations play legal actions: the environment raises at an illegal one."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common import evaluation
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import evaluate_policy
from sb3_ext.callbacks.evaluation import Evaluation
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn.legality import Masked, with_masks
from tests.fakes import ToyEnv, ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import MaskedToy, make_model

strict = partial(ToyVectorEnv, 2, illegal="error")
ENVIRONMENTS = {
    "tensors": lambda: TensorVecEnv(strict()),
    "arrays": lambda: DummyVecEnv([lambda: Monitor(ToyEnv(illegal="error"))] * 2),
    "normalized": lambda: VecNormalize(TensorVecEnv(strict())),
    "single": lambda: Monitor(ToyEnv(illegal="error")),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_ours_and_stock_callbacks(name, tmp_path):
    make = ENVIRONMENTS[name]
    model = make_model(learning_starts=10_000) if name != "normalized" else make_model(make())
    for each in (make(), make()):
        evaluate_policy(model, each, 6, deterministic=False)
    if name == "single":
        callbacks = [EvalCallback(make(), eval_freq=5)]
    else:
        callbacks = [EvalCallback(make(), eval_freq=5), Evaluation(make(), tmp_path, eval_freq=5)]
    model.learn(100, callbacks)
    assert all(np.isfinite(each.best_mean_reward) for each in callbacks)


def test_stock_functions_find_the_masks_of_what_was_shown():
    for model in (
        make_model(),
        ALGORITHMS["ppo_mask"]("MlpPolicy", TensorVecEnv(strict()), n_steps=4, batch_size=8),
    ):
        for env in (TensorVecEnv(strict()), VecMonitor(TensorVecEnv(strict()))):
            evaluation.evaluate_policy(model, env, 6, deterministic=False)
        # Another object, also an equal one, is nobody's.
        assert model.predict(env.reset().copy())[0].shape == (2,)


def test_who_is_masked():
    env = TensorVecEnv(strict())
    host = TensorVecEnv(gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=2))
    maskable = MaskablePPO("MlpPolicy", env, n_steps=4, batch_size=8)
    assert isinstance(with_masks(maskable, env), Masked)
    for model, other in (
        (PPO("MlpPolicy", env, n_steps=4, batch_size=8), env),
        (make_model(mask_source="none"), env),
        (make_model(host), host),
    ):
        assert with_masks(model, other) is model
    named = TensorVecEnv(MaskedToy(2, illegal="error"))
    for algorithm in (make_model(named), MaskablePPO("MultiInputPolicy", named, n_steps=4)):
        evaluate_policy(algorithm, named, 4)
