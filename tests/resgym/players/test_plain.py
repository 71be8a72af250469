"""Hosts on plain integers choose as the players of the same name."""

import random

import pytest

from resgym.game.plain import prune
from resgym.game.spec import MAX_COORDINATE
from resgym.players.plain import PLAIN_HOSTS
from resgym.players.seats import Seat
from resgym.polynomials.monomials import Exponents


@pytest.mark.parametrize("host", PLAIN_HOSTS)
@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize("most", [3, 30, MAX_COORDINATE])
def test_plain_hosts_choose_as_players(host, dimension, most):
    draw = random.Random(dimension)
    for _ in range(60):
        points = prune(
            tuple(draw.randint(0, most) for _ in range(dimension))
            for _ in range(draw.randint(2, 9))
        )
        draw.shuffle(points)  # Zeillinger's host takes the first of equally good pairs
        if len(points) > 1:
            seat = Seat(host, "host", Exponents(points))
            assert PLAIN_HOSTS[host](tuple(points)) == seat.host_sets([tuple(points)])[0], points
