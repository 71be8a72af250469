"""Bad arguments: one line that names the field, the value and what is allowed."""

import inspect
import re

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN
from stable_baselines3.common import torch_layers
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ext import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.extractors import PointSetExtractor
from tests.sb3_ext.helpers import game_env, make_model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"gradient_steps": -2}, "gradient_steps"),
        ({"learning_rate": "1e-4"}, "learning_rate.*write 1.0e-4"),
        ({"mask_source": "observation"}, "no entry action_mask or coords"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"replay_buffer_class": int}, "must be a class of buffers, got <class 'int'>"),
        ({"replay_buffer_class": ReplayBuffer}, "class: ReplayBuffer cannot keep the legal"),
        ({"buffer_size": 1.5}, "buffer_size must be a whole number, got 1.5$"),
        ({"target_update_unit": "steps"}, "must be 'updates' or 'transitions', got 'steps'"),
        ({"tau": 1.5}, "tau must be at most 1, got 1.5"),
        ({"loss": "hubert"}, "unknown loss 'hubert'; did you mean 'huber'"),
        ({"train_freq": (1, "episode")}, "train_freq"),
        ({"train_freq": 0}, "train_freq"),
        # A word such as "no" would count as true.
        ({"policy_kwargs": {"dueling": "no"}}, "^dueling must be true or false, got 'no'"),
        ({"policy_kwargs": {"sort_axes": 1}}, "^sort_axes must be true or false, got 1"),
        ({"policy_kwargs": {"learning_rate_factors": {"q_nat": 2.0}}}, "unknown part 'q_nat'"),
        ({"policy_kwargs": {"optimizer_class": "adm"}}, "optimizer 'adm'; did you mean 'ada"),
        (
            {"env": VecNormalize(game_env("host")), "policy": "HostPolicy"},
            "^norm_obs: must be False",
        ),
        ({"replay_ratio": 1.0, "gradient_steps": 2}, r"got 1\.0 together with gradient_steps=2"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        make_model(**arguments)
    assert "\n" not in str(caught.value)


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
