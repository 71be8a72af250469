"""Features extractors: what they compute, what they ignore, and that SB3 algorithms use them."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, MaskablePPO

import resgym  # noqa: F401  registers the environments
from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor


def box(size=6, dimension=3):
    return spaces.Box(-1.0, 1.0, (size, dimension), np.float32)


def test_flatten_a_dict_in_alphabetical_order():
    space = spaces.Dict([("points", box(2, 1)), ("coords", spaces.MultiBinary(3))])
    extractor = FlattenExtractor(space)
    x = {
        "points": torch.tensor([[[8.0], [9.0]]]),
        "coords": torch.tensor([[1, 0, 1]]).to(torch.int8),
    }
    assert extractor.features_dim == 5
    assert extractor(x).tolist() == [[1, 0, 1, 8, 9]]
    one_hot = spaces.Dict(a=spaces.Discrete(5), b=spaces.MultiDiscrete([2, 2]))
    assert FlattenExtractor(one_hot).features_dim == 9


@pytest.mark.parametrize(
    ("algorithm", "name", "seat"),
    [
        (QRDQN, "flatten", "Agent"),
        (QRDQN, "point_set", "Host"),
        (MaskablePPO, "point_set", "Agent"),
    ],
)
def test_stock_algorithms_train_save_and_load_with_it(tmp_path, algorithm, name, seat):
    env = gymnasium.make(f"resgym/Hironaka{seat}-v0", opponent="random", invalid_action="noop")
    common = {"seed": 0, "device": "cpu", "batch_size": 16}
    if algorithm is QRDQN:
        common |= {"learning_starts": 16, "buffer_size": 200, "gradient_steps": 2}
    else:
        common |= {"n_steps": 32, "n_epochs": 2}
    kind = EXTRACTORS.resolve(name)
    network = {"features_extractor_class": kind, "net_arch": [16]}
    if name == "point_set":
        network["features_extractor_kwargs"] = {"activation": "silu"}
    policy = "MultiInputPolicy" if seat == "Agent" else "MlpPolicy"
    model = algorithm(policy, env, policy_kwargs=network, **common)
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    trained = model.policy.state_dict()
    inside = [key for key in trained if "features_extractor." in key and "weight" in key]
    changed = [key for key in inside if not torch.equal(before[key], trained[key])]
    assert changed or name == "flatten"

    model.save(tmp_path / "model.zip")
    loaded = algorithm.load(tmp_path / "model.zip", device="cpu")
    observation, _ = env.reset(seed=3)
    expected, _ = model.predict(observation, deterministic=True)
    assert loaded.predict(observation, deterministic=True)[0] == expected
    assert any(type(module) is kind for module in loaded.policy.modules())
