"""The reference against cases worked out by hand, and against facts of the game."""

from fractions import Fraction

import pytest

from tests.reference import players, rule
from tests.reference.polyhedron import newton_vertices
from tests.reference.rule import EXAMPLE


def test_minimal_points_of_ties_duplicates_and_zero_rows():
    assert rule.minimal_points([(1, 2), (2, 1), (2, 2), (1, 2)]) == [(1, 2), (2, 1)]
    assert rule.minimal_points([(3, 3), (3, 3), (3, 3)]) == [(3, 3)]
    assert rule.minimal_points([(0, 4), (0, 0), (4, 0)]) == [(0, 0)]
    assert rule.minimal_points([(7, 0, 2)]) == [(7, 0, 2)]


def test_host_actions_are_numbered_by_their_bits():
    assert rule.host_actions(2) == [(0, 1)]
    assert rule.host_actions(3) == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    # Bits of 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15.
    assert rule.host_actions(4)[4] == (0, 3)
    assert rule.host_actions(4)[-1] == (0, 1, 2, 3)
    for dimension in range(2, 11):
        assert len(rule.host_actions(dimension)) == 2**dimension - dimension - 1


def test_observation_is_scaled_by_the_largest_coordinate():
    half = Fraction(1, 2)
    absent = (Fraction(-1), Fraction(-1))
    assert rule.observed([(4, 0), (1, 2)], 3, 2) == [(1, 0), (half / 2, half), absent]
    assert rule.observed([(4, 0), (1, 2)], 3, 2, scale=False) == [(4, 0), (1, 2), absent]
    assert rule.observed([(0, 0)], 1, 2) == [(0, 0)]


def test_a_game_played_by_hand():
    # x^2 + y^3, the cusp: (2, 0) and (0, 3), one set of axes at d = 2.
    cusp = [(2, 0), (0, 3)]
    # The agent takes y: y becomes x + y, giving (2, 2) and (0, 3); neither covers the other.
    after_y = rule.move(cusp, (0, 1), 1)
    assert after_y == [(2, 2), (0, 3)]
    # y again: (2, 4) and (0, 3). (0, 3) covers it. Two moves.
    assert rule.move(after_y, (0, 1), 1) == [(0, 3)]
    # x instead: (4, 2) and (3, 3), moved to the axes (1, 0) and (0, 1).
    after_x = rule.move(after_y, (0, 1), 0, reposition=True)
    assert after_x == [(1, 0), (0, 1)]
    # Whatever comes now, (1, 0) and (1, 1), or (1, 1) and (0, 1), is the end: three moves.
    assert rule.move(after_x, (0, 1), 0) == [(1, 0)]
    assert rule.move(after_x, (0, 1), 1) == [(0, 1)]
    # And x at the start: (2, 0) and (3, 3), where (2, 0) covers the other. One move.
    assert rule.move(cusp, (0, 1), 0) == [(2, 0)]


def test_finished_games_illegal_moves_and_overflow_change_nothing():
    assert rule.move([(3, 4)], (0, 1), 0) == [(3, 4)]
    assert rule.move(EXAMPLE, (0,), 0) == EXAMPLE
    assert rule.move(EXAMPLE, (0, 2), 1) == EXAMPLE
    largest = [(rule.MAX_COORDINATE, 0), (0, 1)]
    assert not rule.overflows(largest, (0, 1), 0)
    one_more = [(rule.MAX_COORDINATE, 1), (0, 2)]
    assert rule.overflows(one_more, (0, 1), 0)
    assert rule.move(one_more, (0, 1), 0) == one_more
    assert not rule.overflows(one_more[:1], (0, 1), 0)


def test_newton_vertices_by_hand():
    # (1, 1) lies under the segment from (3, 0) to (0, 3), (2, 2) above it, the middle on it.
    assert newton_vertices([(3, 0), (1, 1), (0, 3)]) == [(3, 0), (1, 1), (0, 3)]
    assert newton_vertices([(3, 0), (2, 2), (0, 3)]) == [(3, 0), (0, 3)]
    assert newton_vertices([(4, 0), (2, 2), (0, 4)]) == [(4, 0), (0, 4)]
    # (1, 1, 1) is the mean of three vertices; (1, 1, 0) is below that of the first two.
    corners = [(3, 0, 0), (0, 3, 0), (0, 0, 3)]
    assert newton_vertices([*corners, (1, 1, 1)]) == corners
    assert newton_vertices([*corners, (1, 1, 0)]) == [*corners, (1, 1, 0)]
    assert newton_vertices([(5, 5)]) == [(5, 5)]


@pytest.mark.parametrize(
    ("host", "points", "expected"),
    [
        # Differences in list order, with (L, S):
        # (4, -5, 0) (9, 2)   (5, -25, 1) (30, 2)   (5, 0, -3) (8, 2)
        # (1, -20, 1) (21, 3) (1, 5, -3) (8, 2)     (0, 25, -4) (29, 2)
        # The first (8, 2) has its least entry on axis 2 and its greatest on axis 0.
        ("zeillinger", EXAMPLE, (0, 2)),
        # (5, 0, -3) gives the ordered axes (2, 0) and (1, 5, -3) gives (2, 1).
        ("zeillinger_lex", EXAMPLE, (0, 2)),
        # (2, 0, -2) is (4, 2) with ordered axes (2, 0); (3, -2, 0) is (5, 2); (1, -2, 2) is (4, 2)
        # with ordered axes (1, 2). First in the list: {0, 2}. First axes: {1, 2}.
        ("zeillinger", [(3, 0, 0), (1, 0, 2), (0, 2, 0)], (0, 2)),
        ("zeillinger_lex", [(3, 0, 0), (1, 0, 2), (0, 2, 0)], (1, 2)),
        # Supports {0}, {1}, {2}.
        ("weak_spivakovsky", [(2, 0, 0), (0, 3, 0), (0, 0, 5)], (0, 1, 2)),
        # Supports {2}, {0, 1}: {0, 2} comes before {1, 2}.
        ("weak_spivakovsky", [(1, 1, 0), (0, 0, 1)], (0, 2)),
        # Moved to the axes: (1, 0, 0) and (0, 0, 1).
        ("weak_spivakovsky", [(2, 7, 4), (1, 7, 5)], (0, 2)),
        # x^2 + y^3 + z^5. nu = 2 on axis 0; (3, 0) / 2 and (0, 5) / 2 remain. There nu = 3/2 on
        # axis 1; (5/2) / (3/2) = 5/3 remains: one orthant at 5/3 >= 1, which takes axis 2.
        ("spivakovsky", [(2, 0, 0), (0, 3, 0), (0, 0, 5)], (0, 1, 2)),
        # nu = 2 on axis 0; (3, 1) / 2 remains, an orthant at (3/2, 1/2): axis 1 alone is enough.
        ("spivakovsky", [(2, 0, 0), (0, 3, 1)], (0, 1)),
        # The same with (1, 1) / 2: axes 1 and 2 are both needed.
        ("spivakovsky", [(2, 0, 0), (0, 1, 1)], (0, 1, 2)),
        # nu = 2 on both points: axes 0, 1 and 2, and no point is left.
        ("spivakovsky", [(1, 1, 0), (0, 0, 2)], (0, 1, 2)),
        # Moved to the axes this is (1, 0, 0) and (0, 0, 1).
        ("spivakovsky", [(2, 7, 4), (1, 7, 5)], (0, 2)),
        # nu = 2 on axis 0. (1, 2, 0) has s = 1 and goes to (2, 0) / 1; (0, 0, 3) to (0, 3/2). There
        # nu = 3/2 on axis 2; (2, 0) has s = 0 and goes to 2 / (3/2) >= 1: axis 1.
        ("spivakovsky", [(2, 0, 0), (1, 2, 0), (0, 0, 3)], (0, 1, 2)),
        # nu = 2 on axis 3; (0, 1, 1) and (1/2, 0, 1) remain. There nu = 1/2 on axis 0; (0, 1, 0)
        # goes to (1, 0) / (1/2), the unmoved points to (1, 1) and (0, 1) / (1/2). There nu = 2 on
        # axes 1 and 2.
        ("spivakovsky", [(0, 0, 0, 2), (0, 1, 1, 1), (1, 0, 2, 0)], (0, 1, 2, 3)),
    ],
)
def test_hosts_by_hand(host, points, expected):
    assert players.HOSTS[host](points) == expected


def test_agents_by_hand():
    assert players.choose_first(EXAMPLE, (0, 2)) == 0
    assert players.choose_last(EXAMPLE, (0, 2)) == 2
    # Axis 0 gives (6, 0, 1), (2, 5, 1), (0, 25, 0), (4, 0, 4): all four stay. Axis 2 gives
    # (5, 0, 6), (1, 5, 2), (0, 25, 0), (0, 0, 4), whose last covers the first.
    assert players.greedy_points(EXAMPLE, (0, 2)) == 0
    # From the cusp, axis 0 ends the game and axis 1 does not.
    assert players.greedy_points([(2, 0), (0, 3)], (0, 1)) == 1
    # Both axes end this one.
    assert players.greedy_points([(1, 0), (0, 1)], (0, 1)) == 0
    assert players.greedy_points([(1, 1)], (0, 1)) == 0
