"""Hand-computed batches for the pure functions of DDQN."""

import math

import numpy as np
import pytest
import torch

from sb3_ext.ddqn import legality as targets


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


VALUES = torch.tensor([[1.0, 5.0, 3.0], [1.0, 5.0, 3.0], [-2.0, -5.0, -3.0], [9.0, 9.0, 9.0]])
LEGAL = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 0]]).bool()


def test_legal_argmax_by_hand():
    assert targets.legal_argmax(VALUES, LEGAL).tolist() == [1, 2, 2, 0]
    assert targets.legal_argmax(VALUES, None).tolist() == [1, 1, 0, 0]


def test_td_target_with_ends_time_limits_and_n_step_discounts_by_hand():
    # Rows: running, terminated, cut by the time limit (done 0), two summed rewards, three. What the
    # network says of a terminal observation never reaches the target.
    rewards = torch.tensor([1.0, 1.0, -1.0, 1.0 + 0.5, 1.0 + 0.5 + 0.25])
    dones = torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0])
    discounts = torch.tensor([0.5, 0.5, 0.5, 0.25, 0.125])
    value = torch.tensor([4.0, math.nan, 2.0, 8.0, math.inf])
    target = targets.bootstrap_target(rewards, dones, discounts, value[:, None])
    assert target.tolist() == [3.0, 1.0, 0.0, 3.5, 1.75]


def test_b1_exploration_draws_only_legal_actions_and_all_of_them():
    legal = torch.tensor([[0, 1, 0, 1]]).bool().expand(2000, 4)
    drawn = targets.epsilon_greedy(torch.zeros(2000, 4), legal, 1.0, generator())
    counts = np.bincount(drawn.numpy(), minlength=4)
    assert counts[0] == counts[2] == 0
    assert abs(counts[1] - 1000) < 5 * math.sqrt(500)
    mixed = targets.epsilon_greedy(torch.zeros(2000, 4), legal, 0.7, generator())
    assert legal.gather(1, mixed[:, None]).all()


def test_b35_epsilon_zero_never_explores_and_one_always_does():
    values = torch.zeros(50_000, 2)
    values[:, 1] = 1.0
    assert (targets.epsilon_greedy(values, None, 0.0, generator()) == 1).all()
    only_first = torch.tensor([[True, False]]).expand(50_000, 2)
    assert (targets.epsilon_greedy(values, only_first, 1.0, generator()) == 0).all()
    share = (targets.epsilon_greedy(values, None, 1.0, generator()) == 1).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.02)
