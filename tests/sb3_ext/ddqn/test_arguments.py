"""Arguments of a model: what stands for what, and what is refused before training."""

import inspect
import re

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN
from stable_baselines3.common import torch_layers

from sb3_ext import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.extractors import PointSetExtractor
from tests.sb3_ext.helpers import make_model


@pytest.mark.parametrize("shape", [(3,), (3, 4)])
def test_masks_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"action_masks: got \(3.*; expected \(4,\) or \(2, 4\)"):
        make_model().predict(np.zeros((2, 9), np.float32), action_masks=np.ones(shape, bool))


def test_every_new_argument_is_described():
    described = re.findall(r"^ {4}(\w+): ", inspect.getdoc(DDQN), flags=re.MULTILINE)
    ours, stock = (set(inspect.signature(each).parameters) for each in (DDQN, DQN))
    assert ours - stock - {"sb3"} <= set(described)


def test_another_default_is_refused_before_training():
    """SB3's observations are float32, whatever its networks are."""
    defaults = {"dtype": (torch.float64, torch.float32), "device": ("meta", None)}
    for name, (value, usual) in defaults.items():
        change = getattr(torch, f"set_default_{name}")
        change(value)
        try:
            with pytest.raises(ValueError, match=f"^torch.set_default_{name}: .*got {value}"):
                make_model()
        finally:
            change(usual)


def test_an_id_makes_many_games_and_a_batch_of_gymnasium_is_played_as_it_is():
    model = DDQN("HostPolicy", "resgym:resgym/HironakaHost-v0", seed=0)
    assert (model.n_envs, type(model.env)) == (256, TensorVecEnv)
    assert DDQN("MlpPolicy", "CartPole-v1").n_envs == 1  # as in SB3
    games = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=3)
    model = DDQN("HostPolicy", games, learning_starts=0, batch_size=4)
    model.learn(12)
    assert (model.n_envs, model.num_timesteps) == (3, 12)
    model.set_env(gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=3))
    assert isinstance(model.env, TensorVecEnv)


@pytest.mark.parametrize(
    ("policy", "env", "extractor"),
    [
        ("HostPolicy", "resgym/HironakaHost-v0", PointSetExtractor),
        ("AgentPolicy", "resgym/HironakaAgent-v0", PointSetExtractor),
        ("HostPolicy", "resgym/HironakaHostFlat-v0", torch_layers.FlattenExtractor),
        ("MlpPolicy", "resgym/HironakaHost-v0", torch_layers.FlattenExtractor),
        ("MultiInputPolicy", "resgym/HironakaAgent-v0", torch_layers.CombinedExtractor),
    ],
)
def test_a_policy_named_by_the_seat_sees_a_set_of_points(policy, env, extractor):
    assert DDQN(policy, env).policy.features_extractor_class is extractor
