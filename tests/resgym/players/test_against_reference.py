"""The batched players in lock-step with plain-integer ones."""

from __future__ import annotations

import pytest
import torch

from resgym.game import GameSpec, RowRandom, action_axes, host_action_table, state_from_points
from resgym.players import make_agent, make_host
from tests.reference import players as reference
from tests.reference.rule import Axes, Position
from tests.resgym.players.samples import KINDS, sample_positions

DIMENSIONS = {
    **dict.fromkeys(reference.HOSTS, (2, 3, 4, 5, 6)),
    "zeillinger": (2, 3, 4, 5, 6, 8, 10),
    "zeillinger_lex": (2, 3, 4, 5, 6, 8, 10),
}


def _hosts_answers(name: str, games: list[Position], dimension: int, rows: int = 20) -> list[Axes]:
    spec = GameSpec(dimension=dimension, max_num_points=rows)
    state = state_from_points(games, spec)
    actions = make_host(name).act(state, None, RowRandom(torch.arange(len(games))))
    return [action_axes(dimension)[action] for action in actions.tolist()]


@pytest.mark.parametrize("number", [60, pytest.param(3000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", reference.HOSTS)
def test_hosts_answer_as_the_reference(name: str, kind: str, number: int) -> None:
    for dimension in DIMENSIONS[name]:
        games = sample_positions(kind, dimension, number, seed=1)
        expected = [reference.HOSTS[name](game) for game in games]
        assert _hosts_answers(name, games, dimension) == expected, f"d={dimension}"


@pytest.mark.parametrize("polytope", ["dominance", "newton"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", reference.AGENTS)
def test_agents_answer_as_the_reference(name: str, kind: str, polytope: str) -> None:
    for dimension in (2, 3, 4):
        games = sample_positions(kind, dimension, 40, seed=3)
        spec = GameSpec(dimension=dimension, polytope=polytope)
        state = state_from_points(games, spec)
        rng = RowRandom(torch.arange(len(games)))
        actions = make_host("random").act(state, None, rng)
        takes_spec = {"spec": spec} if name == "greedy_points" else {}
        answer = make_agent(name, **takes_spec).act(
            state, host_action_table(dimension)[actions], rng.split(1)
        )
        options = {"polytope": polytope} if takes_spec else {}
        expected = [
            reference.AGENTS[name](game, action_axes(dimension)[action], **options)
            for game, action in zip(state.point_lists(), actions.tolist(), strict=True)
        ]
        assert answer.tolist() == expected, f"d={dimension}"


def test_hosts_ignore_where_the_position_lies_and_how_large_it_is() -> None:
    for dimension in (3, 5):
        games = [g for g in sample_positions("ordinary", dimension, 80, seed=6) if len(g) > 1]
        moved = [[tuple(7 * x + 1000 + axis for axis, x in enumerate(p)) for p in g] for g in games]
        for name in sorted(set(reference.HOSTS)):
            assert _hosts_answers(name, moved, dimension) == _hosts_answers(name, games, dimension)


def test_greedy_points_answers_the_lowest_axis_when_its_move_would_overflow() -> None:
    # A move that would overflow leaves both points whatever the axis: a tie.
    state = state_from_points([[(2**59, 1, 0), (0, 2**59, 1)]], GameSpec())
    coords = torch.tensor([[False, True, True]])
    rng = RowRandom(torch.zeros(1, dtype=torch.int64))
    assert make_agent("greedy_points").act(state, coords, rng).tolist() == [1]
    assert reference.greedy_points(state.point_lists()[0], (1, 2)) == 1
