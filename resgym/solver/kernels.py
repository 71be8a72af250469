"""Compiled: the search of `resgym.solver.search`, on arrays, for one position or for many.

Positions of the table are kept as keys (see `resgym.solver.forms`), which are compared in full, so
equal hashes do no harm. Position 0 stands for everything finished.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.kernels.cpu.rules import play_move
from resgym.solver.forms import (
    CHOSEN,
    HERE,
    KEY,
    LARGEST,
    LIST,
    ORDER,
    ROOT,
    THERE,
    TRIAL,
    bound_of,
    canonical_key,
    hash_of,
    minimal,
    reduce,
    unpack,
    write_rows,
)
from resgym.solver.search import NO_TREE, SCALE

__all__ = [
    "ANSWERS",
    "DONE",
    "EXPANDED",
    "FULL",
    "POSITIONS",
    "STOPPED",
    "TOO_LARGE",
    "WORDS",
    "Table",
    "canonical_batch",
    "new_members",
    "rehash",
    "search",
]

DONE, STOPPED, TOO_LARGE, FULL = 0, 1, 2, 3
"""Why a search returns: it is through, the effort allowed is spent, a coordinate is too large for
it, the table is full."""

POSITIONS, WORDS, ANSWERS, EXPANDED, HEIGHT = range(5)
"""Counters: what is in use, how many positions have been expanded, the height of the stack."""

START, SIZE, LEFT, HASH, LOWER, UPPER, SHADOWS, MOVES, END = range(9)
"""A position: where its key begins, its points, moves that remain (-1 for any number), hash, proved
bounds of the value, where its projections and its moves begin among the answers (-1: not generated
yet), where these end."""


class Table(NamedTuple):
    """A table of positions.

    Attributes:
        by_depth: bool [1], whether the objective is the depth.
        cut: bool [1], whether a position with no move remaining costs its bound, or `NO_TREE`.
        sets: int64 [A], the host's sets in the order of the search, bit j for axis j.
        counters: int64 [5], see `POSITIONS` and the next.
        words: int64 [W], keys one after the other.
        entries: int64 [C, 9], positions, see `START` and the next.
        slots: int32 [S], S a power of two: positions by hash, -1 in free ones.
        answers: int32 [B]: the number of projections of a position, and these; and for each set of
            its moves the set (-1 - set while its answers are not generated), a lower bound of its
            cost, the sum of the bounds of its answers, and these.
        stack: int64 [K, 2], positions and the limits that they are asked about.
    """

    by_depth: Any
    cut: Any
    sets: Any
    counters: Any
    words: Any
    entries: Any
    slots: Any
    answers: Any
    stack: Any


@inlined
def _find(table, room, size, left, hashed):
    """The number of the position whose key is in ``room``, or -1 - (the free slot for it)."""
    mask = table.slots.shape[0] - 1
    slot = hashed & mask
    while table.slots[slot] >= 0:
        number = np.int64(table.slots[slot])
        if (
            table.entries[number, HASH] == hashed
            and table.entries[number, SIZE] == size
            and table.entries[number, LEFT] == left
        ):
            at = table.entries[number, START]
            same = True
            for k in range(size * room.columns.shape[0]):
                if table.words[at + k] != room.words[KEY][k]:
                    same = False
                    break
            if same:
                return number
        slot = (slot + 1) & mask
    return -1 - slot


@inlined
def _position_of(table, room, rows, size, left):
    """The number of a position, which is added if it is new; there must be room.

    The rows are reduced. The number is -1 if a coordinate is too large.
    """
    if size == 1:
        return np.int64(0)
    if reduce(rows, size) > LARGEST:
        return np.int64(-1)
    canonical_key(room, rows, size)
    length = size * rows.shape[1]
    hashed = hash_of(room.words[KEY], length, left + 1)
    number = _find(table, room, size, left, hashed)
    if number >= 0:
        return number
    slot = -1 - number
    number = table.counters[POSITIONS]
    table.slots[slot] = number
    at = table.counters[WORDS]
    for k in range(length):
        table.words[at + k] = room.words[KEY][k]
    table.entries[number, START] = at
    table.entries[number, SIZE] = size
    table.entries[number, LEFT] = left
    table.entries[number, HASH] = hashed
    table.entries[number, SHADOWS] = table.entries[number, MOVES] = -1
    by_depth = table.by_depth[0]
    lower, active = bound_of(room, rows, size, by_depth, -1)
    upper = NO_TREE
    if left >= 0 and bound_of(room, rows, size, left >= 0, -1)[0] > left:
        # Not to be resolved within what remains.
        lower = lower if table.cut[0] else NO_TREE
        upper = lower
    elif active == 2:
        upper = lower
    table.entries[number, LOWER], table.entries[number, UPPER] = lower, upper
    table.counters[POSITIONS] += 1
    table.counters[WORDS] += length
    return number


@inlined
def _has_room(table, room, size):
    """Whether there is room for all that one step makes of a position."""
    dimension, num_sets = room.columns.shape[0], table.sets.shape[0]
    new, counters = 3 * dimension, table.counters
    return (
        counters[WORDS] + new * size * dimension <= table.words.shape[0]
        and counters[POSITIONS] + new <= table.entries.shape[0]
        and counters[ANSWERS] + num_sets * (dimension + 3) + new <= table.answers.shape[0]
        and 2 * (counters[POSITIONS] + new) <= table.slots.shape[0]
    )


@inlined
def _play(room, size, axes, axis):
    """The position after a move from `HERE`, to `THERE`; its size, or -1 if it is too large."""
    here, there = room.rows[HERE], room.rows[THERE]
    for p in range(size):
        for j in range(here.shape[1]):
            there[p, j] = here[p, j]
    kept = play_move(
        room.axes[ORDER], there, size, axes, axis, True, room.words[LIST], room.words[TRIAL]
    )
    for p in range(kept):
        if there[p, axis] > LARGEST:
            return -1
    return kept


@inlined
def _take(table, room, number):
    """Unpacks a position to `HERE`; its size and the axes that are not 0 throughout, as bits."""
    size, here = table.entries[number, SIZE], room.rows[HERE]
    unpack(table.words, table.entries[number, START], size, here)
    active = 0
    for j in range(here.shape[1]):
        for p in range(size):
            if here[p, j] > 0:
                active |= 1 << j
                break
    return size, active


@inlined
def _add_shadows(table, room, number):
    """Generates the projections of a position with four or more axes."""
    here, there, answers = room.rows[HERE], room.rows[THERE], table.answers
    size, active = _take(table, room, number)
    table.entries[number, SHADOWS] = first = table.counters[ANSWERS]
    at = first + 1
    for axis in range(here.shape[1]):
        if (active >> axis) & 1 and _ones(active) > 3:
            for p in range(size):
                for j in range(here.shape[1]):
                    there[p, j] = 0 if j == axis else here[p, j]
            kept = minimal(there, size)
            answers[at] = _position_of(table, room, there, kept, table.entries[number, LEFT])
            at += 1
    answers[first] = at - first - 1
    table.counters[ANSWERS] = at


@inlined
def _ones(axes):
    number = 0
    while axes:
        axes &= axes - 1
        number += 1
    return number


@inlined
def _add_moves(table, room, number):
    """Generates the sets of a position, with bounds for their costs; False if one is too large."""
    answers, by_depth = table.answers, table.by_depth[0]
    size, active = _take(table, room, number)
    bound_of(room, room.rows[HERE], size, by_depth, -1)
    table.entries[number, MOVES] = at = table.counters[ANSWERS]
    for s in range(table.sets.shape[0]):
        axes = table.sets[s]
        if axes & ~active:
            # An axis that is 0 throughout helps nobody but the agent.
            continue
        most = total = 0
        for axis in range(room.columns.shape[0]):
            if (axes >> axis) & 1:
                kept = _play(room, size, axes, axis)
                if kept < 0:
                    return False
                bound = 0 if by_depth else 1
                if kept > 1:
                    bound = bound_of(room, room.rows[THERE], kept, by_depth, axis)[0]
                most, total = max(most, bound), total + bound
        answers[at] = -s - 1
        answers[at + 1] = 1 + (most if by_depth else total)
        answers[at + 2] = total
        at += 3 + _ones(axes)
    table.entries[number, END] = table.counters[ANSWERS] = at
    table.counters[EXPANDED] += 1
    return True


@inlined
def _add_answers(table, room, number, at):
    """Generates the answers to a set of a position."""
    answers = table.answers
    left = table.entries[number, LEFT]
    axes = table.sets[-answers[at] - 1]
    size = _take(table, room, number)[0]
    answers[at] = -answers[at] - 1
    place = at + 3
    for axis in range(room.columns.shape[0]):
        if (axes >> axis) & 1:
            # As when the sets were generated: none is too large.
            kept = _play(room, size, axes, axis)
            answer = _position_of(table, room, room.rows[THERE], kept, left - 1 if left > 0 else -1)
            if answer == number:
                # It leads back here and is of no use.
                answers[at], answers[at + 1] = -answers[at] - 1, NO_TREE
                break
            answers[place] = answer
            place += 1


@inlined
def _costs(table, answers, begin, count):
    """Proved bounds of the cost of a set, by its answers, and the sum of their lower bounds."""
    low = high = 1
    total = 0
    by_depth = table.by_depth[0]
    for k in range(begin, begin + count):
        below, above = table.entries[answers[k], LOWER], table.entries[answers[k], UPPER]
        total += below
        low = max(low, 1 + below) if by_depth else low + below
        high = max(high, 1 + above) if by_depth else high + above
    return min(low, NO_TREE), min(high, NO_TREE), total


@inlined
def _open_answer(table, answers, begin, count, limit):
    """The answer to look at next, and the limit to ask it about; -1 if there is none.

    The answer that looks worst is the likeliest to show that the set is no good. In sums each
    answer has to be found out exactly, so it is asked for its lower bound.
    """
    chosen, most = np.int64(-1), np.int64(-1)
    by_depth = table.by_depth[0]
    for k in range(begin, begin + count):
        answer = np.int64(answers[k])
        below, above = table.entries[answer, LOWER], table.entries[answer, UPPER]
        if below > most and (above >= limit if by_depth else above > below):
            chosen, most = answer, below
    return chosen, limit - 1 if by_depth else most


@inlined
def _decide(table, room, root, limit, expansions, work):
    """Finds out whether the value of a position is at most a limit.

    It stops when so many positions have been expanded in all, and after so many steps of work; a
    position expanded counts as ten. Returns `DONE`, or why it stopped, and the work that is left.
    """
    lower, upper = table.entries[:, LOWER], table.entries[:, UPPER]
    answers, stack = table.answers, table.stack
    height, status = table.counters[HEIGHT], DONE
    if height == 0 or stack[0, 0] != root or stack[0, 1] != limit:
        height = 1
        stack[0, 0], stack[0, 1] = root, limit
    while height > 0:
        top, limit = stack[height - 1, 0], stack[height - 1, 1]
        if lower[top] > limit or upper[top] <= limit:
            height -= 1
            continue
        if work <= 0:
            status = STOPPED
            break
        work -= 1
        if height == stack.shape[0] or not _has_room(table, room, table.entries[top, SIZE]):
            status = FULL
            break
        if table.entries[top, SHADOWS] < 0:
            _add_shadows(table, room, top)
        at = table.entries[top, SHADOWS]
        asked = np.int64(-1)
        for k in range(at + 1, at + 1 + answers[at]):
            shadow = np.int64(answers[k])
            lower[top] = max(lower[top], lower[shadow])
            if asked < 0 and lower[shadow] <= limit < upper[shadow]:
                asked = shadow
        if lower[top] > limit:
            continue
        if asked >= 0:
            stack[height, 0], stack[height, 1] = asked, limit
            height += 1
            continue
        if table.entries[top, MOVES] < 0:
            if table.counters[EXPANDED] >= expansions:
                status = STOPPED
                break
            work -= 10
            if not _add_moves(table, room, top):
                status = TOO_LARGE
                break
        least, sure = NO_TREE, NO_TREE
        at = table.entries[top, MOVES]
        best, best_rank = np.int64(-1), np.int64(2**62)
        while at < table.entries[top, END]:
            low, high, total = np.int64(answers[at + 1]), NO_TREE, np.int64(answers[at + 2])
            count = _ones(table.sets[max(answers[at], -answers[at] - 1)])
            if answers[at] >= 0:
                low, high, total = _costs(table, answers, at + 3, count)
            if low <= limit:
                rank = np.int64(total)
                if table.by_depth[0]:
                    # What is begun goes first.
                    rank = total * SCALE // count + (2**55 if answers[at] < 0 else 0)
                if rank < best_rank:
                    best, best_rank = at, rank
            least, sure = min(least, low), min(sure, high)
            at += 3 + count
        lower[top], upper[top] = max(lower[top], least), min(upper[top], sure)
        if lower[top] > limit or upper[top] <= limit:
            continue
        if answers[best] < 0:
            _add_answers(table, room, top, best)
            continue
        count = _ones(table.sets[answers[best]])
        stack[height, 0], stack[height, 1] = _open_answer(table, answers, best + 3, count, limit)
        height += 1
    table.counters[HEIGHT] = height
    return status, work


@compiled
def rehash(slots, entries, positions):
    """Fills empty slots with the numbers of all positions but that of the finished ones."""
    mask = slots.shape[0] - 1
    for number in range(1, positions):
        slot = entries[number, HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@inlined
def _search_row(
    table, room, points, size, left, asked, host_sets, highest, expansions, work, optimal, bounds
):
    """One row of `search`; returns why it ended."""
    for p in range(size):
        for j in range(points.shape[1]):
            room.rows[ROOT][p, j] = points[p, j]
    if not _has_room(table, room, size):
        return FULL
    if reduce(room.rows[ROOT], size) > LARGEST:
        return TOO_LARGE
    answers = room.axes[CHOSEN]
    # First the position itself, or every answer to the set, is settled; then, for the host, it is
    # found out which sets reach the value.
    count = 1
    if asked >= 0:
        table.counters[HEIGHT] = 0
    if asked <= 0:
        for p in range(size):
            for j in range(points.shape[1]):
                room.rows[THERE][p, j] = room.rows[ROOT][p, j]
        answers[0] = _position_of(table, room, room.rows[THERE], size, left)
    value = NO_TREE
    last = host_sets.shape[0] if asked == 0 else 0
    for action in range(-1, last):
        axes = asked if action < 0 else host_sets[action]
        if axes > 0:
            if not _has_room(table, room, size):
                return FULL
            for j in range(points.shape[1]):
                room.axes[ORDER, j] = j
            write_rows(room.rows[ROOT], size, room.axes[ORDER], room.words[TRIAL])
            unpack(room.words[TRIAL], 0, size, room.rows[HERE])
            count = 0
            for axis in range(points.shape[1]):
                if (axes >> axis) & 1:
                    kept = _play(room, size, axes, axis)
                    answers[count] = -1
                    if kept > 0:
                        answers[count] = _position_of(table, room, room.rows[THERE], kept, left)
                    if answers[count] < 0:
                        return TOO_LARGE
                    count += 1
        while True:
            low, high, _ = _costs(table, answers, 0, count)
            if action >= 0:
                optimal[action] = high <= value
                if low > value or high <= value:
                    break
                answer, limit = _open_answer(table, answers, 0, count, value)
            else:
                answer = np.int64(-1)
                for k in range(count):
                    if table.entries[answers[k], LOWER] < table.entries[answers[k], UPPER]:
                        answer = answers[k]
                        limit = table.entries[answer, LOWER]
                if asked <= 0:
                    low = table.entries[answers[0], LOWER]
                    high = table.entries[answers[0], UPPER]
                bounds[0], bounds[1], value = low, high, low
                if answer < 0 or low > highest:
                    break
            status, work = _decide(table, room, answer, limit, expansions, work)
            if status != DONE:
                return status
    if asked > 0:
        most = 0
        for k in range(count):
            most = max(most, table.entries[answers[k], LOWER])
        k = 0
        for axis in range(points.shape[1]):
            if (asked >> axis) & 1:
                optimal[axis] = table.entries[answers[k], LOWER] == most
                k += 1
    return DONE


@compiled
def search(
    table, room, points, count, left, asked, host_sets, highest, budget, begin, optimal, bounds,
    status,
):  # fmt: skip
    """Bounds, and optimal moves, of many positions, from row ``begin`` on.

    Args:
        table: the table.
        room: memory.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 1 to P.
        left: moves that remain, -1 for any number.
        asked: int64 [N]: -1 for the value alone, 0 for the host's optimal sets, else the set that
            the agent is asked about.
        host_sets: int64 [A], in the order of the environments, bit j for axis j.
        highest: a value is settled no further once its bound is larger.
        budget: int64 [2], positions expanded for a row, and steps besides.
        begin: the row to begin with.
        optimal: bool [N, A] or [N, D], False, written to.
        bounds: int64 [N, 2], 0, written to: bounds of the value, after the set
            if one is asked about.
        status: int64 [N], written to.

    Returns:
        the row for which the table had no room; N if there is none.
    """
    for n in range(begin, points.shape[0]):
        status[n] = _search_row(
            table, room, points[n], count[n], left, asked[n], host_sets, highest,
            table.counters[EXPANDED] + budget[0], budget[1], optimal[n], bounds[n],
        )  # fmt: skip
        if status[n] == FULL:
            return n
    return points.shape[0]


@compiled
def canonical_batch(room, points, count, forms, digests):
    """Canonical forms of many positions.

    Args:
        room: memory.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 1 to P.
        forms: int64 [N, P, D], -1, written to: ascending.
        digests: int64 [N, 2], 0, written to, as the forms where no coordinate is too large: two
            independent hashes.
    """
    for n in range(points.shape[0]):
        size = count[n]
        for p in range(size):
            for j in range(points.shape[2]):
                room.rows[ROOT][p, j] = points[n, p, j]
        if reduce(room.rows[ROOT], size) > LARGEST:
            continue
        canonical_key(room, room.rows[ROOT], size)
        unpack(room.words[KEY], 0, size, forms[n, size - 1 :: -1])
        for k in range(2):
            digests[n, k] = hash_of(room.words[KEY], size * points.shape[2], k + 1)


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
