"""Compiled: the search of `resgym.solver.search`, on a table, for one position or for many."""

from __future__ import annotations

import numpy as np

from resgym.kernels.cpu.compilation import compiled, inlined
from resgym.solver.forms import (
    CHOSEN,
    HERE,
    KEY,
    LARGEST,
    ORDER,
    ROOT,
    THERE,
    TRIAL,
    canonical_key,
    hash_of,
    reduce,
    unpack,
    write_rows,
)
from resgym.solver.search import NO_TREE, SCALE
from resgym.solver.table import (
    END,
    HEIGHT,
    LOWER,
    MOVES,
    SHADOWS,
    SIZE,
    UPPER,
    add_answers,
    add_moves,
    add_shadows,
    costs_of,
    has_room,
    ones,
    open_answer,
    play,
    position_of,
)

DONE, STOPPED, TOO_LARGE, FULL = 0, 1, 2, 3
"""Why a search returns: it is through, the effort allowed is spent, a coordinate is too large for
it, the table is full."""


@inlined
def _decide(table, room, root, limit, effort):
    """Finds out whether the value of a position is at most a limit; returns why it ended.

    ``effort`` int64 [2] is what may be spent, expansions and steps, and is counted down; an
    expansion takes ten steps more.
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
        if effort[1] <= 0:
            status = STOPPED
            break
        if height == stack.shape[0] or not has_room(table, room, table.entries[top, SIZE]):
            status = FULL
            break
        effort[1] -= 1
        if table.entries[top, SHADOWS] < 0:
            add_shadows(table, room, top)
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
            if effort[0] <= 0:
                status = STOPPED
                break
            if not add_moves(table, room, top):
                status = TOO_LARGE
                break
            effort[0] -= 1
            effort[1] -= 10
        least, sure = NO_TREE, NO_TREE
        at = table.entries[top, MOVES]
        best, best_rank = np.int64(-1), np.int64(2**62)
        while at < table.entries[top, END]:
            low, high, total = np.int64(answers[at + 1]), NO_TREE, np.int64(answers[at + 2])
            count = ones(table.sets[max(answers[at], -answers[at] - 1)])
            if answers[at] >= 0:
                low, high, total = costs_of(table, answers, at + 3, count)
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
            add_answers(table, room, top, best)
            continue
        count = ones(table.sets[answers[best]])
        stack[height, 0], stack[height, 1] = open_answer(table, answers, best + 3, count, limit)
        height += 1
    table.counters[HEIGHT] = height
    return status


@inlined
def _search_row(
    table, room, points, size, left, asked, host_sets, highest, resumed, effort, optimal, bounds
):
    """One row of `search`; returns why it ended."""
    room.rows[ROOT][:size] = points[:size]
    if not has_room(table, room, size):
        return FULL
    if reduce(room.rows[ROOT], size) > LARGEST:
        return TOO_LARGE
    stack = table.stack
    if resumed and table.counters[HEIGHT] > 0:
        # The question at which there was no room; all before it are answered by the table.
        status = _decide(table, room, stack[0, 0], stack[0, 1], effort)
        if status != DONE:
            return status
    elif asked >= 0:
        table.counters[HEIGHT] = 0
    answers = room.axes[CHOSEN]
    # First the position itself, or every answer to the set, is settled; then, for the host, it is
    # found out which sets reach the value.
    count = 1
    if asked <= 0:
        room.rows[THERE][:size] = room.rows[ROOT][:size]
        answers[0] = position_of(table, room, room.rows[THERE], size, left)
    value = NO_TREE
    last = host_sets.shape[0] if asked == 0 else 0
    for action in range(-1, last):
        axes = asked if action < 0 else host_sets[action]
        if axes > 0:
            if not has_room(table, room, size):
                return FULL
            for j in range(points.shape[1]):
                room.axes[ORDER][j] = j
            write_rows(room.rows[ROOT], size, room.axes[ORDER], room.words[TRIAL])
            unpack(room.words[TRIAL], 0, size, room.rows[HERE])
            count = 0
            for axis in range(points.shape[1]):
                if (axes >> axis) & 1:
                    kept = play(room, size, axes, axis)
                    answers[count] = -1
                    if kept > 0:
                        answers[count] = position_of(table, room, room.rows[THERE], kept, left)
                    if answers[count] < 0:
                        return TOO_LARGE
                    count += 1
        while True:
            low, high, _ = costs_of(table, answers, 0, count)
            if action >= 0:
                optimal[action] = high <= value
                if low > value or high <= value:
                    break
                answer, limit = open_answer(table, answers, 0, count, value)
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
            status = _decide(table, room, answer, limit, effort)
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
    table, room, begin, points, count, left, asked, host_sets, highest, effort, optimal, bounds,
    status,
):  # fmt: skip
    """Bounds, and optimal moves, of many positions, from row ``begin`` on.

    Args:
        table: the table.
        room: memory.
        begin: the row to begin with.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 1 to P.
        left: moves that remain, -1 for any number.
        asked: int64 [N]: -1 for the value alone, 0 for the host's optimal sets, else the set that
            the agent is asked about.
        host_sets: int64 [A], in the order of the environments, bit j for axis j.
        highest: a value is settled no further once its bound is larger.
        effort: int64 [N, 2], positions that may be expanded for a row, and steps besides; counted
            down.
        optimal: bool [N, A] or [N, D], False, written to.
        bounds: int64 [N, 2], 0, written to: bounds of the value, after the set
            if one is asked about.
        status: int64 [N], 0, written to; a row that is `FULL` is gone on with where it stopped.

    Returns:
        the row for which the table had no room; N if there is none.
    """
    for n in range(begin, points.shape[0]):
        status[n] = _search_row(
            table, room, points[n], count[n], left, asked[n], host_sets, highest,
            status[n] == FULL, effort[n], optimal[n], bounds[n],
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
        room.rows[ROOT][:size] = points[n, :size]
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
