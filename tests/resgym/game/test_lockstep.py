"""The rule on tensors, move by move against the rule in plain Python integers."""

import random
from collections import Counter

import pytest

from resgym.game.spec import GameSpec
from tests.reference.variants import Basic
from tests.resgym.backends import every_backend, get
from tests.resgym.game.lockstep import KINDS, play

SIZES = (1, 2, 3, 5, 8, 13, 20, 35, 50)


def play_all(name, seed, moves_per_cell, num_moves):
    """All of d = 2..10 and P = 1..50; every other cell repositions."""
    total = Counter()
    for dimension in range(2, 11):
        for index, size in enumerate(SIZES):
            spec = GameSpec(dimension, size, 20, reposition=(dimension + index) % 2 == 1)
            source = random.Random(f"{seed} {dimension} {size}")
            cell = (dimension - 2) * len(SIZES) + index
            sides = get(name, spec), spec, Basic(reposition=spec.reposition)
            num_games = max(KINDS, moves_per_cell // 8)
            if size == 1:  # nothing but finished games: no move of theirs counts
                total += play(*sides, source, num_games, num_moves)
            while size > 1 and total["moves"] < moves_per_cell * (cell + 1):
                total += play(*sides, source, num_games, num_moves)
    return total


@every_backend
@pytest.mark.parametrize(
    ("moves", "length"), [(5_000, 12), pytest.param(1_000_000, 24, marks=pytest.mark.long)]
)
def test_thousands_of_moves(backend, moves, length):
    tally = play_all(backend, moves, moves // 81 + 1, length)
    least = {"moves": moves, "overflows": 50, "illegal": 150, "asked when over": 500}
    assert tally >= Counter(least | {"endings": 250})  # the hard cases were met


@every_backend
@pytest.mark.parametrize("dimension", [2, 3, 4, 6])
def test_true_vertices(backend, dimension):
    spec = GameSpec(dimension, 12, 20, polytope="newton", reposition=dimension % 2 == 0)
    reference = Basic("newton", spec.reposition)
    source = random.Random(dimension)
    tally = play(get(backend, spec), spec, reference, source, 20, 16)
    assert tally["endings"] >= 5
