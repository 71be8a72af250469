"""What a network is shown of solved positions; and the losses, by hand."""

import math

import gymnasium
import pytest
import torch

import resgym
from resgym.benchmark.solved import Asked
from sb3_ext.teach.teacher import losses, observation
from tests.resgym.benchmark.recursion import small


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_observations_are_those_of_the_environment(seat):
    data = small(8)
    env = gymnasium.make_vec(f"resgym/Hironaka{seat.title()}-v0", num_envs=len(data))
    shown, _ = env.reset(options={"points": data.points.numpy()})
    ours = observation(data.asked(seat), 20)
    if seat == "agent":
        assert ours["coords"].dtype == shown["coords"].dtype
        ours, shown = ours["points"], shown["points"]
    assert torch.equal(ours, shown)
    assert ours.dtype == shown.dtype


def one(optimal, coords=None):
    """A batch of one position with these best moves, of a game of three."""
    state = resgym.state_from_points([[(0, 1, 0), (1, 0, 0)]], resgym.GameSpec(3, 2))
    sets = None if coords is None else torch.tensor([coords])
    regret = 1 - torch.tensor([optimal]).long()
    if coords is not None:
        regret = torch.where(sets, regret, -1)
    return Asked(state, sets, regret, torch.tensor([3]))


def found(values, batch, gamma=1.0, temperature=1.0):
    terms = losses(torch.tensor([values]), batch, gamma, temperature)
    return terms.choice.item(), terms.value.item()


def test_the_choice_is_minus_log_of_the_share_of_the_best_moves():
    values = [math.log(1.0), math.log(2.0), math.log(5.0), -math.inf]
    batch = one([True, True, False, False])
    assert found(values, batch)[0] == pytest.approx(math.log(8 / 3))
    # At half the temperature the odds are squared.
    assert found(values, batch, temperature=0.5)[0] == pytest.approx(math.log(30 / 5))
    # What is not legal has no part, not in the gradient either.
    agent = one([True, False, False], (True, True, False))
    given = torch.zeros(1, 3, requires_grad=True)
    losses(given, agent, 1.0, 0.1).choice.backward()
    torch.testing.assert_close(given.grad, torch.tensor([[-5.0, 5.0, 0.0]]))


@pytest.mark.parametrize(("gamma", "best", "worse"), [(0.5, -1.75, -1.875), (1.0, -3.0, -4.0)])
def test_true_values_have_no_loss_of_value(gamma, best, worse):
    """Of a game of three moves, and of one that is a move worse; others may be lower."""
    batch = one([True, False, False, False])
    assert found([best, worse, -9.0, -9.0], batch, gamma)[1] == 0
    # Huber of 0.5; of the others one is 0.3 too high.
    off = found([best - 0.5, worse + 0.3, -9.0, -9.0], batch, gamma)
    assert off[1] == pytest.approx(0.5 * 0.5**2 + 0.5 * 0.3**2 / 3)
    agent = one([True, False, False], (True, True, False))  # its values are the negative ones
    assert found([3.0, 2.0, 99.0], agent)[1] == 0
    assert found([3.0, 2.4, 99.0], agent)[1] == pytest.approx(0.5 * 0.4**2)
