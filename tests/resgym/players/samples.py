"""Positions that are hard on a player: many ties, huge coordinates, single points."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.reference.rule import Point, Position, canonical


def _each(coordinate: Callable[[random.Random], int]) -> Callable[[random.Random, int], Point]:
    return lambda draw, dimension: tuple(coordinate(draw) for _ in range(dimension))


def _nearly_one_sum(draw: random.Random, dimension: int) -> Point:
    """A point with a coordinate sum of 12 or 13, so that many points are nearest to the corner."""
    cuts = sorted(draw.randint(0, 12) for _ in range(dimension - 1))
    ends = [*cuts, 12 + draw.choice((0, 0, 1))]
    return tuple(high - low for low, high in zip([0, *cuts], ends, strict=True))


KINDS: dict[str, Callable[[random.Random, int], Point]] = {
    "ties": _each(lambda draw: draw.randint(0, 2)),
    "sparse": _each(lambda draw: draw.choice((0, 0, 0, draw.randint(1, 6)))),
    "ordinary": _each(lambda draw: draw.randint(0, 20)),
    "nearly_one_sum": _nearly_one_sum,
    "large": _each(lambda draw: draw.randint(0, 2**59)),
    "all_magnitudes": _each(lambda draw: int(2 ** (59 * draw.random()))),
    "far_away": _each(lambda draw: 2**58 + draw.randint(0, 9)),
    "large_ties": _each(lambda draw: 3**36 * draw.randint(0, 3)),
}


def sample_positions(kind: str, dimension: int, number: int, seed: int) -> list[Position]:
    """Pruned positions of 1 to 20 drawn points."""
    draw = random.Random(f"{kind} {dimension} {seed}")
    return [
        canonical([KINDS[kind](draw, dimension) for _ in range(draw.randint(1, 20))])
        for _ in range(number)
    ]
