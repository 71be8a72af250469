"""Scripted players keep the contract, on every device; `check_player` refuses all who break it."""

import pytest
import torch

from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import GameState
from resgym.players import agent_names, host_names, make_agent, make_host
from resgym.testing import check_player

PLAYERS = [
    make(name)
    for make, names in ((make_host, host_names()), (make_agent, agent_names()))
    for name in names
    if name not in ("optimal", "safe")
]
AGENTS = [player for player in PLAYERS if player.role == "agent"]


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("player", PLAYERS, ids=repr)
def test_scripted_players_keep_the_contract(player, dimension):
    check_player(player, dimension=dimension, num_games=12)


class Broken:
    """A player made from a function, without any check of its own."""

    def __init__(self, role, act):
        self.role = role
        self.act = act


def _memory():
    calls = iter(range(10**6))
    return lambda state, coords, rng: torch.full_like(state.count, next(calls) % 4)


def _writes_points(state, coords, rng):
    state.points[0, 0, 0] += 1
    return torch.zeros_like(state.count)


def _raises_when_finished(state, coords, rng):
    if bool(state.finished().any()):
        raise IndexError("no pair of points")
    return torch.zeros_like(state.count)


BROKEN = [
    ("host", lambda s, c, r: s.count.tolist(), "must return a tensor, got list"),
    (
        "host",
        lambda s, c, r: torch.zeros_like(s.count).float(),
        r"float32; expected int64 \[N\] of 0",
    ),
    ("host", lambda s, c, r: torch.zeros_like(s.count)[:, None], r"must return shape \(64,\)"),
    ("host", lambda s, c, r: s.count.to("meta"), "must answer on cpu, got meta"),
    ("host", lambda s, c, r: torch.full_like(s.count, 4), r"answered 4 .* allowed are 0\.\.3"),
    ("host", lambda s, c, r: 4 * (s.count == 1).long(), "answered 4 in row 0"),
    ("host", _memory(), "differently when it is asked again"),
    ("host", lambda s, c, r: torch.randint(4, s.count.shape), "global generator"),
    ("host", lambda s, c, r: torch.arange(len(s.count)) % 4, "has its rows reordered"),
    ("host", lambda s, c, r: torch.full_like(s.count, int(len(s.count) == 32)), "half the rows"),
    ("host", lambda s, c, r: torch.full_like(s.count, int(len(s.count) == 1)), "row 0 alone"),
    ("host", _writes_points, "writes to its arguments"),
    ("host", _raises_when_finished, "IndexError: no pair of points"),
    ("agent", lambda s, c, r: torch.zeros_like(s.count), r"allowed are \[1, 2\]"),
    ("judge", lambda s, c, r: s.count, "role must be"),
]


@pytest.mark.parametrize(("role", "act", "message"), BROKEN)
def test_broken_players_are_refused(role, act, message):
    with pytest.raises(AssertionError, match=message):
        check_player(Broken(role, act))


def test_an_agent_without_a_set_says_so():
    state = GameState(torch.zeros(1, 1, 3, dtype=torch.int64), torch.ones(1, dtype=torch.int64))
    rng = RowRandom(torch.zeros(1, dtype=torch.int64))
    for agent in AGENTS:
        with pytest.raises(TypeError, match="coords must be the hosts' sets"):
            agent.act(state, None, rng)


NUM_GAMES = 500


@pytest.mark.parametrize("player", PLAYERS, ids=repr)
def test_players_do_not_look_at_the_data_of_an_accelerator(player):
    # Tensors on "meta" have no data: a look at a value, or a shape that depends on one, raises.
    nothing = torch.zeros(NUM_GAMES, dtype=torch.int64, device="meta")
    state = GameState(torch.zeros(NUM_GAMES, 20, 3, dtype=torch.int64, device="meta"), nothing)
    coords = torch.zeros(NUM_GAMES, 3, dtype=torch.bool, device="meta")
    answer = player.act(state, coords if player.role == "agent" else None, RowRandom(nothing))
    assert answer.device.type == "meta"
    assert answer.dtype == torch.int64
    assert answer.shape == (NUM_GAMES,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dimension", [3, 6])
@pytest.mark.parametrize("player", PLAYERS, ids=repr)
def test_answers_on_an_accelerator_are_those_of_the_cpu(player, dimension):
    rng = RowRandom(torch.arange(NUM_GAMES))
    start = random_starts(GameSpec(dimension=dimension), rng.split(0))
    # Some huge and some finished positions among the ordinary ones.
    points = torch.where(start.points > 0, start.points * 2**50, start.points)
    points[: NUM_GAMES // 2] = start.points[: NUM_GAMES // 2]
    points[-9:, 1:] = -1
    state = GameState(points, (points[:, :, 0] >= 0).sum(1))
    coords = None
    if player.role == "agent":
        coords = host_action_table(dimension)[make_host("random").act(state, None, rng)]
    expected = player.act(state, coords, rng)

    there, key = state.to("cuda"), RowRandom(rng.key.cuda())
    coords = None if coords is None else coords.cuda()
    assert torch.equal(player.act(there, coords, key).cpu(), expected)
