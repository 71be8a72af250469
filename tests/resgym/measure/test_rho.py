"""rho against published and recomputed figures, and what its fields mean."""

import json
import math

import pytest
import torch

import resgym.measure.rho as rho_module
from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.measure.rho import cross_play, rho, rho_starts
from resgym.players import make_host
from tests.reference import players, rule
from tests.resgym.backends import every_backend

AGENTS = ("random", "choose_first", "choose_last")

# d = 3, 20 points, values 0..20, finished starts drawn again, games cut at 200 moves. Computed
# with exact integers over 20,000 games each, by a program of its own.
TABLE = {
    "random": (0.1685, 0.0405, 0.0398),
    "random_pair": (0.1478, 0.0505, 0.0499),
    "all_coord": (0.2120, 0.0006, 0.0006),
    "zeillinger": (0.1916, 0.0767, 0.0838),
    "zeillinger_lex": (0.1916, 0.0758, 0.0860),
}
CELLS = [
    (host, agent, value)
    for host, row in TABLE.items()
    for agent, value in zip(AGENTS, row, strict=True)
]


@pytest.mark.parametrize(("host", "agent", "expected"), CELLS)
def test_scripted_play(host, agent, expected):
    result = rho(host, agent, games=5_000)
    tolerance = 0.0004 if expected < 0.001 else 0.06 * expected
    assert result.rho == pytest.approx(expected, abs=tolerance)
    # The interval agrees with the table, whose own error is as large.
    low, high = result.interval
    assert low - (high - low) <= expected <= high + (high - low)


@every_backend
@pytest.mark.parametrize("max_moves", [3, 15, 200])
def test_given_starts_against_plain_python(backend, max_moves):
    spec = GameSpec(4, 6, 9)
    rng = RowRandom(torch.arange(40))
    starts = random_starts(spec, rng).point_lists()
    starts += [[(3, 3, 3, 3)], [(1, 0, 0, 0), (2, 0, 0, 0)]]  # finished before the first move
    result = rho(
        "zeillinger", "choose_first", games=42, dimension=4, max_num_points=6, points=starts,
        max_moves=max_moves, backend=backend,
    )  # fmt: skip
    games = [
        players.play("zeillinger", "choose_first", rule.canonical(start), max_moves)
        for start in starts
    ]
    moves = sum(played for played, _ in games)
    lengths = [played for played, last in games if rule.is_finished(last)]
    assert result.moves == moves
    assert result.unfinished == 42 - len(lengths)
    assert result.histogram == [lengths.count(k) for k in range(max(lengths) + 1)]
    assert result.histogram[0] == 2
    # Starts that are finished already are no success of the host.
    assert result.rho == (len(lengths) - 2) / moves
    assert result.mean_length == moves / 42
    assert result.games == 42
    assert result.overflowed == 0


def test_fields_by_hand():
    """No move; {x, y, z} answered by x for ever; rho = 3/5 with residuals 2/5, 2/5, -4/5."""
    none = rho("random", "random", games=5, points=[(1, 2, 3)])
    assert (none.rho, none.moves, none.interval, none.histogram) == (0.0, 0, (0.0, 0.0), [5])
    points = [(0, 1, 0), (0, 0, 1)]
    cut = rho("all_coord", "choose_first", games=4, points=points, max_moves=30)
    assert (cut.rho, cut.moves, cut.unfinished, cut.mean_length) == (0.0, 120, 4, 30.0)
    assert (cut.shortest, cut.longest) == (30, 30)
    won = torch.tensor([True] * 3)
    result = rho_module.rho_of_games(torch.tensor([1, 1, 3]), won, ~won)
    half = 1.96 * math.sqrt(0.16 + 0.16 + 0.64) / 5
    assert (result.rho, result.histogram) == (0.6, [0, 2, 0, 1])
    assert result.interval == pytest.approx((0.6 - half, 0.6 + half))
    plain = json.loads(json.dumps(result.to_dict()))
    assert (plain["rho"], plain["interval_95"]) == (result.rho, list(result.interval))
    assert str(result).startswith("rho 0.6000 (95 % interval ")


def test_games_that_would_overflow_are_stopped():
    # {x, y} answered by x, again and again: x grows by y until the bound.
    top = 2**59
    points = [(top - 25, 10, 0), (0, 11, 1)]
    result = rho(
        lambda state, coords, rng: state.count * 0,
        "choose_first",
        games=3,
        points=points,
        max_moves=50,
    )
    # Two moves fit. The third would pass the bound and counts as played.
    assert (result.overflowed, result.unfinished) == (3, 3)
    assert result.moves == 3 * 3
    assert result.rho == 0.0


def test_a_game_is_the_same_in_any_number_of_games_and_any_batch(monkeypatch):
    whole = rho("random", "random", games=30)
    first = rho("random", "random", games=7).moves
    for batch in (7, 4, 1):
        monkeypatch.setattr(rho_module, "_BATCH", batch)
        assert rho("random", "random", games=30) == whole
        assert rho("random", "random", games=7).moves == first


def test_cross_play_is_a_table_of_rho():
    table = cross_play(["random", "zeillinger"], ["choose_first", "random"], games=80, seed=4)
    assert (table.hosts, table.agents) == (["random", "zeillinger"], ["choose_first", "random"])
    for host in table.hosts:
        for agent in table.agents:
            assert table.results[host][agent] == rho(host, agent, games=80, seed=4)
    host = make_host("all_coord")
    names = ["random", "random", host, host.act]
    named = cross_play(names, {"first": "choose_first"}, games=4, max_moves=5)
    assert (named.hosts, named.agents) == (["random", "random'", "AllCoordHost", "act"], ["first"])
    for wrong in ([], ["nobody"]):
        with pytest.raises(ValueError, match=r"hosts must|got 'nobody'"):
            cross_play(wrong, ["random"], games=5)
    first, _, last = str(table).splitlines()
    assert first.split() == ["host", "choose_first", "random"]
    found = [round(table.results["zeillinger"][agent].rho, 4) for agent in table.agents]
    assert last.split() == ["zeillinger", *(f"{rho:.4f}" for rho in found)]
    assert json.loads(json.dumps(table.to_dict()))["random"].keys() == {*table.agents}


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"max_moves": 0}, ValueError, "^max_moves must be at least 1, got 0$"),
        ({"seed": -1}, ValueError, "^seed must be at least 0, got -1$"),
        ({"points": [(1, 2)]}, ValueError, r"^points\[0\] must have 3 coordinates"),
        ({"agent": 3}, TypeError, "^agent must be a name"),
        ({"agent": make_host("random")}, ValueError, "^agent must play the agent"),
    ],
)
def test_bad_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message) as caught:
        rho(**{"host": "random", "agent": "random", "games": 5, **arguments})
    assert "\n" not in str(caught.value)


def test_games_won_and_the_shortest_and_the_longest():
    """Of all games together as of each alone; some of them are cut."""
    pair = ("zeillinger", "choose_last")
    games = {"dimension": 3, "max_num_points": 6, "max_value": 9, "max_moves": 9}
    starts = rho_starts(GameSpec(3, 6, 9), 40, seed=4).point_lists()
    alone = [rho(*pair, games=1, points=[start], **games) for start in starts]
    together = rho(*pair, games=40, points=starts, **games)
    assert 0 < together.unfinished < 40
    lengths = [each.moves for each in alone]
    assert (together.shortest, together.longest) == (min(lengths), max(lengths)) != (9, 9)
    assert together.win_rate == sum(each.unfinished == 0 for each in alone) / 40
    cut = rho(*pair, games=40, points=starts, **{**games, "max_moves": 1})
    assert cut.longest == 1
