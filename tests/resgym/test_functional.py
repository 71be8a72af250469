"""The game as pure functions against the reference rule."""

import pytest
import torch

import resgym
from resgym import functional
from resgym.game import rules
from resgym.game.rules import observe_points
from resgym.game.spec import host_action_table
from tests.reference.variants import subsets


def test_starts_repeat_and_are_shown_as_the_environments_show_them():
    spec = resgym.GameSpec(max_num_points=6, max_value=9)
    state = functional.starts(spec, 50, seed=1)
    assert torch.equal(state.points, functional.starts(spec, 50, seed=1).points)
    assert not torch.equal(state.points, functional.starts(spec, 50, seed=2).points)
    assert torch.equal(functional.observe(state), observe_points(state))


@pytest.mark.parametrize(
    "spec",
    [
        resgym.GameSpec(2, 5, 9),
        resgym.GameSpec(4, 5, 4),
        resgym.GameSpec(2, 5, 9, rule="polyhedra", unit=6),
        resgym.GameSpec(3, 6, 9, rule="thom"),
        resgym.GameSpec(3, 6, 9, polytope="newton", reposition=True),
    ],
    ids=str,
)
def test_successors_follow_the_rule_of_the_positions_and_the_options_of_the_game(spec):
    """Move by move as `rules.move` plays, which is compared with the reference elsewhere."""
    state = functional.starts(spec, 30, seed=2)
    named = (spec,) if spec.reposition else ()  # the positions have the rule alone
    after, overflow = functional.successors(state, *named)
    action, axis = functional.moves(spec.dimension, spec.least_axes)
    played = [(axes, each) for axes in subsets(spec.dimension, spec.least_axes) for each in axes]
    table = host_action_table(spec.dimension, least=spec.least_axes)
    assert (len(after.count), *overflow.shape) == (30 * len(played), 30, len(played))
    for number, (axes, answer) in enumerate(played):
        coords = torch.tensor([each in axes for each in range(spec.dimension)])
        assert (int(axis[number]), table[action[number]].tolist()) == (answer, coords.tolist())
        expected, passes = rules.move(
            state, coords.expand(30, -1), torch.tensor([answer]).expand(30), spec
        )
        assert torch.equal(after.points[number :: len(axis)], expected.points)
        assert torch.equal(after.count[number :: len(axis)], expected.count)
        assert torch.equal(overflow[:, number], passes)
    assert not torch.equal(after.points, state.points.repeat_interleave(len(axis), 0))


def test_an_overflow_is_told_of_its_game():
    games = [[(2**59, 1), (0, 5)], [(1, 0), (0, 5)]]
    _, overflow = functional.successors(resgym.state_from_points(games, resgym.GameSpec(2)))
    assert overflow.any(1).tolist() == [True, False]
