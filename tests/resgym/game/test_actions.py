"""The numbering of axis sets."""

import itertools

import pytest
import torch

from resgym.game.actions import action_axes, coords_to_action, host_action_table, pair_to_action
from tests.reference import rule


@pytest.mark.parametrize("dimension", range(2, 11))
def test_table_is_that_of_the_reference_and_goes_both_ways(dimension):
    table = host_action_table(dimension)
    assert table.dtype == torch.bool
    assert table.shape == (2**dimension - dimension - 1, dimension)
    sets = [tuple(row.nonzero()[:, 0].tolist()) for row in table]
    assert sets == rule.host_actions(dimension)
    assert list(action_axes(dimension)) == sets
    actions = torch.arange(len(table))
    assert torch.equal(coords_to_action(table), actions)
    assert torch.equal(coords_to_action(table.to(torch.int8)), actions)
    small = torch.cat([torch.eye(dimension), torch.zeros(1, dimension)]).to(torch.bool)
    assert coords_to_action(small).tolist() == [-1] * (dimension + 1)


@pytest.mark.parametrize("dimension", [2, 3, 5, 10])
def test_pairs(dimension):
    pairs = list(itertools.permutations(range(dimension), 2))
    first, second = torch.tensor(pairs).unbind(1)
    expected = [rule.host_action(tuple(sorted(pair)), dimension) for pair in pairs]
    assert pair_to_action(first, second, dimension).tolist() == expected
