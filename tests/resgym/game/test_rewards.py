"""Rewards of one move, worked out by hand."""

import pytest
import torch

from resgym.game.rules import move
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.game.stepping import REWARDS, Transition, register_reward, role_reward
from tests.resgym.backends import every_backend
from tests.resgym.envs import helpers

SPEC = GameSpec(2, 4)


def transition(role):
    """Three games of two axes: x^2 + y^3 with y, with x, and three points with x.

    (2, 0), (0, 3) -> (2, 2), (0, 3): nothing removed. -> (2, 0), (3, 3): one of two, the end.
    (3, 0), (1, 1), (0, 3) -> (3, 0), (2, 1), (3, 3): the last is covered, two stay.
    """
    cusp = [(2, 0), (0, 3)]
    before = state_from_points([cusp, cusp, [(3, 0), (1, 1), (0, 3)]], SPEC)
    coords = torch.ones(3, 2, dtype=torch.bool)
    axis = torch.tensor([1, 0, 0])
    after, _ = move(before, coords, axis, SPEC)
    return Transition(before, coords, axis, after, after.finished(), role)


HOST = {
    "terminal": [0.0, 1.0, 0.0],
    "step": [-1.0, -1.0, -1.0],
    "survival": [-1.0, 0.0, -1.0],
    "points": [0.0, 1.0, 1.0],
}


@pytest.mark.parametrize("name", sorted(HOST))
def test_named_rewards(name):
    host = role_reward(name, transition("host"))
    agent = role_reward(name, transition("agent"))
    assert host.dtype == agent.dtype == torch.float32
    assert host.tolist() == HOST[name]
    assert torch.equal(host + agent, torch.zeros(3))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(3, 1), r"reward must return a tensor \[3\], got \(3, 1\)"),
        (torch.tensor([0.0, torch.nan, 0.0]), "reward: got nan for game 1"),
        (torch.zeros(3, dtype=torch.complex64), "reward: got torch.complex64"),
    ],
)
def test_rewards_that_no_learner_can_use(value, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        role_reward(lambda move: value, transition("host"))
    played = torch.tensor([False, True, True])  # the first game may have any reward
    value = torch.tensor([torch.nan, 1.0, 2.0])
    assert role_reward(lambda move: value, transition("host"), played).tolist() == [0.0, 1.0, 2.0]


@every_backend
@pytest.mark.parametrize(("env_id", "sign"), [(helpers.HOST, 1), (helpers.AGENT, -1)])
def test_a_registered_reward_is_the_hosts_and_the_agent_gets_the_negative(
    backend, env_id, sign, monkeypatch
):
    monkeypatch.setitem(REWARDS, "twice", REWARDS["points"])  # taken back after the test
    del REWARDS["twice"]

    @register_reward("twice")
    def twice(move):
        removed = move.before.count - move.after.count
        return 2 * removed if move.role == "host" else -2 * removed  # asked for the host alone

    paid = []
    for reward in ("points", "twice"):
        games = helpers.make_vec(env_id, 16, reward=reward, backend=backend)
        games.reset(seed=3)
        paid.append(games.step(helpers.act_random(games, 0))[1])
    assert torch.equal(paid[1], 2 * paid[0])
    assert bool((paid[0] * sign > 0).any())
