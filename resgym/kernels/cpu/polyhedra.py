"""Moves and starts of Hironaka's polyhedra game, one game after the other.

Every function has its counterpart in `resgym.game.rules` and `resgym.game.variants`.
"""

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.rules import absorb, draw_position, play_move, set_of_row


@inlined
def _reaches(points, count, axis_mask, unit):
    """Whether the sum over a set, bit j for axis j, is at least a unit in every point."""
    for row in range(count):
        total = 0
        for axis in range(points.shape[1]):
            total += points[row, axis] & -((axis_mask >> axis) & 1)
        if total < unit:
            return False
    return True


@compiled
def move_polyhedra(points, count, coords, axis, unit, overflow, moved):
    """Plays in place; returns the first row whose axis is none, or -1."""
    num_games, num_points, dimension = points.shape
    scratch = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_points * dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    for game in range(num_games):
        overflow[game] = moved[game] = False
        chosen = axis[game]
        if chosen < 0 or chosen >= dimension:
            return game
        axis_mask = set_of_row(dims, coords[game])
        position, before = points[game], count[game]
        if not (axis_mask >> chosen) & 1 or not _reaches(position, before, axis_mask, unit):
            continue
        # The unit goes off before the sum, which no set that is permissible makes negative.
        for row in range(before):
            position[row, chosen] -= unit
        after = play_move(dims, position, before, axis_mask, chosen, False, scratch, numbers)
        if after < 0:
            overflow[game] = True
            for row in range(before):
                position[row, chosen] += unit
            continue
        moved[game] = True
        count[game] = after
        for row in range(after, before):
            for other in range(dimension):
                points[game, row, other] = -1
    return -1


@compiled
def draw_polyhedra(points, count, keys, values, attempts, unit):
    """Writes random unfinished positions; the arguments are those of `draw_start`, row by row."""
    num_games, num_points, dimension = points.shape
    scratch = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_points * dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    all_axes = 2**dimension - 1
    for game in range(num_games):
        position, key = points[game], np.uint64(keys[game])
        drawn, going = 0, True
        for attempt in range(attempts):
            drawn = draw_position(dims, position, absorb(key, attempt), values, scratch, numbers)
            going = not _reaches(position, drawn, all_axes, unit)
            if not going:
                break
        if going:  # {(1, 0, ..), (0, 1, ..)} in units
            drawn = min(2, num_points)
            for row in range(drawn):
                for axis in range(dimension):
                    position[row, axis] = unit * np.int64(axis == row)
        count[game] = drawn
        for row in range(drawn, num_points):
            for axis in range(dimension):
                points[game, row, axis] = -1
