"""The rules for one game at a time: what sets them apart, as in `resgym.game.variants`.

Everything here takes a ``unit``, a number with rule ``polyhedra`` and else None, and what says
whether axes are ``weighted``, True with rule ``thom`` and else None. None is known to the compiler:
in the default rule nothing is left of the other ones.
"""

import numpy as np

from resgym.game.rules import MARKED_SPLIT, WEIGHTS_SPLIT
from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.players import HOSTS, name_set
from resgym.kernels.cpu.rules import (
    absorb,
    draw_position,
    draw_start,
    integer,
    integers,
    observe_position,
    play_move,
    set_of_row,
    within,
)

_ALL_COORD = HOSTS.index("all_coord")
_WEIGHTS, _MARKED = WEIGHTS_SPLIT, MARKED_SPLIT


@inlined
def _reaches(dims, points, count, axis_mask, unit):
    """Whether the sum over a set, bit j for axis j, is at least a unit in every point."""
    for row in range(count):
        total = 0
        for axis in range(len(dims)):
            total += points[row, axis] & -((axis_mask >> axis) & 1)
        if total < unit:
            return False
    return True


@inlined
def is_over(dims, points, count, unit, weighted):
    """Whether the game is over."""
    if unit is not None:
        return not _reaches(dims, points, count, (1 << len(dims)) - 1, unit)
    if weighted is not None:
        return count <= 1 or points[points.shape[0] - 1, 0] < 0
    return count <= 1


@inlined
def may_name(dims, points, count, axis_mask, unit):
    """Whether the host may name a set that is large enough."""
    if unit is None:
        return True
    return _reaches(dims, points, count, axis_mask, unit)


@inlined
def answers(dims, points, axis_mask, weighted):
    """The axes of a set that the agent may choose, bit j for axis j."""
    if weighted is None:
        return axis_mask
    weights, chosen, least = points.shape[0] - 2, 0, 0
    for axis in range(len(dims)):
        weight = points[weights, axis]
        if not (axis_mask >> axis) & 1 or (chosen != 0 and weight > least):
            continue
        if weight < least:
            chosen = 0
        chosen, least = chosen | (1 << axis), weight
    return chosen


@inlined
def choose_set(dims, host, points, count, sets, key, unit):
    """As `name_set`, among the sets that are legal; with a unit for two of the hosts only."""
    if unit is None:
        return name_set(dims, host, points, count, sets, key)
    if host == _ALL_COORD:
        return sets[-1]
    legal = 0
    for index in range(sets.shape[0]):
        legal += np.int64(_reaches(dims, points, count, sets[index], unit))
    skip = integer(key, legal)
    index = 0
    while skip > 0 or not _reaches(dims, points, count, sets[index], unit):
        skip -= np.int64(_reaches(dims, points, count, sets[index], unit))
        index += 1
    return sets[index]


@inlined
def play(dims, points, count, axis_mask, axis, reposition, scratch, numbers, unit, weighted):
    """As `play_move`, in a game that is not over."""
    if unit is not None:
        # The unit goes off before the sum, which no set that is permissible makes negative.
        for row in range(count):
            points[row, axis] -= unit
        after = play_move(dims, points, count, axis_mask, axis, False, scratch, numbers)
        if after < 0:
            for row in range(count):
                points[row, axis] += unit
        return after
    if weighted is None:
        return play_move(dims, points, count, axis_mask, axis, reposition, scratch, numbers)
    after = play_move(dims, points, count, axis_mask, axis, False, scratch, numbers)
    if after >= 0:
        _carry(dims, points, after, axis_mask, axis, reposition)
    return after


@inlined
def _carry(dims, points, count, axis_mask, axis, reposition):
    """Lowers the weights, and moves the distinguished point or marks it as lost."""
    weights, marked = points.shape[0] - 2, points.shape[0] - 1
    total = 0
    for other in range(len(dims)):
        chosen = (axis_mask >> other) & 1
        total += points[marked, other] & -chosen
        if other != axis:
            points[weights, other] -= points[weights, axis] & -chosen
    points[marked, axis] = total
    found = False
    for row in range(count):
        equal = True
        for other in range(len(dims)):
            equal = equal and points[row, other] == points[marked, other]
        found = found or equal
    for other in range(len(dims)):
        least = 0
        if reposition:
            least = points[0, other]
            for row in range(1, count):
                least = min(least, points[row, other])
            for row in range(count):
                points[row, other] -= least
        points[marked, other] = points[marked, other] - least if found else -1


@inlined
def draw(dims, points, key, values, attempts, reposition, scratch, numbers, unit):
    """As `draw_start`; what is weighted gets its rows from `draw_extra` afterwards."""
    if unit is None:
        return draw_start(dims, points, key, values, attempts, reposition, scratch, numbers)
    all_axes = (1 << len(dims)) - 1
    for attempt in range(attempts):
        count = draw_position(dims, points, absorb(key, attempt), values, scratch, numbers)
        if _reaches(dims, points, count, all_axes, unit):
            return count
    # {(1, 0, ..), (0, 1, ..)} in units
    count = min(2, points.shape[0])
    for row in range(count):
        for axis in range(len(dims)):
            points[row, axis] = unit * np.int64(axis == row)
    return count


@inlined
def draw_extra(dims, points, count, key, numbers, weighted):
    """As `resgym.game.rules.draw_weights`; ``numbers`` int64 [D] or longer is overwritten."""
    if weighted is None:
        return
    dimension = len(dims)
    integers(absorb(key, _WEIGHTS), dimension, numbers[:dimension])
    row = integer(absorb(key, _MARKED), count)
    for axis in range(dimension):
        points[points.shape[0] - 2, axis] = numbers[axis] + 1
        points[points.shape[0] - 1, axis] = points[row, axis]


@inlined
def copy_extra(dims, source, target, weighted):
    """Copies the rows behind the points."""
    if weighted is None:
        return
    for row in range(source.shape[0] - 2, source.shape[0]):
        for axis in range(len(dims)):
            target[row, axis] = source[row, axis]


@inlined
def observe(dims, points, count, scale, seen, weighted):
    """As `observe_position`, with the rows behind the points."""
    observe_position(dims, points, count, scale, seen)
    if weighted is None:
        return
    weights, marked = points.shape[0] - 2, points.shape[0] - 1
    heaviest = largest = 1
    if scale:
        for axis in range(len(dims)):
            heaviest = max(heaviest, points[weights, axis])
            for row in range(count):
                largest = max(largest, points[row, axis])
    for axis in range(len(dims)):
        weight, value = np.float64(points[weights, axis]), points[marked, axis]
        seen[weights, axis] = np.float32(weight / np.float64(heaviest))
        shown = np.float64(value) / np.float64(largest) if value >= 0 else np.float64(-1)
        seen[marked, axis] = np.float32(shown)


@compiled
def move_games(points, count, coords, axis, reposition, overflow, moved, unit, weighted):
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
        position, before = points[game], within(count[game], points[game])
        if is_over(dims, position, before, unit, weighted):
            continue
        if not (answers(dims, position, axis_mask, weighted) >> chosen) & 1:
            continue
        if unit is None and axis_mask & (axis_mask - 1) == 0:
            continue
        if not may_name(dims, position, before, axis_mask, unit):
            continue
        after = play(
            dims, position, before, axis_mask, chosen, reposition, scratch, numbers, unit, weighted
        )
        if after < 0:
            overflow[game] = True
            continue
        moved[game] = True
        count[game] = after
        for row in range(after, before):
            for other in range(dimension):
                points[game, row, other] = -1
    return -1


@compiled
def draw_games(points, count, keys, values, attempts, reposition, unit):
    """Writes random unfinished positions; see `draw_start`, without what is weighted."""
    num_games, num_points, dimension = points.shape
    scratch = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_points * dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    for game in range(num_games):
        position, key = points[game], np.uint64(keys[game])
        drawn = draw(dims, position, key, values, attempts, reposition, scratch, numbers, unit)
        count[game] = drawn
        for row in range(drawn, num_points):
            for axis in range(dimension):
                points[game, row, axis] = -1
