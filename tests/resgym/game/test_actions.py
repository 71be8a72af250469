"""The numbering of axis sets."""

import itertools

import pytest
import torch

from resgym.game.actions import action_axes, coords_to_action, host_action_table, pair_to_action
from tests.reference import rule


def test_three_axes_as_documented():
    assert action_axes(3) == ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    assert host_action_table(3).tolist() == [
        [True, True, False],
        [True, False, True],
        [False, True, True],
        [True, True, True],
    ]


@pytest.mark.parametrize("dimension", range(2, 11))
def test_table_is_that_of_the_reference_and_goes_both_ways(dimension):
    table = host_action_table(dimension)
    assert table.dtype == torch.bool
    assert table.shape == (2**dimension - dimension - 1, dimension)
    sets = [tuple(row.nonzero()[:, 0].tolist()) for row in table]
    assert sets == rule.host_actions(dimension)
    assert list(action_axes(dimension)) == sets
    # Rank among the numbers that are no power of two, counted here once more.
    numbers = [n for n in range(1, 2**dimension) if bin(n).count("1") != 1]
    assert [sum(2**axis for axis in axes) for axes in sets] == numbers
    actions = torch.arange(len(table))
    assert torch.equal(coords_to_action(table), actions)
    assert torch.equal(coords_to_action(table.to(torch.int8)), actions)
    assert torch.equal(host_action_table(dimension, "cpu")[coords_to_action(table)], table)


@pytest.mark.parametrize("dimension", [2, 3, 6, 10])
def test_sets_of_one_axis_or_none_have_no_number(dimension):
    small = torch.cat([torch.eye(dimension), torch.zeros(1, dimension)]).to(torch.bool)
    assert coords_to_action(small).tolist() == [-1] * (dimension + 1)


@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
def test_pairs(dimension):
    pairs = list(itertools.permutations(range(dimension), 2))
    first, second = torch.tensor(pairs).unbind(1)
    expected = [rule.host_action(tuple(sorted(pair)), dimension) for pair in pairs]
    assert pair_to_action(first, second, dimension).tolist() == expected
