"""The game as pure functions against the reference rule."""

import pytest
import torch

import resgym
from resgym import functional
from resgym.game import rules
from resgym.game.rules import observe_points
from resgym.game.spec import host_action_table
from tests.reference import rule


@pytest.mark.parametrize(("dimension", "rows", "value"), [(2, 5, 9), (3, 7, 6), (4, 5, 4)])
def test_successors_are_those_of_the_reference_move_by_move(dimension, rows, value):
    spec = resgym.GameSpec(dimension=dimension, max_num_points=rows, max_value=value)
    state = functional.starts(spec, 20, seed=3)
    after, overflow = functional.successors(state)
    action, axis = functional.moves(dimension)
    assert not overflow.any()
    assert overflow.shape == (20, sum(map(len, rule.host_actions(dimension))))
    found = after.point_lists()
    for number, points in enumerate(state.point_lists()):
        for move, (played, answer) in enumerate(zip(action.tolist(), axis.tolist(), strict=True)):
            axes = rule.host_actions(dimension)[played]
            expected = rule.canonical(rule.shifted(points, axes, answer))
            assert found[number * len(axis) + move] == expected


def test_starts_repeat_and_are_shown_as_the_environments_show_them():
    spec = resgym.GameSpec(max_num_points=6, max_value=9)
    state = functional.starts(spec, 50, seed=1)
    assert torch.equal(state.points, functional.starts(spec, 50, seed=1).points)
    assert not torch.equal(state.points, functional.starts(spec, 50, seed=2).points)
    assert not state.finished().any()
    assert torch.equal(functional.observe(state), observe_points(state))


@pytest.mark.parametrize(
    "spec",
    [
        resgym.GameSpec(2, 5, 9, rule="polyhedra", unit=6),
        resgym.GameSpec(3, 6, 9, rule="thom"),
        resgym.GameSpec(3, 6, 9, polytope="newton", reposition=True),
    ],
    ids=["polyhedra", "thom", "newton"],
)
def test_moves_follow_the_rule_of_the_positions_and_the_options_of_the_game(spec):
    state = functional.starts(spec, 30, seed=2)
    named = () if spec.rule != "basic" else (spec,)  # the positions have the rule alone
    after, _ = functional.successors(state, *named)
    action, axis = functional.moves(spec.dimension, spec.least_axes)
    assert after.num_games == 30 * len(axis)
    sets = host_action_table(spec.dimension, least=spec.least_axes)[action]
    for number, (coords, answer) in enumerate(zip(sets, axis, strict=True)):
        expected, _ = rules.move(state, coords.expand(30, -1), answer.expand(30), spec)
        assert torch.equal(after.points[number :: len(axis)], expected.points)
        assert torch.equal(after.count[number :: len(axis)], expected.count)
    assert not torch.equal(after.points, state.points.repeat_interleave(len(axis), 0))
