"""Policies by name, their networks and their optimisers."""

import gymnasium
import pytest
import torch

import resgym  # noqa: F401  (registers the environments)
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.policies import OPTIMIZERS, DuelingHead
from tests.sb3_ext.ddqn.helpers import make_model


def game(role, rows=16, **kwargs):
    kwargs.setdefault("opponent", "choose_first" if role == "Host" else "zeillinger")
    return TensorVecEnv(
        gymnasium.make_vec(f"resgym/Hironaka{role}-v0", num_envs=rows, reward="step", **kwargs)
    )


@pytest.mark.parametrize(
    ("role", "extractor", "dueling", "optimizer"),
    [
        ("Host", "flatten", True, "adam"),
        ("Host", "point_set", False, "adamw"),
        ("Agent", "flatten", False, "rmsprop"),
        ("Agent", "point_set", True, "sgd"),
    ],
)
def test_policies_learn_on_the_game(role, extractor, dueling, optimizer):
    kwargs = {"extractor": extractor, "optimizer_class": optimizer, "net_arch": [32, "b", "r32"]}
    model = make_model(game(role), f"{role}Policy", dueling=dueling, policy_kwargs=kwargs)
    assert isinstance(model.policy.optimizer, OPTIMIZERS.resolve(optimizer))
    before = next(model.q_net.parameters()).clone()
    model.learn(400)
    assert not torch.equal(before, next(model.q_net.parameters()))
    observation = model.env.reset()
    actions, _ = model.predict(observation)
    assert actions.shape == (16,)
    is_dict = isinstance(observation, dict)
    one = {k: v[0] for k, v in observation.items()} if is_dict else observation[0]
    single, _ = model.predict(one, deterministic=True)
    assert single.shape == ()
    assert single == model.predict(observation, deterministic=True)[0][0]


def test_dueling_head_by_hand():
    head = DuelingHead(1, 3)
    with torch.no_grad():
        head.value.weight.fill_(0.0)
        head.value.bias.fill_(5.0)
        head.advantage.weight.copy_(torch.tensor([[1.0], [2.0], [6.0]]))
        head.advantage.bias.fill_(0.0)
    assert head(torch.tensor([[2.0]])).tolist() == [[1.0, 3.0, 11.0]]


def test_target_and_online_networks_share_nothing():
    model = make_model(game("Host"), "HostPolicy", policy_kwargs={"extractor": "point_set"})
    online = {parameter.data_ptr() for parameter in model.q_net.parameters()}
    target = {parameter.data_ptr() for parameter in model.q_net_target.parameters()}
    assert not online & target
    optimised = {
        p.data_ptr() for group in model.policy.optimizer.param_groups for p in group["params"]
    }
    assert optimised == online
