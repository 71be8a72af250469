"""On an accelerator: the same answers, and no wait for the device."""

import pytest
import torch

from resgym.game.rng import RowRandom
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import GameState
from resgym.players import agent_names, host_names, make_agent, make_host

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

NUM_GAMES = 500
MAKE = {"host": make_host, "agent": make_agent}
PLAYERS = [("host", name) for name in host_names() if name not in ("optimal", "safe")]
PLAYERS += [("agent", name) for name in agent_names() if name != "optimal"]


@pytest.mark.parametrize(("role", "name"), PLAYERS)
def test_players_do_not_look_at_the_data(role, name):
    # Tensors on "meta" have no data: a look at a value, or a shape that depends on one, raises.
    nothing = torch.zeros(NUM_GAMES, dtype=torch.int64, device="meta")
    state = GameState(torch.zeros(NUM_GAMES, 20, 3, dtype=torch.int64, device="meta"), nothing)
    coords = torch.zeros(NUM_GAMES, 3, dtype=torch.bool, device="meta")
    answer = MAKE[role](name).act(state, coords if role == "agent" else None, RowRandom(nothing))
    assert answer.device.type == "meta"
    assert answer.dtype == torch.int64
    assert answer.shape == (NUM_GAMES,)


@needs_cuda
@pytest.mark.parametrize("dimension", [3, 6])
@pytest.mark.parametrize(("role", "name"), PLAYERS)
def test_answers_are_those_of_the_cpu(role, name, dimension):
    rng = RowRandom(torch.arange(NUM_GAMES))
    start = random_starts(GameSpec(dimension=dimension), rng.split(0))
    # Some huge and some finished positions among the ordinary ones.
    points = torch.where(start.points > 0, start.points * 2**50, start.points)
    points[: NUM_GAMES // 2] = start.points[: NUM_GAMES // 2]
    points[-9:, 1:] = -1
    state = GameState(points, (points[:, :, 0] >= 0).sum(1))
    coords = None
    if role == "agent":
        coords = host_action_table(dimension)[make_host("random").act(state, None, rng)]
    expected = MAKE[role](name).act(state, coords, rng)

    there, key = state.to("cuda"), RowRandom(rng.key.cuda())
    coords = None if coords is None else coords.cuda()
    assert torch.equal(MAKE[role](name).act(there, coords, key).cpu(), expected)
