"""Players from functions and one player per row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from resgym.game import GameSpec, GameState, RowRandom, host_action_table, random_starts
from resgym.players import (
    CallablePlayer,
    MixedPlayer,
    Player,
    ask_player,
    make_agent,
    make_host,
    rows_of,
)


def _position(number: int = 12) -> tuple[GameState, RowRandom]:
    rng = RowRandom(torch.arange(number))
    return random_starts(GameSpec(), rng.split(0)), rng.split(1)


def test_a_function_plays() -> None:
    state, rng = _position()
    host = CallablePlayer(lambda s, coords, r: (s.count % 4).int(), "host", name="by_count")
    assert isinstance(host, Player)
    assert "by_count" in repr(host)
    answer = ask_player(host, state, None, rng)
    assert answer.dtype == torch.int64
    assert torch.equal(answer, state.count % 4)


def test_players_see_only_their_rows() -> None:
    state, rng = _position()
    seen: list[int] = []

    def spy(state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        seen.append(state.num_games)
        return torch.zeros_like(state.count)

    never = CallablePlayer(lambda s, c, r: pytest.fail("plays no row"), "host")
    mixed = MixedPlayer(
        [CallablePlayer(spy, "host"), make_host("random"), never], [0] * 5 + [1] * 7
    )
    mixed.act(state, None, rng)
    assert seen == [5]


def test_rows_of_a_mixture_are_the_mixture_of_the_rows() -> None:
    state, rng = _position()
    coords = host_action_table(3)[make_host("random").act(state, None, rng)]
    agents = [make_agent("choose_first"), make_agent("random"), make_agent("choose_last")]
    inner = MixedPlayer(agents, torch.arange(12) % 3)
    nested = MixedPlayer([inner, make_agent("greedy_points")], [0, 0, 0, 1] * 3)
    whole = nested.act(state, coords, rng)
    for rows in (torch.tensor([7, 3, 0]), torch.arange(12) % 5 == 0):
        part = rows_of(nested, rows).act(state.select(rows), coords[rows], rng.select(rows))
        assert torch.equal(part, whole[rows])
    plain = make_agent("random")
    assert rows_of(plain, torch.tensor([1])) is plain


@pytest.mark.parametrize(
    ("roles", "assignment", "message"),
    [
        ([], [], "players must have at least one player"),
        (["host", "agent"], [0, 1], r"players must have one role, got \['agent', 'host'\]"),
        (["host"], [0, 1], r"assignment must be in 0\.\.0 \(players\), got 1"),
        (["host"], [0, -1], "got -1"),
        (["host"], [0.5], r"assignment must hold integers, got torch\.float32"),
        (["host"], [[0]], r"assignment must have shape \(N,\)"),
        (["host"], [0, 0, 0], "assignment is for 3 games, got 12"),
    ],
)
def test_a_wrong_mixture_is_refused(roles: list[str], assignment: Any, message: str) -> None:
    make = {"host": make_host, "agent": make_agent}
    state, rng = _position()
    with pytest.raises((TypeError, ValueError), match=message):
        MixedPlayer([make[role]("random") for role in roles], assignment).act(state, None, rng)


def test_a_function_player_needs_a_function_and_a_role() -> None:
    with pytest.raises(TypeError, match="function must be callable, got 3"):
        CallablePlayer(3, "host")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="role must be 'host' or 'agent', got 'both'"):
        CallablePlayer(lambda s, c, r: s.count, "both")  # type: ignore[arg-type]
