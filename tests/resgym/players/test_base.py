"""Players from functions."""

from __future__ import annotations

import pytest
import torch

from resgym.game import GameSpec, GameState, RowRandom, random_starts
from resgym.players import CallablePlayer, Player, ask_player


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


def test_a_function_player_needs_a_function_and_a_role() -> None:
    with pytest.raises(TypeError, match="function must be callable, got 3"):
        CallablePlayer(3, "host")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="role must be 'host' or 'agent', got 'both'"):
        CallablePlayer(lambda s, c, r: s.count, "both")  # type: ignore[arg-type]
