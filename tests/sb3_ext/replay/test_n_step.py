"""n-step returns by hand."""

from __future__ import annotations

import math

import torch

from sb3_ext.replay.samples import n_step_return


def test_by_hand() -> None:
    rewards = torch.tensor([[1.0, 2.0, 4.0]] * 5)
    ended = torch.tensor(
        [
            [False, False, False],
            [True, False, False],
            [False, True, False],
            [False, False, True],
            [False, True, True],
        ]
    )
    newer = torch.tensor([9, 9, 9, 9, 9])
    returns, discounts, length = n_step_return(rewards, ended, newer, gamma=0.5)
    assert returns.tolist() == [3.0, 1.0, 2.0, 3.0, 2.0]
    assert length.tolist() == [3, 1, 2, 3, 2]
    assert discounts.tolist() == [0.125, 0.5, 0.25, 0.125, 0.25]


def test_what_is_newer_than_the_newest_does_not_count() -> None:
    rewards = torch.tensor([[1.0, math.nan, math.inf], [1.0, 2.0, math.nan], [1.0, 2.0, 4.0]])
    ended = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    returns, _, length = n_step_return(rewards, ended, torch.tensor([0, 1, 2]), gamma=0.5)
    assert returns.tolist() == [1.0, 2.0, 3.0]
    assert length.tolist() == [1, 2, 3]


def test_discounts_at_both_ends_of_the_range() -> None:
    rewards, ended = torch.tensor([[3.0, 5.0]]), torch.zeros(1, 2, dtype=torch.bool)
    newer = torch.tensor([5])
    for gamma, expected in ((1.0, (8.0, 1.0)), (0.0, (3.0, 0.0))):
        returns, discounts, _ = n_step_return(rewards, ended, newer, gamma)
        assert (returns.item(), discounts.item()) == expected
