"""The compiled part of the search: canonical forms and the loop, on int64 arrays, by numba.

All of it is one file because numba renews a cached function only when its own file changes. Row
functions work in place on the first ``size`` rows of ``rows`` (int64 [P, D]).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from resgym.game.plain import MAX_PERMUTATIONS
from resgym.solver.search_table import NO_TREE

__all__ = [
    "ACTIONS",
    "ANSWERS",
    "EXPANDED",
    "FULL",
    "POSITIONS",
    "SETTLED",
    "STACK",
    "TOO_LARGE",
    "WORDS",
    "advance",
    "insert",
    "rehash",
]

LARGEST = 2**58
"""Coordinates up to here can be added up over ten axes within int64."""

SETTLED, STOPPED, FULL, TOO_LARGE = 0, 1, 2, 3

# Indices into the array of counters.
POSITIONS, WORDS, ACTIONS, ANSWERS, STACK, EXPANDED = 0, 1, 2, 3, 4, 5

HASH_START = 0x2545F4914F6CDD1D
_MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64


@njit(cache=True)
def hash_rows(rows, size, seed):
    """A 64-bit hash of the rows; products wrap, as they must."""
    value = np.int64(seed)
    for p in range(size):
        for j in range(rows.shape[1]):
            value = (value ^ rows[p, j]) * np.int64(_MULTIPLIER)
            value ^= value >> 32
    return value


@njit(cache=True)
def _is_less(left, right):
    """Lexicographic order of two vectors of one length."""
    for j in range(left.shape[0]):
        if left[j] != right[j]:
            return left[j] < right[j]
    return False


@njit(cache=True)
def _sort_rows(rows, size):
    """Ascending lexicographic order, by insertion: positions are small and nearly sorted."""
    dimension = rows.shape[1]
    held = np.empty(dimension, np.int64)
    for p in range(1, size):
        if not _is_less(rows[p], rows[p - 1]):
            continue
        held[:] = rows[p]
        place = p
        while place > 0 and _is_less(held, rows[place - 1]):
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = held


@njit(cache=True)
def prune_rows(rows, size):
    """Sorts the rows and drops those that another row is <= to; returns how many are left."""
    _sort_rows(rows, size)
    kept = 0
    for p in range(size):
        covered = False
        for q in range(kept):
            below = True
            for j in range(rows.shape[1]):
                if rows[q, j] > rows[p, j]:
                    below = False
                    break
            if below:
                covered = True
                break
        if not covered:
            if kept != p:
                rows[kept] = rows[p]
            kept += 1
    return kept


@njit(cache=True)
def _reduce(rows, size):
    dimension = rows.shape[1]
    divisor = 0
    for j in range(dimension):
        lowest = rows[0, j]
        for p in range(1, size):
            lowest = min(lowest, rows[p, j])
        for p in range(size):
            rows[p, j] -= lowest
            other = rows[p, j]
            while other:
                divisor, other = other, divisor % other
    if divisor > 1:
        for p in range(size):
            for j in range(dimension):
                rows[p, j] //= divisor


@njit(cache=True)
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
        if pivot >= begin:
            swap = end - 1
            while order[swap] < order[pivot]:
                swap -= 1
            order[pivot], order[swap] = order[swap], order[pivot]
            order[pivot + 1 : end] = order[pivot + 1 : end][::-1].copy()
            return True
        # This group is through: back to its first order, and on with the group before it.
        order[begin:end] = order[begin:end][::-1].copy()
        end = begin
    return False


@njit(cache=True)
def canonical_rows(rows, size):
    """Brings pruned rows into the canonical form of `positions.canonical`; returns ``size``."""
    dimension = rows.shape[1]
    _reduce(rows, size)
    if size == 1:
        return size
    columns = np.empty((dimension, size), np.int64)
    order = np.empty(dimension, np.int64)
    for j in range(dimension):
        columns[j] = np.sort(rows[:size, j])
        place = j
        while place > 0 and _is_less(columns[j], columns[order[place - 1]]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    group_end = np.empty(dimension, np.int64)
    orders, begin = 1, 0
    for j in range(1, dimension + 1):
        if j == dimension or _is_less(columns[order[j - 1]], columns[order[j]]):
            group_end[begin:j] = j
            for length in range(2, j - begin + 1):
                orders = min(orders * length, MAX_PERMUTATIONS + 1)
            begin = j
    source = rows[:size].copy()
    trial = np.empty((size, dimension), np.int64)
    first = True
    while True:
        for p in range(size):
            for j in range(dimension):
                trial[p, j] = source[p, order[j]]
        _sort_rows(trial, size)
        better = first
        if not first:
            for p in range(size):
                if _is_less(trial[p], rows[p]):
                    better = True
                    break
                if _is_less(rows[p], trial[p]):
                    break
        if better:
            rows[:size] = trial
        first = False
        if orders == 1 or orders > MAX_PERMUTATIONS or not _next_order(order, group_end):
            return size


@njit(cache=True)
def _find(rows, size, remaining, hashed, coords, start, count, left, hashes, slots):
    """The number of a position, or -1 - (the free slot) where it belongs."""
    mask = slots.shape[0] - 1
    slot = hashed & mask
    dimension = rows.shape[1]
    while slots[slot] >= 0:
        number = slots[slot]
        if hashes[number] == hashed and count[number] == size and left[number] == remaining:
            at = start[number]
            same = True
            for p in range(size):
                for j in range(dimension):
                    if coords[at + p * dimension + j] != rows[p, j]:
                        same = False
            if same:
                return number
        slot = (slot + 1) & mask
    return -1 - slot


@njit(cache=True)
def insert(
    rows, size, remaining, by_depth, cut_cost, counters,
    coords, start, count, left, hashes, lower, settled, first_action, slots,
):  # fmt: skip
    """The number of a canonical position, which is added if it is new. There must be room."""
    hashed = hash_rows(rows, size, remaining + HASH_START)
    number = _find(rows, size, remaining, hashed, coords, start, count, left, hashes, slots)
    if number >= 0:
        return number
    slot = -1 - number
    number = counters[POSITIONS]
    slots[slot] = number
    at = counters[WORDS]
    dimension = rows.shape[1]
    for p in range(size):
        for j in range(dimension):
            coords[at + p * dimension + j] = rows[p, j]
    start[number] = at
    count[number] = size
    left[number] = remaining
    hashes[number] = hashed
    first_action[number] = -1
    settled[number] = size == 1 or remaining == 0
    if size == 1:
        lower[number] = 0 if by_depth else 1
    elif remaining == 0:
        lower[number] = cut_cost
    else:
        lower[number] = 1 if by_depth else 3
    counters[POSITIONS] += 1
    counters[WORDS] += size * dimension
    return number


@njit(cache=True)
def rehash(slots, hashes, positions):
    """Fills empty slots with the numbers of all positions."""
    mask = slots.shape[0] - 1
    for number in range(positions):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@njit(cache=True)
def _same_action(action, begin, size, action_start, action_end, answers):
    if action_end[action] - action_start[action] != size:
        return False
    first = action_start[action]
    return np.array_equal(answers[first : first + size], answers[begin : begin + size])


@njit(cache=True)
def _expand(
    number, sets, by_depth, cut_cost, counters, coords, start, count, left, hashes, lower,
    settled, first_action, last_action, slots, action_start, action_end, answers,
):  # fmt: skip
    """Generates the moves of a position."""
    dimension = sets.shape[1]
    size, at = count[number], start[number]
    after = left[number] - 1 if left[number] > 0 else -1
    rows = np.empty((size, dimension), np.int64)
    first_action[number] = counters[ACTIONS]
    for s in range(sets.shape[0]):
        begin = counters[ANSWERS]
        end = begin
        for axis in range(dimension):
            if not sets[s, axis]:
                continue
            for p in range(size):
                total = 0
                for j in range(dimension):
                    value = coords[at + p * dimension + j]
                    rows[p, j] = value
                    if sets[s, j]:
                        total += value
                rows[p, axis] = total
            kept = canonical_rows(rows, prune_rows(rows, size))
            answer = insert(
                rows, kept, after, by_depth, cut_cost, counters,
                coords, start, count, left, hashes, lower, settled, first_action, slots,
            )  # fmt: skip
            # Kept in order; a maximum needs each answer once, a sum as often as it occurs.
            place = end
            while place > begin and answers[place - 1] > answer:
                place -= 1
            if by_depth and place > begin and answers[place - 1] == answer:
                continue
            for k in range(end, place, -1):
                answers[k] = answers[k - 1]
            answers[place] = answer
            end += 1
        useful = True
        for k in range(begin, end):
            if answers[k] == number:
                useful = False
        for action in range(first_action[number], counters[ACTIONS]):
            if useful and _same_action(
                action, begin, end - begin, action_start, action_end, answers
            ):
                useful = False
        if useful:
            action_start[counters[ACTIONS]] = begin
            action_end[counters[ACTIONS]] = end
            counters[ACTIONS] += 1
            counters[ANSWERS] = end
    last_action[number] = counters[ACTIONS]
    counters[EXPANDED] += 1


@njit(cache=True)
def advance(
    root, expansions, steps, sets, num_answers, by_depth, cut_cost, counters, coords, start, count,
    left, hashes, lower, settled, first_action, last_action, slots, action_start, action_end,
    answers, stack,
):  # fmt: skip
    """Searches on; see `search_table.PythonSearch.advance`.

    Returns:
        why it stopped, and the steps that are left.
    """
    dimension = sets.shape[1]
    while not settled[root]:
        if counters[STACK] == 0:
            stack[0] = root
            counters[STACK] = 1
        if counters[STACK] + 1 >= stack.shape[0]:
            return FULL, steps
        if steps <= 0:
            return STOPPED, steps
        top = stack[counters[STACK] - 1]
        if first_action[top] < 0:
            if counters[EXPANDED] >= expansions:
                return STOPPED, steps
            if (
                counters[WORDS] + num_answers * count[top] * dimension > coords.shape[0]
                or counters[POSITIONS] + num_answers > start.shape[0]
                or counters[ACTIONS] + sets.shape[0] > action_start.shape[0]
                or counters[ANSWERS] + num_answers > answers.shape[0]
                or 2 * (counters[POSITIONS] + num_answers) > slots.shape[0]
            ):
                return FULL, steps
            for k in range(start[top], start[top] + count[top] * dimension):
                if coords[k] > LARGEST:
                    return TOO_LARGE, steps
            _expand(
                top, sets, by_depth, cut_cost, counters, coords, start, count, left, hashes, lower,
                settled, first_action, last_action, slots, action_start, action_end, answers,
            )  # fmt: skip
        steps -= 1
        least, best = NO_TREE, -1
        for action in range(first_action[top], last_action[top]):
            cost = 0
            for k in range(action_start[action], action_end[action]):
                value = lower[answers[k]]
                if by_depth:
                    cost = max(cost, value)
                else:
                    cost += value
            if cost + 1 < least:
                least, best = cost + 1, action
        if best < 0 or least > lower[top]:
            lower[top] = least
            settled[top] = best < 0
            counters[STACK] -= 1
            continue
        pushed = False
        for k in range(action_start[best], action_end[best]):
            if not settled[answers[k]]:
                stack[counters[STACK]] = answers[k]
                counters[STACK] += 1
                pushed = True
                break
        if not pushed:
            settled[top] = True
            counters[STACK] -= 1
    return SETTLED, steps
