"""The numbering of axis sets."""

import pytest
import torch

from resgym.game.spec import action_axes, coords_to_action, host_action_table
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
