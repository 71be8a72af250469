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
from resgym.solver.bounds import edge_moves, is_covered, shared_nodes

LARGEST = 2**55
"""Differences of coordinates up to here and sums over ten axes are exact in int64."""


class Room(NamedTuple):
    """Memory of one search.

    Attributes:
        rows: int64 [3, P, D], positions: `ROOT`, `HERE` and `THERE`.
        columns: int64 [D, P], of each axis the coordinates, or the points, in ascending order.
        pairs: int64 [D, D], values of projections to two axes.
        axes: int64 [5, D], by axis: `ORDER`, `GROUP_END`, `ACTIVE`, `CHOSEN` and `BESIDE`.
        words: int64 [3, P (D + 2)], `KEY`, `TRIAL` and `LIST`.
    """

    rows: Any
    columns: Any
    pairs: Any
    axes: Any
    words: Any


_edge_moves, _shared_nodes = inlined(edge_moves), inlined(shared_nodes)
_is_covered = inlined(is_covered)

ROOT, HERE, THERE = 0, 1, 2
ORDER, GROUP_END, ACTIVE, CHOSEN, BESIDE = 0, 1, 2, 3, 4
KEY, TRIAL, LIST = 0, 1, 2


@inlined
def copy(points, size, rows):
    """Copies points."""
    for p in range(size):
        for j in range(points.shape[1]):
            rows[p, j] = points[p, j]


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
def drop_covered(room, rows, size):
    """Leaves only what `outer` keeps of reduced points; how many these are."""
    covered, kept = room.words[TRIAL], 0
    for p in range(size):
        covered[p] = 0
        alone = False
        for j in range(rows.shape[1]):
            if rows[p, j] == 0:
                lowest = 0
                for q in range(size):
                    lowest += rows[q, j] == 0
                alone = alone or lowest == 1
        # Where no other point is as low on an axis, no segment is.
        for q in range(0 if alone else size):
            for r in range(q):
                if covered[p] == 0 and p != q and p != r:
                    covered[p] = _is_covered(rows[p], rows[q], rows[r])
    for p in range(size):
        if covered[p] == 0:
            for j in range(rows.shape[1]):
                rows[kept, j] = rows[p, j]
            kept += 1
    return kept


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
                for k in range(size * dimension):
                    key[k] = trial[k]


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
def _moves_of_polygon(room, order, left, right, size, by_sum):
    """See `resgym.solver.bounds`; the order of the points is that by ``left``."""
    x, y = room.words[TRIAL], room.words[LIST]
    kept = 0
    for k in range(size):
        a, b = left[order[k]], right[order[k]]
        if kept > 0 and y[kept - 1] <= b:
            continue
        if kept > 0 and x[kept - 1] == a:
            kept -= 1
        # A vertex goes if the way to it falls no steeper than the way on from it.
        while kept > 1 and not _is_steeper(
            y[kept - 2] - y[kept - 1], x[kept - 1] - x[kept - 2], y[kept - 1] - b, a - x[kept - 1]
        ):
            kept -= 1
        x[kept], y[kept] = a, b
        kept += 1
    total = 0
    for k in range(1, kept):
        a, b = x[k] - x[k - 1], y[k - 1] - y[k]
        if by_sum and k > 1:
            total -= _shared_nodes(x[k - 1] - x[k - 2], y[k - 2] - y[k - 1], a, b)
        moves = _edge_moves(a, b)
        total = total + moves if by_sum else max(total, moves)
    return total


@inlined
def moves_of(room, rows, size, by_sum):
    """Moves of the projections of an unfinished position to two axes, the most and their sum.

    Those of each, see `Goal.at_least`, and the order of the points on every axis stay in the room.
    """
    active, columns = room.axes[ACTIVE], room.columns
    best, total = 1, 0
    for i in range(rows.shape[1]):
        active[i] = 0
        # Rows descend, mostly.
        for p in range(size):
            value, place = rows[size - 1 - p, i], p
            active[i] |= value
            while place > 0 and rows[columns[i, place - 1], i] > value:
                columns[i, place] = columns[i, place - 1]
                place -= 1
            columns[i, place] = size - 1 - p
        for j in range(i):
            if active[i] != 0 and active[j] != 0:
                room.pairs[i, j] = _moves_of_polygon(
                    room, columns[j], rows[:, j], rows[:, i], size, by_sum
                )
                best, total = max(best, room.pairs[i, j]), total + room.pairs[i, j]
    return best, total


@inlined
def add_up(room, rows, size, axes, by_sum):
    """Prepares `moves_after` for a set, after `moves_of`; False if a sum is too large."""
    sums = room.words[KEY]
    largest, lowest = 0, 2**62
    for p in range(size):
        sums[p] = 0
        for j in range(rows.shape[1]):
            sums[p] += rows[p, j] & -((axes >> j) & 1)
        largest, lowest = max(largest, sums[p]), min(lowest, sums[p])
    for p in range(size):
        sums[p] -= lowest
    for j in range(rows.shape[1]):
        if room.axes[ACTIVE][j] != 0:
            room.axes[BESIDE][j] = _moves_of_polygon(
                room, room.columns[j], rows[:, j], sums, size, by_sum
            )
    return largest - lowest <= LARGEST


@inlined
def moves_after(room, rows, size, axis):
    """As `moves_of` the position in which the sums take the place of an axis; 0 if finished."""
    active = room.axes[ACTIVE]
    best = 1
    for i in range(rows.shape[1]):
        if i != axis and active[i] != 0:
            best = max(best, room.axes[BESIDE][i])
            for j in range(i):
                if j != axis and active[j] != 0:
                    best = max(best, room.pairs[i, j])
    if best == 1:
        for p in range(size):
            # A point that is least on all axes is the only one left.
            height = room.words[KEY][p]
            for j in range(rows.shape[1]):
                height |= rows[p, j] if j != axis else 0
            if height == 0:
                return 0
    return best
