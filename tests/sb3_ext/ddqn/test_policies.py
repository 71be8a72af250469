"""Policies by name, their networks and their optimisers."""

import pytest
import torch

from sb3_ext.ddqn.policies import OPTIMIZERS, DuelingHead
from tests.sb3_ext.callbacks.helpers import game_model


@pytest.mark.parametrize(
    ("role", "extractor", "dueling", "optimizer"),
    [
        ("host", "flatten", True, "adam"),
        ("host", "point_set", False, "adamw"),
        ("agent", "flatten", False, "rmsprop"),
        ("agent", "point_set", True, "sgd"),
    ],
)
def test_policies_learn_on_the_game(role, extractor, dueling, optimizer):
    kwargs = {"extractor": extractor, "optimizer_class": optimizer, "net_arch": [32, "b", "r32"]}
    model = game_model(role, 16, dueling=dueling, policy_kwargs=kwargs)
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
