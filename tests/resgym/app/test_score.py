"""What a move costs, against the solver's values and by hand."""

import random

import pytest

from resgym.app.play import Match, score
from resgym.game.exact import search_actions
from resgym.polynomials.parse import parse
from resgym.solver.solve import solve


def replayed(start, *moves):
    match = Match(parse(start), "both", None)
    for axes, axis in moves:
        match.play(axes, axis)
    return match


def test_moves_by_hand():
    """On E6 the sets {x, z} and {x, y, z} keep to par, {x, y} and {y, z} cost a move."""
    good = score(replayed("E6", ((0, 2), 2)))
    assert good == {"par": 6, "left": 5, "costs": [[0, 0]], "lost": [0, 0], "stalled": 0}
    assert score(replayed("E6", ((0, 1), 1)))["costs"] == [[1, 0]]
    # The answer x leaves x^2 + y^3, which needs 3 moves.
    assert score(replayed("E6", ((0, 2), 0)))["costs"] == [[0, 2]]
    assert score(replayed("E6"), named=(0, 1))["left"] == 7


def test_a_game_without_progress_is_noticed():
    """The set {x, z} and the answer x never change x^2 + y^3."""
    found = score(replayed("E6", *[((0, 2), 0)] * 6))
    assert (found["left"], found["stalled"]) == (3, 5)
    assert found["costs"][1:] == [[3, 2]] * 5


@pytest.mark.parametrize("start", ["E6", "x^4*y+y^5*z+x*z^6", "x*y+z*w+x*z"])
def test_costs_add_up_to_the_length_of_the_game(start):
    draw = random.Random(start)
    match, best = replayed(start), solve(start).value
    for _ in range(12):
        if match.ending:
            break
        axes = draw.choice(search_actions(len(match.points[0])))
        match.play(axes, draw.choice(axes))
        found = score(match)
        assert (found["par"], found["left"]) == (best, solve(match.points).value)
        assert len(match.moves) + found["left"] == best + found["lost"][0] - found["lost"][1]
        assert all(cost >= 0 for move in found["costs"] for cost in move)


def test_what_was_not_proved_in_time_is_none():
    found = score(replayed("x^91+y^97+z^89+x*y*z", ((0, 1), 1)), seconds=0)
    assert found.pop("costs") == [found.pop("lost")] == [[None, None]]
    assert found == dict.fromkeys(("par", "left", "stalled"))
