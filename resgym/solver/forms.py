"""Compiled: canonical forms of positions, and lower bounds that need no search.

Positions being worked on are int64 [P, D] of which the first ``size`` rows count. `Room` is memory
to work in. What is computed is said in `resgym.game.plain` and `resgym.solver.bounds`, which do the
same on plain integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resgym.game.plain import MAX_PERMUTATIONS
from resgym.kernels.cpu.compilation import inlined
from resgym.kernels.cpu.rules import absorb
from resgym.solver.bounds import edge_moves, shared_nodes

LARGEST = 2**55
"""Differences of coordinates up to here and sums over ten axes are exact in int64."""


class Room(NamedTuple):
    """Memory of one search.

    Attributes:
        rows: int64 [3, P, D], positions: `ROOT`, `HERE` and `THERE`.
        columns: int64 [D, P].
        pairs: int64 [D, D], values of projections to two axes.
        axes: int64 [4, D], numbers of axes: `ORDER`, `GROUP_END`, `ACTIVE` and `CHOSEN`.
        words: int64 [3, P (D + 2)], `KEY`, `TRIAL` and `LIST`.
    """

    rows: Any
    columns: Any
    pairs: Any
    axes: Any
    words: Any


_edge_moves, _shared_nodes = inlined(edge_moves), inlined(shared_nodes)

ROOT, HERE, THERE = 0, 1, 2
ORDER, GROUP_END, ACTIVE, CHOSEN = 0, 1, 2, 3
KEY, TRIAL, LIST = 0, 1, 2


@inlined
def reduce(rows, size):
    """Moves the points to the origin and divides by their divisor; returns the largest value."""
    dimension = rows.shape[1]
    divisor, largest = 0, 0
    for j in range(dimension):
        lowest = rows[0, j]
        for p in range(1, size):
            lowest = min(lowest, rows[p, j])
        for p in range(size):
            value = rows[p, j] - lowest
            rows[p, j] = value
            largest = max(largest, value)
            if divisor != 1:
                while value:
                    divisor, value = value, divisor % value
    if divisor > 1:
        for p in range(size):
            for j in range(dimension):
                rows[p, j] //= divisor
        largest //= divisor
    return largest


@inlined
def compare(left, right, size):
    """-1, 0 or 1: lexicographic order of two vectors."""
    for index in range(size):
        if left[index] != right[index]:
            return -1 if left[index] < right[index] else 1
    return 0


@inlined
def _sort(values, size):
    for p in range(1, size):
        held = values[p]
        place = p
        while place > 0 and values[place - 1] > held:
            values[place] = values[place - 1]
            place -= 1
        values[place] = held


@inlined
def _next_order(order, group_end):
    """Next order of the axes with every group of equal axes permuted; False after the last."""
    end = order.shape[0]
    while end > 0:
        begin = end - 1
        while begin > 0 and group_end[begin - 1] == group_end[end - 1]:
            begin -= 1
        pivot = end - 2
        while pivot >= begin and order[pivot] > order[pivot + 1]:
            pivot -= 1
        first = begin
        if pivot >= begin:
            swap = end - 1
            while order[swap] < order[pivot]:
                swap -= 1
            order[pivot], order[swap] = order[swap], order[pivot]
            first = pivot + 1
        # Behind the pivot, or in a group that is through, back to ascending order.
        last = end - 1
        while first < last:
            order[first], order[last] = order[last], order[first]
            first += 1
            last -= 1
        if pivot >= begin:
            return True
        end = begin
    return False


@inlined
def write_rows(rows, size, order, words):
    """The points in an order of the axes, in ascending order, one word after the other."""
    dimension = rows.shape[1]
    for p in range(size):
        place = p * dimension
        for j in range(dimension):
            words[place + j] = rows[p, order[j]]
        while place > 0:
            before = place - dimension
            if compare(words[before:place], words[place : place + dimension], dimension) <= 0:
                break
            for j in range(place, place + dimension):
                words[j - dimension], words[j] = words[j], words[j - dimension]
            place = before


@inlined
def canonical_key(room, rows, size):
    """Writes the canonical form of reduced rows to `KEY`, as ascending points."""
    dimension = rows.shape[1]
    columns, order, group_end = room.columns, room.axes[ORDER], room.axes[GROUP_END]
    key, trial = room.words[KEY], room.words[TRIAL]
    for j in range(dimension):
        for p in range(size):
            columns[j, p] = rows[p, j]
        _sort(columns[j], size)
        place = j
        while place > 0 and compare(columns[j], columns[order[place - 1]], size) < 0:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    orders, begin = 1, 0
    for j in range(1, dimension + 1):
        if j == dimension or compare(columns[order[j - 1]], columns[order[j]], size) != 0:
            # Axes that are 0 throughout need no other order.
            tied = columns[order[begin], size - 1] > 0
            for k in range(begin, j):
                group_end[k] = j if tied else k + 1
                if tied:
                    orders = min(orders * (k + 1 - begin), MAX_PERMUTATIONS + 1)
            begin = j
    write_rows(rows, size, order, key)
    if 1 < orders <= MAX_PERMUTATIONS:
        while _next_order(order, group_end):
            write_rows(rows, size, order, trial)
            if compare(trial, key, size * dimension) < 0:
                key[: size * dimension] = trial[: size * dimension]


@inlined
def unpack(words, start, size, rows):
    """The points of a key, in descending order."""
    dimension = rows.shape[1]
    for p in range(size):
        for j in range(dimension):
            rows[size - 1 - p, j] = words[start + p * dimension + j]


@inlined
def hash_of(words, length, seed):
    """A 64-bit hash of words."""
    value = absorb(np.uint64(seed), length)
    for k in range(length):
        value = absorb(value, words[k])
    return np.int64(value)


@inlined
def _is_steeper(a, b, c, d):
    """Whether a / b > c / d, of numbers up to 2^55, b and d positive."""
    left, right = np.float64(a) * np.float64(d), np.float64(c) * np.float64(b)
    if abs(left - right) > 1e-15 * (left + right):
        return left > right
    # So close that the difference fits, though the products wrap.
    return a * d - c * b > 0


@inlined
def _hull(left, right, size):
    """Keeps the vertices of a Newton polygon, with ascending ``left``; returns their number."""
    for p in range(1, size):
        x, y = left[p], right[p]
        place = p
        while place > 0 and (
            left[place - 1] > x or (left[place - 1] == x and right[place - 1] > y)
        ):
            left[place], right[place] = left[place - 1], right[place - 1]
            place -= 1
        left[place], right[place] = x, y
    kept = 0
    for p in range(size):
        x, y = left[p], right[p]
        if kept > 0 and right[kept - 1] <= y:
            continue
        # A vertex goes if the way to it falls no steeper than the way on from it.
        while kept > 1 and not _is_steeper(
            right[kept - 2] - right[kept - 1],
            left[kept - 1] - left[kept - 2],
            right[kept - 1] - y,
            x - left[kept - 1],
        ):
            kept -= 1
        left[kept], right[kept] = x, y
        kept += 1
    return kept


@inlined
def _value_of_polygon(left, right, size, by_depth):
    """The value of points in two axes, which are overwritten."""
    size = _hull(left, right, size)
    value = 0
    for k in range(1, size):
        a, b = left[k] - left[k - 1], right[k - 1] - right[k]
        if not by_depth and k > 1:
            value -= _shared_nodes(left[k - 1] - left[k - 2], right[k - 2] - right[k - 1], a, b)
        moves = _edge_moves(a, b)
        value = max(value, moves) if by_depth else value + moves
    return value if by_depth else 1 + 2 * value


@inlined
def bound_of(room, rows, size, by_depth, axis):
    """The lower bound that the projections of an unfinished position to two axes give.

    ``axis`` is -1; or the axis by which the position differs from the one that this function was
    last called for with -1, the values of whose other projections are then taken over. Returns the
    bound, and with -1 how many axes are not 0 throughout: with two it is the value.
    """
    left, right = room.words[TRIAL], room.words[LIST]
    active = room.axes[ACTIVE]
    if axis < 0:
        for j in range(rows.shape[1]):
            active[j] = 0
            for p in range(size):
                active[j] |= rows[p, j]
    best, number = 1 if by_depth else 3, 0
    for i in range(rows.shape[1]):
        if active[i] == 0:
            continue
        number += 1
        for j in range(i):
            if active[j] == 0:
                continue
            value = room.pairs[i, j]
            if axis in (-1, i, j):
                for p in range(size):
                    # Rows descend, mostly.
                    left[size - 1 - p], right[size - 1 - p] = rows[p, j], rows[p, i]
                value = _value_of_polygon(left, right, size, by_depth)
                if axis < 0:
                    room.pairs[i, j] = value
            best = max(best, value)
    return best, number
