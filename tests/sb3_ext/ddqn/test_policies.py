"""Policies by name, their networks and their optimisers."""

import numpy as np
import pytest
import torch

from sb3_ext.ddqn.policies import OPTIMIZERS, DuelingHead, forget_tiny_moments
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
    assert isinstance(single, np.ndarray)
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


SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


def test_no_square_becomes_subnormal_and_no_weight_changes():
    """Squares shrink more slowly than means: here they begin where 70,000 updates bring them."""
    found = []
    for forget in (True, False):
        weights = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
        optimizer = torch.optim.Adam([weights], lr=1e-3)
        weights.grad = torch.tensor([0.5, 0.0, 0.0])
        optimizer.step()
        state = optimizer.state[weights]
        state["exp_avg_sq"][1:] = 1.5e-37
        for step in range(1, 3001):
            # The third unit comes back to life in the end.
            weights.grad = torch.tensor([0.5, 0.0, 1e-3 if step > 2990 else 0.0])
            optimizer.step()
            if forget and step % 100 == 0:
                forget_tiny_moments(optimizer)
            smallest = float(state["exp_avg_sq"][1])
            assert not forget or smallest == 0 or smallest >= SMALLEST_NORMAL
        found.append(weights.detach().clone())
        if not forget:
            assert 0 < smallest < SMALLEST_NORMAL  # what would be there otherwise
    assert torch.equal(*found)
