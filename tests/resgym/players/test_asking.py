"""Which games of a mixture meet whom."""

import pytest
import torch

from resgym.players import Mixture, RandomAgent, make_mixture

A, B, C = RandomAgent(), RandomAgent(), RandomAgent()


def dealt(mixture, rows, episodes):
    """Who meets the games 0, 1, 2, ..., in this order."""
    seats = [mixture.seats(torch.full((rows,), episode)) for episode in range(episodes)]
    return torch.cat(seats).tolist()


def test_without_weights_in_turn():
    mixture = Mixture((A, B, C))
    assert dealt(mixture, 4, 3) == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert dealt(mixture, 3, 2) == [0, 1, 2, 0, 1, 2]  # as many rows as players: one each
    assert mixture.seats(torch.tensor([2, 0, 1])).tolist() == [0, 1, 2]
    # Before the first reset there is no episode yet.
    assert mixture.seats(torch.tensor([-1, -1, -1, -1])).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("rows", [1, 16])
def test_every_run_of_games_has_the_shares(rows):
    weights = {"random": 3, "choose_first": 2.0, "choose_last": 1}
    mixture = make_mixture(weights, "agent")
    assert mixture.shares == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    games = torch.tensor(dealt(mixture, rows, 1024 // rows))
    for begin in range(0, 700, 50):
        found = games[begin : begin + 64].bincount(minlength=3)
        assert ((found - 64 * torch.tensor(mixture.shares)).abs() < 4).all()
    # Far out too: the product passes 2^63 many times.
    late = mixture.seats(torch.full((4000,), 10**9)).bincount(minlength=3) / 4000
    assert late.tolist() == pytest.approx(mixture.shares, abs=0.01)
