"""Positions to solve, drawn and as the arrays that labels are asked for."""

import random

import numpy as np

from resgym.game.exact import prune

# A finished position's value, what a move costs, and how the values after the answers add up.
OBJECTIVES = {"depth": (0, 1, max), "nodes": (1, 1, sum), "leaves": (1, 0, sum)}

# Least depth, fewest nodes and fewest leaves of the singularities, in the order of their names. The
# depths, and most of the others, are found again by exhaustive search in the tests of `solve`.
LEAST = {
    "depth": [1, 3, 2, 4, 3, 5, 4, 6, 4, 5, 5, 6, 6, 6, 6, 7],
    "nodes": [4, 11, 7, 14, 10, 17, 13, 20, 19, 25, 33, 39, 47, 21, 47, 54],
    "leaves": [3, 7, 5, 9, 7, 11, 9, 13, 11, 15, 19, 23, 27, 13, 27, 31],
}


def drawn(number, seed, dimension, points, top):
    """So many unfinished positions of at most so many points."""
    draw = random.Random(seed)
    positions = []
    while len(positions) < number:
        rows = [tuple(draw.randint(0, top) for _ in range(dimension)) for _ in range(points)]
        position = prune(rows)
        if len(position) > 1:
            positions.append(tuple(position))
    return positions


def batch(positions, rows):
    """Positions int64 [N, P, D] in descending order, absent rows -1, and their sizes int64 [N]."""
    dimension = len(positions[0][0])
    points = np.full((len(positions), rows, dimension), -1)
    for row, position in zip(points, positions, strict=True):
        row[: len(position)] = sorted(position, reverse=True)
    return points, np.array([len(position) for position in positions])
