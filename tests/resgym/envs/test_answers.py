"""Answers of players are checked, whoever gives them and whatever plays: refused, nothing changes.

Each bad answer of a Python player is given in the middle of a run, which then goes on without it.
"""

import re
from contextlib import suppress
from itertools import cycle

import numpy as np
import pytest
import torch

import resgym
from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import state_from_points
from resgym.players import CallablePlayer, ask_player, make_agent, make_host
from tests.resgym.envs.helpers import (
    AGENT,
    HOST,
    MODES,
    act_random,
    asked,
    make_vec,
    played,
    restart,
    same,
)
from tests.resgym.games import record_game

NUM_ENVS = 4
DIMENSION = 6
SEATS = {HOST: "agent", AGENT: "host"}
SIZE = {"host": 2**DIMENSION - DIMENSION - 1, "agent": DIMENSION}


class Spoiled:
    """A legal player that gives another answer whenever ``spoil`` is set."""

    name = "spoiled"

    def __init__(self, role, spoil=None):
        self.role = role
        self.spoil = spoil
        self.asked = 0
        self.legal = make_host("random") if role == "host" else make_agent("random")

    def act(self, state, coords, rng):
        self.asked += 1
        answer = self.legal.act(state, coords, rng)
        return answer if self.spoil is None else self.spoil(answer, coords)


def make(env_id, player, **arguments):
    sizes = {"dimension": DIMENSION, "max_num_points": 6, "max_value": 5, "max_episode_steps": 5}
    return make_vec(env_id, NUM_ENVS, opponent=player, **sizes, **arguments)


def outside(answer, coords):
    """In the last row an axis that the set lacks, where it lacks one; else one out of range."""
    wrong = answer.clone()
    wrong[-1] = -1
    if coords is not None and not bool(coords[-1].all()):
        wrong[-1] = int((~coords[-1]).nonzero()[0])
    return wrong


def interrupted(answer, coords):
    raise KeyboardInterrupt("while it thought")


# The answer and what the error says of it.
BAD = {
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
    "an interrupt": (interrupted, KeyboardInterrupt, "while it thought"),
}  # fmt: skip

# Ways in which a player takes its seat.
KINDS = {
    "object": lambda player: player,
    "function": lambda player: player.act,
    "one of a mixture": lambda player: [player, "random"],
    "weighted": lambda player: {player: 3, "random": 1},
}


def step(env, time):
    return restart(env) or env.step(act_random(env, time))


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("env_id", SEATS)
@pytest.mark.parametrize(
    ("case", "kind", "mode"), [*zip(BAD, cycle(KINDS), cycle(MODES), strict=False)]
)
def test_a_refused_step_has_not_happened(env_id, case, kind, mode):
    spoil, error, words = BAD[case]
    role = SEATS[env_id]
    players = [Spoiled(role) for _ in range(2)]
    envs = [make(env_id, KINDS[kind](player), autoreset_mode=mode) for player in players]
    for env in envs:
        env.reset(seed=1)
    refused = 0
    for time in range(9):
        before = envs[0].state_dict()
        asked = players[0].asked
        players[0].spoil = spoil
        caught = ""
        try:
            step(envs[0], time)
        except error as found:
            caught = str(found)
        if players[0].asked > asked:
            assert re.fullmatch(f"({role} .*)?{words}.*", caught)
            refused += 1
        else:  # it plays no row that went on
            assert not caught
            envs[0].load_state_dict(before)
        assert same(envs[0].state_dict(), before)
        players[0].spoil = None
        assert same(*(step(env, time) for env in envs))
    assert refused >= 3


@pytest.mark.usefixtures("on_every_backend")
@pytest.mark.parametrize("case", ["outside the set", "None", "an interrupt"])
def test_a_refused_reset_has_not_happened(case):
    spoil, error, words = BAD[case]
    player = Spoiled("host", spoil)
    env = make(AGENT, player)
    with pytest.raises(error, match=words):
        env.reset(seed=3)
    with pytest.raises(ValueError, match="step before reset"):
        env.step([0] * NUM_ENVS)
    player.spoil = None
    env.reset(seed=3)
    before = env.state_dict()
    player.spoil = spoil
    given = [(2, 0, 0, 0, 0, 1), (0, 3, 0, 0, 0, 0)]
    for options in ({"reset_mask": np.arange(NUM_ENVS) == 1}, {"points": given}):
        with pytest.raises(error):
            env.reset(seed=9, options=options)
        assert same(env.state_dict(), before)


@pytest.mark.parametrize("case", ["outside the set", "None"])
@pytest.mark.parametrize("role", ["host", "agent"])
def test_measures_and_records_refuse(role, case):
    spoil, error, _ = BAD[case]
    player = Spoiled(role, spoil)
    pair = {"host": "random", "agent": "random", role: player}
    host = pair["host"]
    agent = pair["agent"]
    spec = GameSpec(dimension=DIMENSION)
    start = state_from_points([(2, 0, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0), (0, 0, 5, 0, 0, 1)], spec)
    size = {"games": 4, "dimension": DIMENSION}
    for go in (
        lambda: resgym.rho(host, agent, backend="torch", **size),
        lambda: resgym.rho(host, agent, **size),
        lambda: resgym.cross_play([host], [agent], **size),
        lambda: record_game(host, agent, start, spec),
    ):
        with pytest.raises(error, match=rf"^{role} spoiled [^\n]*$"):
            go()


@pytest.mark.parametrize("role", ["host", "agent"])
def test_where_nobody_looks_illegal_answers_become_the_lowest_legal(role, monkeypatch):
    """As on an accelerator: there a look would stall every step, but no kernel may get them."""
    state = state_from_points([[(2, 0, 0), (0, 3, 0)]] * 4, GameSpec())
    coords = None if role == "host" else host_action_table(3)  # {0,1}, {0,2}, {1,2}, {0,1,2}
    given = torch.tensor([10**7, -1, 0, 2])
    expected = [0, 0, 0, 2] if role == "host" else [0, 0, 1, 2]
    player = CallablePlayer(lambda s, c, r: given, role)
    with pytest.raises(ValueError, match="answered 10000000 in row 0"):
        ask_player(player, state, coords, None)
    monkeypatch.setattr("resgym.game.devices.is_host_memory", lambda device: False)
    assert ask_player(player, state, coords, None).tolist() == expected
    given = given[:3]
    with pytest.raises(ValueError, match="must return shape"):
        ask_player(player, state, coords, None)


# To which memory what is written.
WRITES = {
    "a huge count": lambda state: (state.count, 2**40),
    "a negative count": lambda state: (state.count, -(2**40)),
    "large coordinates": lambda state: (state.points, 2**62),
    "one huge count": lambda state: (state.count[-1:], 10**15),
}


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("env_id", [HOST, AGENT])
@pytest.mark.parametrize("name", WRITES)
def test_a_player_that_writes_is_one_error(name, env_id, backend):
    def player(state, coords, rng):
        memory, value = WRITES[name](state)
        memory.fill_(value)
        return asked(state, coords, rng) % 2

    env = make_vec(env_id, 64, opponent=player, backend=backend)
    with pytest.raises(ValueError, match=r"^[^\n]*must not write to its arguments[^\n]*$"):
        played(env, 6, seed=0)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("name", WRITES)
def test_a_reward_that_writes_crashes_nothing(name, backend):
    def reward(move):
        memory, value = WRITES[name](move.after)
        memory.numpy().fill(value)  # no one sees it
        return torch.zeros(len(move.axis))

    with suppress(RuntimeError):
        played(make_vec(HOST, 64, reward=reward, backend=backend), 20, seed=0)
