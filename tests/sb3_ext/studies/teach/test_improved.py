"""A host that compares its sets by the longest games of another one."""

from __future__ import annotations

import pytest
import torch

import resgym
from resgym import GameSpec
from resgym.game.actions import action_axes
from resgym.game.plain import moved, prune
from resgym.game.rng import RowRandom
from resgym.game.state import state_from_points
from resgym.measure.rho import rho_starts
from resgym.measure.worst_case import worst_case_moves
from resgym.players import ask_player, check_player, make_host
from sb3_ext.studies.teach.improved import ImprovedHost

AXES = action_axes(3)


def answers(host, positions):
    state = state_from_points(positions, GameSpec(3, 6))
    rng = RowRandom(torch.zeros(len(positions), dtype=torch.int64))
    return ask_player(host, state, None, rng).tolist()


def after(points, option, axis):
    return prune(moved(points, AXES[option], axis))


def longest(host, points):
    """The reference: one position at a time, depth first."""
    if len(points) < 2:
        return 0
    (option,) = answers(host, [points])
    return 1 + max(longest(host, after(points, option, axis)) for axis in AXES[option])


def test_its_set_is_the_best_first_move_before_the_other_host_goes_on():
    host = make_host("zeillinger")
    positions = rho_starts(GameSpec(3, 6, 4), 12, seed=3).point_lists()
    differs = 0
    for points in positions:
        after_set = [
            max(longest(host, after(points, option, axis)) for axis in axes)
            for option, axes in enumerate(AXES)
        ]
        (own,), (answer,) = answers(host, [points]), answers(ImprovedHost(host), [points])
        assert after_set[answer] == min(after_set)
        if after_set[own] == min(after_set):
            assert answer == own
        differs += answer != own
    assert differs


@pytest.mark.parametrize("name", ["taught", "zeillinger"])
def test_no_longest_game_gets_longer_and_many_get_shorter(name):
    spec = GameSpec(3, 8, 12)
    starts = rho_starts(spec, 12, seed=1)
    host = make_host(name)
    own, _ = worst_case_moves(host, starts, spec, 200, 20_000)
    better, given_up = worst_case_moves(ImprovedHost(host), starts, spec, 200, 20_000)
    least = torch.tensor([resgym.solve(points).value for points in starts.point_lists()])
    assert not given_up.any()
    assert (least <= better).all()
    assert (better <= own).all()
    assert better.sum() < own.sum()


def test_walks_without_an_end_leave_the_other_hosts_answer():
    positions = rho_starts(GameSpec(3, 6), 8, seed=2).point_lists()
    host = make_host("zeillinger")
    assert answers(ImprovedHost(host, max_moves=0), positions) == answers(host, positions)


def test_a_second_step_is_no_worse_than_the_first():
    spec, once = GameSpec(3, 5, 6), ImprovedHost(make_host("zeillinger"))
    starts = rho_starts(spec, 12, seed=4)
    lengths = [
        worst_case_moves(host, starts, spec, 200, 20_000)[0]
        for host in (once.host, once, ImprovedHost(once))
    ]
    assert (lengths[2] <= lengths[1]).all()
    assert (lengths[1] <= lengths[0]).all()
    assert lengths[2].sum() < lengths[1].sum()


def test_it_is_an_option_of_taught():
    check_player(make_host("taught(lookahead=True)"), num_games=24)
    assert make_host("taught(lookahead=2)").name == "taught with lookahead with lookahead"
    for given in ("3", "-1", "1.0", "None"):
        with pytest.raises(ValueError, match=f"lookahead must be 0, 1 or 2, got {given}"):
            make_host(f"taught(lookahead={given})")
