"""rho against published and recomputed figures, and what its fields mean."""

import json
import math

import pytest
import torch

import resgym.measure.rho as rho_module
from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.measure.rho import cross_play, rho
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


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("host", TABLE)
def test_scripted_play(host, column):
    agent = AGENTS[column]
    expected = TABLE[host][column]
    result = rho(host, agent, games=5_000)
    tolerance = 0.0004 if expected < 0.001 else 0.06 * expected
    assert result.rho == pytest.approx(expected, abs=tolerance)
    # The interval agrees with the table, whose own error is as large.
    low, high = result.interval
    assert low - (high - low) <= expected <= high + (high - low)


@every_backend
@pytest.mark.parametrize("max_moves", [3, 15, 200])
@pytest.mark.parametrize("host", players.HOSTS)
def test_given_starts_against_plain_python(host, backend, max_moves):
    spec = GameSpec(4, 6, 9)
    rng = RowRandom(torch.arange(40))
    starts = random_starts(spec, rng).point_lists()
    starts += [[(3, 3, 3, 3)], [(1, 0, 0, 0), (2, 0, 0, 0)]]  # finished before the first move
    result = rho(
        host, "choose_last", games=42, dimension=4, max_num_points=6, points=starts,
        max_moves=max_moves, backend=backend,
    )  # fmt: skip
    starts = map(rule.canonical, starts)
    games = [players.play(host, "choose_last", start, max_moves) for start in starts]
    played = [moves for moves, _ in games]
    moves = sum(played)
    lengths = [moves for moves, last in games if rule.is_finished(last)]
    assert (result.win_rate, result.longest) == (pytest.approx(len(lengths) / 42), max(played))
    assert (result.moves, result.unfinished) == (moves, 42 - len(lengths))
    assert result.histogram == [lengths.count(k) for k in range(max(lengths) + 1)]
    assert result.histogram[0] == 2
    # Starts that are finished already are no success of the host.
    assert result.rho == (len(lengths) - 2) / moves
    assert (result.mean_length, result.games, result.overflowed) == (moves / 42, 42, 0)


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
    assert (result.win_rate, result.shortest, result.longest) == (1.0, 1, 3)
    assert result.interval == pytest.approx((0.6 - half, 0.6 + half))
    plain = json.loads(json.dumps(result.to_dict()))
    assert (plain["rho"], plain["interval_95"]) == (result.rho, list(result.interval))
    assert str(result).startswith("rho 0.6000 (95 % interval ")


def test_games_that_would_overflow_are_stopped():
    # {x, y} answered by x, again and again: x grows by y until the bound.
    top = 2**59
    points = [(top - 25, 10, 0), (0, 11, 1)]
    options = {"games": 3, "points": points, "max_moves": 50}
    result = rho(lambda state, coords, rng: state.count * 0, "choose_first", **options)
    # Two moves fit. The third would pass the bound and counts as played.
    assert (result.overflowed, result.unfinished) == (3, 3)
    assert (result.moves, result.rho) == (3 * 3, 0.0)


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
    first, _, last = str(table).splitlines()
    assert first.split() == ["host", "choose_first", "random"]
    found = [round(table.results["zeillinger"][agent].rho, 4) for agent in table.agents]
    assert last.split() == ["zeillinger", *(f"{rho:.4f}" for rho in found)]
    assert json.loads(json.dumps(table.to_dict()))["random"].keys() == {*table.agents}
