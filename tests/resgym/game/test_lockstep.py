"""The rules on tensors, move by move against those in plain Python integers."""

import random
from collections import Counter
from itertools import product

import pytest

from resgym.game.spec import GameSpec
from tests.reference.variants import Basic, Polyhedra, Thom
from tests.resgym.backends import every_backend, get
from tests.resgym.game.lockstep import KINDS, play

SIZES = (1, 2, 3, 5, 8, 13, 20, 35, 50)
OTHER_SIZES = ((2, 6), (3, 12), (3, 20), (4, 9), (5, 7), (7, 15))
UNITS = (1, 2, 5, 9, 20, 30)


def basic(seed):
    """All of d = 2..10 and P = 1..50; every other one repositions."""
    for dimension, (index, size) in product(range(2, 11), enumerate(SIZES)):
        reposition = (dimension + index + seed) % 2 == 1
        yield GameSpec(dimension, size, 20, reposition=reposition), Basic(reposition=reposition)


def vertices(seed):
    for dimension in (2, 3, 4, 6):
        options = "newton", dimension % 2 == 0
        yield GameSpec(dimension, 12, 20, *options), Basic(*options)


def polyhedra(seed):
    for dimension, size in OTHER_SIZES:
        polytope = "newton" if dimension == 4 else "dominance"
        unit = UNITS[(dimension + size + seed) % 6]
        spec = GameSpec(dimension, size, 20, polytope, rule="polyhedra", unit=unit)
        yield spec, Polyhedra(unit, polytope)


def thom(seed):
    for dimension, size in OTHER_SIZES:
        options = "newton" if dimension == 4 else "dominance", (dimension + size) % 2 == 1
        yield GameSpec(dimension, size, 20, *options, rule="thom"), Thom(*options)


NUMBERS = [(basic, 5_000), (vertices, 400), (polyhedra, 1_000), (thom, 1_000)]
LONG = [(basic, 1_000_000), (polyhedra, 100_000), (thom, 100_000)]


@every_backend
@pytest.mark.parametrize(
    ("games", "moves"),
    [*NUMBERS, *(pytest.param(*numbers, marks=pytest.mark.long) for numbers in LONG)],
)
def test_thousands_of_moves(backend, games, moves):
    tally = Counter()
    seed = moves
    while tally["moves"] < moves:
        for spec, reference in games(seed):
            source = random.Random(f"{seed} {spec}")
            number = max(KINDS, moves // 400)
            tally += play(get(backend, spec), spec, reference, source, number, 24)
        seed += 1
    least = {"overflows": 0.01, "illegal": 0.03, "endings": 0.005, "asked when over": 0.01}
    least |= {"single axes": 0.02 * (games is polyhedra)}
    for name, share in least.items():  # the hard cases were met
        assert tally[name] >= share * moves, name
