"""Answers of players are checked, whoever gives them and whatever plays: refused, nothing changes.

A player that answers from Python is asked in every environment, in measures and in trees. Each bad
answer is given in the middle of a run, which then goes on as a run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import resgym
from resgym.game import GameSpec, state_from_points
from resgym.game.actions import host_action_table
from resgym.measure.games import record_game
from resgym.players import CallablePlayer, ask_player
from tests.resgym.envs.answers import (
    DIMENSION,
    NUM_ENVS,
    SEATS,
    SIZE,
    Spoiled,
    error_of,
    make,
    one_line,
    step_both,
)
from tests.resgym.envs.helpers import AGENT, HOST, MODES, act_random, same


def outside(answer: Tensor, coords: Tensor | None) -> Tensor:
    """In the last row an axis that the set lacks, where it lacks one; else one out of range."""
    wrong = answer.clone()
    wrong[-1] = -1
    if coords is not None and not bool(coords[-1].all()):
        wrong[-1] = int((~coords[-1]).nonzero()[0])
    return wrong


# The answer and what the error says of it.
BAD: dict[str, tuple[Callable[[Tensor, Tensor | None], Any], type[Exception], str]] = {
    "far out of range": (lambda a, c: torch.full_like(a, 10**7), ValueError, "answered 10000000"),
    "just out of range": (
        lambda a, c: torch.full_like(a, SIZE["agent" if c is not None else "host"]),
        ValueError, r"answered (6|57) in row \d, allowed are",
    ),
    "outside the set": (outside, ValueError, r"answered -?\d+ in row \d, allowed are"),
    "too short": (lambda a, c: torch.cat([a, a])[: len(a) - 1], ValueError, "must return shape"),
    "floats": (lambda a, c: a.double(), TypeError, r"must return integers, got torch\.float64"),
    "booleans": (lambda a, c: a > 0, TypeError, r"must return integers, got torch\.bool"),
    "None": (lambda a, c: None, TypeError, "must return a tensor, got NoneType"),
}  # fmt: skip

# Ways in which a player takes its seat.
KINDS: dict[str, Callable[[Spoiled], Any]] = {
    "object": lambda player: player,
    "function": lambda player: player.act,
    "one of a mixture": lambda player: [player, "random"],
    "weighted": lambda player: {player: 3, "random": 1},
}


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("env_id", SEATS)
def test_a_refused_step_has_not_happened(env_id: str, case: str) -> None:
    spoil, error, words = BAD[case]
    players = tuple(Spoiled(SEATS[env_id]) for _ in range(2))
    envs = tuple(make(env_id, player) for player in players)
    for env in envs:
        env.reset(seed=5)
    for time in range(6):
        before = envs[0].state_dict()
        players[0].spoil = spoil
        with pytest.raises(error, match=words) as caught:
            envs[0].step(act_random(envs[0], time))
        assert one_line(caught.value).startswith(f"{SEATS[env_id]} spoiled ")
        assert same(envs[0].state_dict(), before)
        players[0].spoil = None
        step_both(envs, time)
    assert same(envs[0].state_dict(), envs[1].state_dict())


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", SEATS)
@pytest.mark.parametrize("kind", KINDS)
def test_whoever_answers_and_whatever_the_mode(kind: str, env_id: str, mode: str) -> None:
    spoil, error, _ = BAD["outside the set" if env_id == HOST else "too short"]
    role = SEATS[env_id]
    players = tuple(Spoiled(role) for _ in range(2))
    envs = tuple(make(env_id, KINDS[kind](player), autoreset_mode=mode) for player in players)
    for env in envs:
        env.reset(seed=1)
    refused = 0
    for time in range(9):
        before = envs[0].state_dict()
        players[0].spoil = spoil
        players[0].spoiled = 0
        ended = envs[0].games.ended
        if mode == "DISABLED" and bool(ended.any()):
            refusal = error_of(lambda: envs[0].reset(options={"reset_mask": ended}))  # noqa: B023
        else:
            refusal = error_of(lambda: envs[0].step(act_random(envs[0], time)))  # noqa: B023
        if players[0].spoiled:
            assert type(refusal) is error
            assert one_line(refusal).startswith(f"{role} ")
            assert same(envs[0].state_dict(), before)
            refused += 1
        else:  # it plays no row that went on
            assert refusal is None
            envs[0].load_state_dict(before)
        players[0].spoil = None
        step_both(envs, time)
    assert refused >= 3


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("case", BAD)
def test_a_refused_reset_has_not_happened(case: str) -> None:
    spoil, error, words = BAD[case]
    player = Spoiled("host")
    env = make(AGENT, player)
    player.spoil = spoil
    with pytest.raises(error, match=words):
        env.reset(seed=3)
    with pytest.raises(ValueError, match="step before reset"):
        env.step([0] * NUM_ENVS)
    player.spoil = None
    other = make(AGENT, Spoiled("host"))
    assert same(env.reset(seed=3)[0], other.reset(seed=3)[0])
    before = env.state_dict()
    player.spoil = spoil
    for options in (
        {"reset_mask": np.arange(NUM_ENVS) == 1},
        {"points": [(2, 0, 0, 0, 0, 1), (0, 3, 0, 0, 0, 0)]},
    ):
        with pytest.raises(error):
            env.reset(seed=9, options=options)
        assert same(env.state_dict(), before)


@pytest.mark.parametrize("case", ["outside the set", "too short", "floats", "None"])
@pytest.mark.parametrize("role", ["host", "agent"])
def test_measures_trees_and_records_refuse(role: str, case: str) -> None:
    spoil, error, _ = BAD[case]
    player = Spoiled(role)
    player.spoil = spoil
    pair = {"host": "random", "agent": "random", role: player}
    spec = GameSpec(dimension=DIMENSION)
    points = [(2, 0, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0), (0, 0, 5, 0, 0, 1)]
    roads = {
        "rho on torch": lambda: resgym.rho(
            pair["host"], pair["agent"], games=4, dimension=DIMENSION, backend="torch"
        ),
        "rho": lambda: resgym.rho(pair["host"], pair["agent"], games=4, dimension=DIMENSION),
        "cross-play": lambda: resgym.cross_play(
            [pair["host"]], [pair["agent"]], games=4, dimension=DIMENSION
        ),
        "a record": lambda: record_game(
            pair["host"], pair["agent"], state_from_points(points, spec), spec
        ),
    }
    for road, go in roads.items():
        with pytest.raises(error) as caught:
            go()
        assert one_line(caught.value).startswith(f"{role} spoiled "), road


@pytest.mark.parametrize("role", ["host", "agent"])
def test_where_nobody_looks_illegal_answers_become_the_lowest_legal(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator: there a look would stall every step, but no kernel may get them."""
    state = state_from_points([[(2, 0, 0), (0, 3, 0)]] * 4, GameSpec())
    coords = None if role == "host" else host_action_table(3)  # {0,1}, {0,2}, {1,2}, {0,1,2}
    given = torch.tensor([10**7, -1, 0, 2])
    expected = [0, 0, 0, 2] if role == "host" else [0, 0, 1, 2]
    player = CallablePlayer(lambda s, c, r: given, role)  # type: ignore[arg-type]
    rng: Any = None
    with pytest.raises(ValueError, match="answered 10000000 in row 0"):
        ask_player(player, state, coords, rng)
    monkeypatch.setattr("resgym.game.devices.is_host_memory", lambda device: False)
    assert ask_player(player, state, coords, rng).tolist() == expected
    for wrong, error in ((given[:3], ValueError), (given.float(), TypeError), (None, TypeError)):
        bad = CallablePlayer(lambda s, c, r: wrong, role)  # type: ignore  # noqa: B023
        with pytest.raises(error, match="must return"):
            ask_player(bad, state, coords, rng)


# Random answers: anything that a player might return.
