"""The compiled part of `resgym.solver.labels`: canonical forms and a search shared by many roots.

All of it is one file, because the cache of a compiled function knows its own file and
`resgym.kernels` alone. Positions being worked on are int64 [P, D] of which the first ``size`` rows
count, in any order. Positions of the table are kept as keys: canonical points in ascending order, a
word a point where the coordinates fit into 62 bits together, else a word a coordinate. Keys are
compared in full, so equal hashes do no harm.

The search is that of `resgym.solver.search_table` with three differences. What ends within one
move (and, for the depth, two) is seen without a table, by `ending_set` and `_ends_within_two`. The
table serves all positions of a batch. And a search can stop once a bound has passed a threshold,
because which moves are optimal needs no more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined

__all__ = [
    "OUT_OF_BUDGET",
    "SOLVED",
    "TOO_LARGE",
    "Table",
    "canonical_batch",
    "clear",
    "label_agent",
    "label_host",
    "new_members",
]

SOLVED, OUT_OF_BUDGET, TOO_LARGE = 0, 1, 2
"""Why the labelling of a position ended."""

_FULL = 3

_LARGEST = 2**55
"""Coordinates up to here can be added up over the axes three times in a row within int64."""

_NO_LIMIT = 2**40

_STEPS_PER_EXPANSION = 100
"""As in `search_table`: a bound on the work of a position besides its expansions."""

# Indices into the array of counters.
POSITIONS, WORDS, ACTIONS, ANSWERS, EXPANDED = 0, 1, 2, 3, 4
NUM_COUNTERS = 5

_RESERVED = 5
"""Entries 0 to 4 of the table are no positions: entry 0 stands for everything finished, entry n for
everything that the choice of some n axes finishes at once (n = 2, 3, 4; for the depth always 2)."""

_MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64
_MIX_1 = 0xBF58476D1CE4E5B9 - 2**64
_MIX_2 = 0x94D049BB133111EB - 2**64
_HASH_START = 0x2545F4914F6CDD1D
_OTHER_START = 0x61C8864680B583EB


class Table(NamedTuple):
    """A table of positions and the room that the work on one needs.

    A bound is twice the proved lower bound, plus 1 if it is the value.

    Attributes:
        by_depth: bool [1], whether the objective is the depth.
        sets: int64 [A], the host's sets in the order of the search, bit j for axis j.
        host_sets: int64 [A], in the order of the environments' actions.
        counters: int64 [5].
        words: int64 [W], keys one after the other.
        start: int64 [C], where a position's key begins.
        size: int32 [C], points of a position.
        width: int32 [C], words a point.
        hashes: int64 [C].
        bounds: int64 [C].
        first_action: int64 [C], -1 while a position is not expanded.
        last_action: int64 [C].
        slots: int32 [S], S a power of two: positions by hash, -1 in free ones.
        action_start: int64 [M], where an action's answers begin.
        action_end: int64 [M].
        answers: int32 [B], positions.
        stack: int64 [K].
        root, here, there, below, last: int64 [P, D].
        columns: int64 [D, P].
        order, group_end, lowest, powers: int64 [D].
        key, trial: int64 [P D].
        chosen: int64 [D], answers to the set that is looked at.
    """

    by_depth: Any
    sets: Any
    host_sets: Any
    counters: Any
    words: Any
    start: Any
    size: Any
    width: Any
    hashes: Any
    bounds: Any
    first_action: Any
    last_action: Any
    slots: Any
    action_start: Any
    action_end: Any
    answers: Any
    stack: Any
    root: Any
    here: Any
    there: Any
    below: Any
    last: Any
    columns: Any
    order: Any
    group_end: Any
    lowest: Any
    powers: Any
    key: Any
    trial: Any
    chosen: Any


@inlined
def _play(rows, size, axes, axis, out):
    """The minimal points after a move, in any order; returns their number."""
    dimension = rows.shape[1]
    kept = 0
    for p in range(size):
        total = 0
        for j in range(dimension):
            value = rows[p, j]
            out[kept, j] = value
            total += value & -((axes >> j) & 1)
        out[kept, axis] = total
        covered = False
        q = 0
        while q < kept:
            below = above = True
            for j in range(dimension):
                one, other = out[q, j], out[kept, j]
                below &= one <= other
                above &= other <= one
            if below:
                covered = True
                break
            if above:
                # The new point takes the place of q, and stays the last one for the others.
                for j in range(dimension):
                    out[q, j] = out[kept - 1, j]
                    out[kept - 1, j] = out[kept, j]
                kept -= 1
            else:
                q += 1
        if not covered:
            kept += 1
    return kept


@inlined
def ending_set(rows, size, lowest, powers):
    """The size of the smallest set of axes that ends the game at once; 0 if there is none.

    Seen from the corner of least coordinates, the point that is left after axis i lies on axis i:
    at a_i, say. That it is <= every point means that no point has a sum over the set below a_i, and
    the points on the other axes of the set are among them: so all a_i of the set are equal, and no
    point has a smaller sum.
    """
    dimension = rows.shape[1]
    for j in range(dimension):
        least = rows[0, j]
        for p in range(1, size):
            least = min(least, rows[p, j])
        lowest[j] = least
        powers[j] = 0
    found = 0
    for p in range(size):
        axis, others = 0, 0
        for j in range(dimension):
            if rows[p, j] > lowest[j]:
                axis = j
                others += 1
        if others == 1:
            powers[axis] = rows[p, axis] - lowest[axis]
            found += 1
    if found < 2:
        return 0
    best = 0
    for axes in range(3, 1 << dimension):
        power = number = 0
        same = True
        for j in range(dimension):
            if (axes >> j) & 1:
                number += 1
                if number == 1:
                    power = powers[j]
                same &= powers[j] == power
        if number < 2 or power == 0 or not same or (best > 0 and number >= best):
            continue
        ends = True
        for p in range(size):
            total = 0
            for j in range(dimension):
                total += (rows[p, j] - lowest[j]) & -((axes >> j) & 1)
            if total < power:
                ends = False
                break
        if ends:
            best = number
    return best


@inlined
def _ends_within_two(table, rows, size):
    """Whether a set leads to positions all of which end within one more move."""
    for s in range(table.sets.shape[0]):
        axes = table.sets[s]
        ends = True
        for axis in range(rows.shape[1]):
            if (axes >> axis) & 1:
                after = _play(rows, size, axes, axis, table.last)
                if after > 1 and ending_set(table.last, after, table.lowest, table.powers) == 0:
                    ends = False
                    break
        if ends:
            return True
    return False


@inlined
def _reduce(rows, size):
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
def _sort(values, size):
    for p in range(1, size):
        held = values[p]
        place = p
        while place > 0 and values[place - 1] > held:
            values[place] = values[place - 1]
            place -= 1
        values[place] = held


@inlined
def _compare(left, right, size):
    """-1, 0 or 1: lexicographic order of two vectors."""
    for index in range(size):
        if left[index] != right[index]:
            return -1 if left[index] < right[index] else 1
    return 0


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
def _write_trial(rows, size, order, bits, wide, trial):
    """The points in an order of the axes, sorted, as words; returns how many."""
    dimension = rows.shape[1]
    if not wide:
        for p in range(size):
            word = 0
            for j in range(dimension):
                word = (word << bits) | rows[p, order[j]]
            trial[p] = word
        _sort(trial, size)
        return size
    for p in range(size):
        place = p * dimension
        for j in range(dimension):
            trial[place + j] = rows[p, order[j]]
        while place > 0:
            before = place - dimension
            if _compare(trial[before:place], trial[place : place + dimension], dimension) <= 0:
                break
            for j in range(place, place + dimension):
                trial[j - dimension], trial[j] = trial[j], trial[j - dimension]
            place = before
    return size * dimension


@inlined
def _canonical_key(table, rows, size):
    """Reduces the rows and writes `positions.canonical` of them to ``table.key``.

    Returns:
        words a point, 1 or D; 0 if a coordinate is too large.
    """
    largest = _reduce(rows, size)
    if largest > _LARGEST:
        return 0
    dimension = rows.shape[1]
    bits = 62 // dimension
    wide = largest >= (1 << bits)
    columns, order, group_end = table.columns, table.order, table.group_end
    for j in range(dimension):
        for p in range(size):
            columns[j, p] = rows[p, j]
        _sort(columns[j], size)
        place = j
        while place > 0 and _compare(columns[j], columns[order[place - 1]], size) < 0:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j
    begin, tied = 0, False
    for j in range(1, dimension + 1):
        if j == dimension or _compare(columns[order[j - 1]], columns[order[j]], size) != 0:
            for k in range(begin, j):
                group_end[k] = j
            tied |= j > begin + 1
            begin = j
    length = _write_trial(rows, size, order, bits, wide, table.key)
    while tied and _next_order(order, group_end):
        _write_trial(rows, size, order, bits, wide, table.trial)
        if _compare(table.trial, table.key, length) < 0:
            for k in range(length):
                table.key[k] = table.trial[k]
    return dimension if wide else 1


@inlined
def _unpack(words, start, size, width, rows):
    """The points of a key."""
    dimension = rows.shape[1]
    if width > 1:
        for p in range(size):
            for j in range(dimension):
                rows[p, j] = words[start + p * dimension + j]
        return
    bits = 62 // dimension
    for p in range(size):
        word = words[start + p]
        for j in range(dimension - 1, -1, -1):
            rows[p, j] = word & ((1 << bits) - 1)
            word >>= bits


@inlined
def _mix(value):
    value = (value ^ ((value >> 30) & 0x3FFFFFFFF)) * np.int64(_MIX_1)
    value = (value ^ ((value >> 27) & 0x1FFFFFFFFF)) * np.int64(_MIX_2)
    return value ^ ((value >> 31) & 0x1FFFFFFFF)


@inlined
def _hash(key, length, start):
    """A 64-bit hash of words; products wrap, as they must."""
    value = np.int64(start) + length
    for k in range(length):
        value = (value ^ key[k]) * np.int64(_MULTIPLIER)
        value ^= (value >> 32) & 0xFFFFFFFF
    return _mix(value)


@inlined
def _position_of(table, rows, size):
    """The number of a position, which is added if it is new; there must be room.

    The rows are reduced. The number is -1 if a coordinate is too large.
    """
    by_depth = table.by_depth[0]
    if size == 1:
        return 0
    ending = ending_set(rows, size, table.lowest, table.powers)
    if ending > 0 and by_depth:
        return 2
    if 0 < ending < _RESERVED:
        return ending
    width = _canonical_key(table, rows, size)
    if width == 0:
        return -1
    length = size * width
    key = table.key
    hashed = _hash(key, length, _HASH_START)
    mask = table.slots.shape[0] - 1
    slot = hashed & mask
    while table.slots[slot] >= 0:
        number = table.slots[slot]
        if (
            table.hashes[number] == hashed
            and table.size[number] == size
            and table.width[number] == width
        ):
            at = table.start[number]
            same = True
            for k in range(length):
                if table.words[at + k] != key[k]:
                    same = False
                    break
            if same:
                return np.int64(number)
        slot = (slot + 1) & mask
    number = table.counters[POSITIONS]
    table.slots[slot] = number
    at = table.counters[WORDS]
    for k in range(length):
        table.words[at + k] = key[k]
    table.start[number] = at
    table.size[number] = size
    table.width[number] = width
    table.hashes[number] = hashed
    table.first_action[number] = -1
    if not by_depth:
        # A pair of axes, one answer finished, the other one a tree of three: the least there is.
        table.bounds[number] = 2 * 5
    elif _ends_within_two(table, rows, size):
        table.bounds[number] = 2 * 2 + 1
    else:
        table.bounds[number] = 2 * 3
    table.counters[POSITIONS] += 1
    table.counters[WORDS] += length
    return number


@inlined
def _has_room(table, size, new):
    counters = table.counters
    return (
        counters[WORDS] + new * size * table.root.shape[1] <= table.words.shape[0]
        and counters[POSITIONS] + new <= table.start.shape[0]
        and counters[ACTIONS] + table.sets.shape[0] <= table.action_start.shape[0]
        and counters[ANSWERS] + new <= table.answers.shape[0]
    )


@inlined
def _expand(table, number):
    """Generates the moves of a position; False if a coordinate is too large."""
    by_depth = table.by_depth[0]
    counters, answers = table.counters, table.answers
    size = np.int64(table.size[number])
    _unpack(table.words, table.start[number], size, table.width[number], table.here)
    first = counters[ACTIONS]
    for s in range(table.sets.shape[0]):
        axes = table.sets[s]
        begin = counters[ANSWERS]
        end = begin
        useful = True
        for axis in range(table.here.shape[1]):
            if not (axes >> axis) & 1:
                continue
            after = _play(table.here, size, axes, axis, table.there)
            answer = _position_of(table, table.there, after)
            if answer < 0:
                return False
            if answer == number:
                useful = False
                break
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
        for action in range(first, counters[ACTIONS]):
            if useful and table.action_end[action] - table.action_start[action] == end - begin:
                same = True
                for k in range(end - begin):
                    same &= answers[table.action_start[action] + k] == answers[begin + k]
                useful = not same
        if useful:
            table.action_start[counters[ACTIONS]] = begin
            table.action_end[counters[ACTIONS]] = end
            counters[ACTIONS] += 1
            counters[ANSWERS] = end
    table.first_action[number] = first
    table.last_action[number] = counters[ACTIONS]
    counters[EXPANDED] += 1
    return True


@inlined
def _advance(table, root, threshold, limit, steps):
    """Searches until a position is settled or its bound is above a threshold.

    Args:
        table: the table.
        root: the position's number.
        threshold: the largest value of interest.
        limit: stop when so many positions have been expanded in all.
        steps: and after so many steps.

    Returns:
        `SOLVED`, or why it stopped; and the steps that are left.
    """
    by_depth = table.by_depth[0]
    bounds, stack, answers = table.bounds, table.stack, table.answers
    num_answers = table.root.shape[1] * table.sets.shape[0]
    height = 0
    while bounds[root] & 1 == 0 and bounds[root] >> 1 <= threshold:
        if height == 0:
            stack[0] = root
            height = 1
        if height + 1 >= stack.shape[0] or steps <= 0:
            return OUT_OF_BUDGET, steps
        top = stack[height - 1]
        if table.first_action[top] < 0:
            if table.counters[EXPANDED] >= limit:
                return OUT_OF_BUDGET, steps
            if not _has_room(table, table.size[top], num_answers):
                return _FULL, steps
            if not _expand(table, top):
                return TOO_LARGE, steps
        steps -= 1
        least, best = _NO_LIMIT, -1
        for action in range(table.first_action[top], table.last_action[top]):
            cost = 1
            for k in range(table.action_start[action], table.action_end[action]):
                value = bounds[answers[k]] >> 1
                if by_depth:
                    cost = max(cost, 1 + value)
                else:
                    cost += value
            if cost < least:
                least, best = cost, action
        if best < 0 or least > bounds[top] >> 1:
            bounds[top] = 2 * least + (best < 0)
            height -= 1
            continue
        # The answer that looks worst is the likeliest to show that the set is no good. Of several
        # any, but not always that of the same axis: the bits of the hash save a fifth of the work.
        worst, weight = np.int64(-1), np.int64(-1)
        for k in range(table.action_start[best], table.action_end[best]):
            answer = np.int64(answers[k])
            if bounds[answer] & 1 == 0:
                looks = (bounds[answer] << 10) + (table.hashes[answer] & 1023)
                if looks > weight:
                    worst, weight = answer, looks
        if worst < 0:
            bounds[top] |= 1
            height -= 1
        else:
            stack[height] = worst
            height += 1
    return SOLVED, steps


@inlined
def _answers_to(table, size, axes):
    """Numbers of the positions after a set, by axis, to ``table.chosen``; False if too large."""
    for axis in range(table.root.shape[1]):
        table.chosen[axis] = -1
        if (axes >> axis) & 1:
            after = _play(table.root, size, axes, axis, table.below)
            number = _position_of(table, table.below, after)
            if number < 0:
                return False
            table.chosen[axis] = number
    return True


@inlined
def _cost(table):
    """One plus the greatest bound, or the sum of bounds, of ``table.chosen``."""
    by_depth = table.by_depth[0]
    cost = 1
    for axis in range(table.chosen.shape[0]):
        number = table.chosen[axis]
        if number >= 0:
            value = table.bounds[number] >> 1
            cost = max(cost, 1 + value) if by_depth else cost + value
    return cost


@inlined
def _set_reaches(table, size, axes, value, limit, steps):
    """Whether a set reaches a value of the root that no set is below.

    Returns:
        1 or 0, or -1 if it was stopped; why; and the steps that are left.
    """
    if not _answers_to(table, size, axes):
        return -1, TOO_LARGE, steps
    while True:
        cost = _cost(table)
        if cost > value:
            return 0, SOLVED, steps
        open_answer = np.int64(-1)
        for axis in range(table.chosen.shape[0]):
            number = table.chosen[axis]
            if number >= 0 and table.bounds[number] & 1 == 0:
                open_answer = number
                break
        if open_answer < 0:
            return 1, SOLVED, steps
        threshold = value - 1
        if not table.by_depth[0]:
            threshold = value - cost + (table.bounds[open_answer] >> 1)
        status, steps = _advance(table, open_answer, threshold, limit, steps)
        if status != SOLVED:
            return -1, status, steps


@inlined
def _take_root(table, points, size):
    for p in range(size):
        for j in range(points.shape[1]):
            table.root[p, j] = points[p, j]
            table.below[p, j] = points[p, j]
    if _reduce(table.root, size) > _LARGEST:
        return np.int64(-1)
    return np.int64(_position_of(table, table.below, size))


@inlined
def _host_row(table, points, size, budget, optimal):
    """Labels one position; returns why it ended and the value."""
    limit = table.counters[EXPANDED] + budget
    steps = budget * _STEPS_PER_EXPANSION
    num_answers = table.root.shape[1] * table.sets.shape[0]
    if not _has_room(table, size, num_answers + 1):
        return _FULL, 0
    root = _take_root(table, points, size)
    if root < 0:
        return TOO_LARGE, 0
    status, steps = _advance(table, root, _NO_LIMIT, limit, steps)
    value = table.bounds[root] >> 1
    if status != SOLVED:
        return status, 0
    for action in range(table.host_sets.shape[0]):
        if not _has_room(table, size, num_answers):
            return _FULL, 0
        reaches, status, steps = _set_reaches(
            table, size, table.host_sets[action], value, limit, steps
        )
        if status != SOLVED:
            return status, 0
        optimal[action] = reaches == 1
    return SOLVED, value


@inlined
def _agent_row(table, points, size, axes, budget, optimal):
    """Labels one position with a set; returns why it ended and the value."""
    limit = table.counters[EXPANDED] + budget
    steps = budget * _STEPS_PER_EXPANSION
    num_answers = table.root.shape[1] * table.sets.shape[0]
    if not _has_room(table, size, num_answers + 1):
        return _FULL, 0
    if _take_root(table, points, size) < 0 or not _answers_to(table, size, axes):
        return TOO_LARGE, 0
    worst = np.int64(-1)
    for axis in range(table.chosen.shape[0]):
        number = table.chosen[axis]
        if number >= 0:
            status, steps = _advance(table, number, _NO_LIMIT, limit, steps)
            if status != SOLVED:
                return status, 0
            worst = max(worst, table.bounds[number] >> 1)
    for axis in range(table.chosen.shape[0]):
        number = table.chosen[axis]
        optimal[axis] = number >= 0 and table.bounds[number] >> 1 == worst
    return SOLVED, _cost(table)


@inlined
def _clear(table):
    for k in range(table.slots.shape[0]):
        table.slots[k] = -1
    for k in range(NUM_COUNTERS):
        table.counters[k] = 0
    table.counters[POSITIONS] = _RESERVED
    for number in range(_RESERVED):
        if number == 0:
            value = 0 if table.by_depth[0] else 1
        else:
            value = 1 if table.by_depth[0] else 1 + number
        table.bounds[number] = 2 * value + 1


@compiled
def clear(table):
    """Empties the table."""
    _clear(table)


@compiled
def label_host(table, points, count, budget, optimal, value, status):
    """The host's optimal actions in many positions.

    Args:
        table: the table, which is emptied and used again whenever it is full.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 2 to P.
        budget: positions expanded for a label.
        optimal: bool [N, A], written to.
        value: int64 [N], written to; 0 where there is no label.
        status: int64 [N], written to.
    """
    for n in range(points.shape[0]):
        for _ in range(2):
            ended, cost = _host_row(table, points[n], count[n], budget, optimal[n])
            if ended != _FULL:
                break
            # Once more with all of the room; then it is too much for it.
            _clear(table)
            ended = OUT_OF_BUDGET
        if ended != SOLVED:
            optimal[n] = False
        status[n], value[n] = ended, cost


@compiled
def label_agent(table, points, count, sets, budget, optimal, value, status):
    """The agent's optimal axes in many positions; as `label_host`, with bool [N, D] ``optimal``.

    Args:
        table: as there.
        points: as there.
        count: as there.
        sets: int64 [N], the host's sets, bit j for axis j.
        budget: as there.
        optimal: bool [N, D], written to.
        value: as there.
        status: as there.
    """
    for n in range(points.shape[0]):
        for _ in range(2):
            ended, cost = _agent_row(table, points[n], count[n], sets[n], budget, optimal[n])
            if ended != _FULL:
                break
            _clear(table)
            ended = OUT_OF_BUDGET
        if ended != SOLVED:
            optimal[n] = False
        status[n], value[n] = ended, cost


@compiled
def canonical_batch(table, points, count, forms, digests):
    """Canonical forms of many positions.

    Args:
        table: room to work.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 1 to P.
        forms: int64 [N, P, D], written to: ascending, absent rows -1.
        digests: int64 [N, 2], written to: two independent hashes of the form, 0 where a coordinate
            is too large for one.
    """
    for n in range(points.shape[0]):
        size = count[n]
        for p in range(points.shape[1]):
            for j in range(points.shape[2]):
                forms[n, p, j] = -1
                if p < size:
                    table.root[p, j] = points[n, p, j]
        width = _canonical_key(table, table.root, size)
        digests[n] = 0
        if width > 0:
            _unpack(table.key, 0, size, width, forms[n])
            digests[n, 0] = _hash(table.key, size * width, _HASH_START)
            digests[n, 1] = _hash(table.key, size * width, _OTHER_START)


@compiled
def new_members(slots, digests, new):
    """Marks the digests that are not in a set yet, and puts them in.

    Args:
        slots: int64 [S, 2], S a power of two larger than all that will be put in; 0 in free ones.
        digests: int64 [N, 2]; a row of zeros is never new.
        new: bool [N], written to.
    """
    mask = slots.shape[0] - 1
    for n in range(digests.shape[0]):
        one, other = digests[n, 0], digests[n, 1]
        new[n] = False
        if one == 0 and other == 0:
            continue
        slot = one & mask
        while True:
            if slots[slot, 0] == 0 and slots[slot, 1] == 0:
                slots[slot, 0], slots[slot, 1] = one, other
                new[n] = True
                break
            if slots[slot, 0] == one and slots[slot, 1] == other:
                break
            slot = (slot + 1) & mask
