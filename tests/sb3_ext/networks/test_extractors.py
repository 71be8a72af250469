"""Features extractors: what they compute, what they ignore, and that SB3 algorithms use them."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, MaskablePPO
from stable_baselines3 import DQN, PPO

from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor
from sb3_ext.points import PointSetExtractor


def box(size=6, dimension=3):
    return spaces.Box(-1.0, 1.0, (size, dimension), np.float32)


def agent_space(size=6, dimension=3):
    return spaces.Dict(points=box(size, dimension), coords=spaces.MultiBinary(dimension))


def test_flatten_a_box():
    extractor = FlattenExtractor(box(2, 3))
    x = torch.arange(12.0).view(2, 2, 3)
    assert extractor.features_dim == 6
    assert extractor(x).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_flatten_a_dict_in_alphabetical_order():
    space = spaces.Dict([("points", box(2, 1)), ("coords", spaces.MultiBinary(3))])
    extractor = FlattenExtractor(space)
    x = {
        "points": torch.tensor([[[8.0], [9.0]]]),
        "coords": torch.tensor([[1, 0, 1]]).to(torch.int8),
    }
    assert extractor.features_dim == 5
    assert extractor(x).tolist() == [[1, 0, 1, 8, 9]]


def test_flatten_with_layers():
    extractor = FlattenExtractor(agent_space(), net_arch=[16, "ln", 4], activation="tanh")
    assert extractor.features_dim == 4
    x = {"points": torch.randn(5, 6, 3), "coords": torch.ones(5, 3)}
    features = extractor(x)
    assert features.shape == (5, 4)
    assert features.min() < 0
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in extractor.parameters())


def test_flatten_discrete_entries_as_one_hot_vectors():
    assert FlattenExtractor(spaces.MultiDiscrete([3, 4])).features_dim == 7
    both = spaces.Dict(a=spaces.Discrete(5), b=spaces.MultiDiscrete([2, 2]))
    assert FlattenExtractor(both, net_arch=[6]).network[0].in_features == 9


def test_flatten_refuses_dicts_inside():
    with pytest.raises(ValueError, match="Dict inside a Dict"):
        FlattenExtractor(spaces.Dict(a=spaces.Dict(b=box())))


def test_names():
    assert set(EXTRACTORS.names()) >= {"flatten", "ordered_points", "point_set"}
    assert EXTRACTORS.resolve("flatten") is FlattenExtractor
    assert EXTRACTORS.resolve("point_set") is PointSetExtractor


class NearestPoint(gymnasium.Env):
    """One-step games: name the axis in which the first two points differ least."""

    def __init__(self, as_dict):
        self.observation_space = agent_space(4, 3) if as_dict else box(4, 3)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        points = np.full((4, 3), -1.0, np.float32)
        points[:2] = self.np_random.random((2, 3))
        self.best = int(np.abs(points[0] - points[1]).argmin())
        if isinstance(self.observation_space, spaces.Dict):
            return {"points": points, "coords": np.ones(3, np.int8)}, {}
        return points, {}

    def step(self, action):
        reward = float(action == self.best)
        observation, info = self.reset()
        return observation, reward, True, False, info

    def action_masks(self):
        return np.ones(3, bool)


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("name", ["flatten", "point_set"])
@pytest.mark.parametrize("algorithm", [DQN, QRDQN, PPO, MaskablePPO])
def test_stock_algorithms_train_save_and_load_with_it(tmp_path, algorithm, name, as_dict):
    common = {"seed": 0, "device": "cpu", "batch_size": 16}
    if algorithm in (DQN, QRDQN):
        common |= {"learning_starts": 16, "buffer_size": 200, "gradient_steps": 2}
    else:
        common |= {"n_steps": 32, "n_epochs": 2}
    model = algorithm(
        "MultiInputPolicy" if as_dict else "MlpPolicy",
        NearestPoint(as_dict),
        policy_kwargs={
            "features_extractor_class": EXTRACTORS.resolve(name),
            "features_extractor_kwargs": {"activation": "silu"},
            "net_arch": [16],
        },
        **common,
    )
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    trained = model.policy.state_dict()
    inside = [key for key in trained if "features_extractor." in key and "weight" in key]
    assert inside or name == "flatten"
    changed = [key for key in inside if not torch.equal(before[key], trained[key])]
    assert changed or name == "flatten"

    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", device="cpu")
    observation, _ = NearestPoint(as_dict).reset(seed=3)
    assert (
        loaded.predict(observation, deterministic=True)[0]
        == (model.predict(observation, deterministic=True)[0])
    )
    assert isinstance(
        loaded.policy.q_net.features_extractor
        if algorithm is DQN
        else loaded.policy.quantile_net.features_extractor
        if algorithm is QRDQN
        else loaded.policy.features_extractor,
        EXTRACTORS.resolve(name),
    )
