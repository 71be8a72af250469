"""The losses of teaching, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from sb3_ext.studies.teach.losses import choice_loss, game_return, teaching_loss, value_loss


def test_the_choice_is_minus_log_of_the_share_of_the_optimal_set():
    values = torch.tensor([[math.log(1.0), math.log(2.0), math.log(5.0)]])
    optimal = torch.tensor([[True, True, False]])
    assert choice_loss(values, optimal, None, 1.0).item() == pytest.approx(math.log(8 / 3))
    # At half the temperature the odds are squared.
    assert choice_loss(values, optimal, None, 0.5).item() == pytest.approx(math.log(30 / 5))
    # What is not legal has no part.
    legal = torch.tensor([[True, True, False]])
    assert choice_loss(values, optimal, legal, 1.0).item() == pytest.approx(0.0, abs=1e-6)


def test_gradients_of_the_choice_are_finite_where_moves_are_illegal():
    values = torch.zeros(1, 3, requires_grad=True)
    optimal = torch.tensor([[True, False, False]])
    legal = torch.tensor([[True, True, False]])
    choice_loss(values, optimal, legal, 0.1).sum().backward()
    torch.testing.assert_close(values.grad, torch.tensor([[-5.0, 5.0, 0.0]]))


def test_returns_are_those_of_the_rewards():
    moves = torch.tensor([1, 3])

    def returns(reward, seat="host", gamma=0.5):
        return game_return(moves, seat, reward, gamma).tolist()

    assert returns("step") == [-1.0, -1.75]
    assert returns("step", "agent") == [1.0, 1.75]
    assert returns("step", gamma=1.0) == [-1.0, -3.0]
    assert returns("survival") == [0.0, -1.5]
    assert returns("terminal") == [1.0, 0.25]
    with pytest.raises(ValueError, match="'points'; the return of a game is known for step"):
        returns("points")


def test_the_value_bounds_other_moves_from_above_only():
    values = torch.tensor([[-1.5, -1.0, -9.0]])
    optimal = torch.tensor([[True, False, False]])
    best, worse = torch.tensor([-1.0]), torch.tensor([-1.9])
    # Huber of 0.5; of the others one is 0.9 too high and one low enough.
    expected = 0.5 * 0.5**2 + 0.5 * (0.5 * 0.9**2)
    assert value_loss(values, optimal, None, best, worse).item() == pytest.approx(expected)
    legal = torch.tensor([[True, False, True]])
    assert value_loss(values, optimal, legal, best, worse).item() == pytest.approx(0.125)


@pytest.mark.parametrize(("seat", "sign"), [("host", -1.0), ("agent", 1.0)])
def test_true_values_have_no_loss_of_value(seat, sign):
    """Q of play that is one move worse, for either seat, is just allowed."""
    moves = torch.tensor([3])
    worse = 4 if seat == "host" else 2
    values = torch.tensor([[sign * 3.0, sign * worse]])
    optimal = torch.tensor([[True, False]])
    chosen = {"seat": seat, "reward": "step", "gamma": 1.0, "temperature": 0.1}
    terms = teaching_loss(values, optimal, None, moves, **chosen, value_weight=2.0)
    assert terms.value.item() == pytest.approx(0.0, abs=1e-6)
    assert terms.choice.item() == pytest.approx(math.log1p(math.exp(-10.0)), rel=1e-2)
    swapped = teaching_loss(values, ~optimal, None, moves, **chosen, value_weight=2.0)
    assert swapped.total.item() == pytest.approx(swapped.choice.item() + 2.0 * swapped.value.item())
    assert swapped.value.item() > 0.4
