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
    copy,
    hash_of,
    reduce,
    unpack,
    write_rows,
)
from resgym.solver.search import NO_TREE, SCALE
from resgym.solver.table import (
    END,
    HEIGHT,
    LEFT,
    LOWER,
    MOVES,
    SHADOWS,
    SIZE,
    UPPER,
    add_answers,
    add_moves,
    costs_of,
    has_room,
    ones,
    open_answer,
    play,
    position_of,
    take_shadows,
)

DONE, STOPPED, TOO_LARGE, FULL, CROWDED = range(5)
"""Why a search returns: it is through, the effort allowed is spent, a coordinate is too large for
it, the table is full, or was so before the row was begun."""


@inlined
def _decide(table, room, root, limit, effort):
    """Finds out whether the value of a position is at most a limit; returns why it ended.

    ``effort`` int64 [2] is what may be spent, expansions and steps, and is counted down; an
    expansion takes ten steps more.
    """
    entries, goal = table.entries, table.goal
    lower, upper = entries[:, LOWER], entries[:, UPPER]
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
        if height == stack.shape[0] or not has_room(table, room, entries[top, SIZE]):
            status = FULL
            break
        effort[1] -= 1
        take_shadows(table, room, top)
        # An answer along an axis leaves the projection as it is, so that it must be good for one
        # move less if the set may have this axis.
        fewer = np.int64(not goal.by_sum and entries[top, LEFT] < 0)
        at = entries[top, SHADOWS]
        asked, shut = np.int64(-1), 0
        for axis in range(answers[at]):
            shadow = np.int64(answers[at + 1 + axis])
            aim = max(limit - fewer, lower[shadow])
            if asked < 0 and aim <= limit and aim < upper[shadow]:
                asked = shadow
                stack[height, 0], stack[height, 1] = asked, aim
            shut |= np.int64(aim == limit) * fewer << axis
        if lower[top] > limit:
            continue
        if asked >= 0:
            height += 1
            continue
        if entries[top, MOVES] < 0:
            if effort[0] <= 0:
                status = STOPPED
                break
            if not add_moves(table, room, top):
                status = TOO_LARGE
                break
            effort[0] -= 1
            effort[1] -= 10
        least, sure = NO_TREE, NO_TREE
        at = entries[top, MOVES]
        best, best_rank = np.int64(-1), np.int64(2**62)
        while at < entries[top, END]:
            low, high, total = np.int64(answers[at + 1]), NO_TREE, np.int64(answers[at + 2])
            axes = table.sets[max(answers[at], -answers[at] - 1)]
            count = ones(axes)
            if answers[at] >= 0:
                low, high, total = costs_of(entries, goal, answers, at + 3, count)
            if axes & shut:
                low = max(low, limit + 1)
                answers[at + 1] = min(low, NO_TREE)
            if low <= limit:
                rank = np.int64(total)
                if not goal.by_sum:
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
        # Projections may have been looked at for the sake of other positions.
        rose = False
        if room.columns.shape[0] > 3:
            for k in range(best + 3, best + 3 + count):
                if answers[k] > 0 and take_shadows(table, room, np.int64(answers[k])):
                    rose = True
        if rose:
            continue
        stack[height, 0], stack[height, 1] = open_answer(
            entries, goal, answers, best + 3, count, limit
        )
        height += 1
    table.counters[HEIGHT] = height
    return status


@inlined
def _search_row(
    table, room, points, size, left, asked, host_sets, highest, resumed, effort, optimal, bounds
):
    """One row of `search`; returns why it ended."""
    copy(points, size, room.rows[ROOT])
    if not has_room(table, room, size):
        return FULL if resumed else CROWDED
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
    answers, entries, goal = room.axes[CHOSEN], table.entries, table.goal
    # First the position itself, or every answer to the set, is settled; then, for the host, it is
    # found out which sets reach the value.
    count = 1
    if asked <= 0:
        copy(room.rows[ROOT], size, room.rows[THERE])
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
            low, high, _ = costs_of(entries, goal, answers, 0, count)
            if action >= 0:
                optimal[action] = high <= value
                if low > value or high <= value:
                    break
                answer, limit = open_answer(entries, goal, answers, 0, count, value)
            else:
                answer = np.int64(-1)
                for k in range(count):
                    if entries[answers[k], LOWER] < entries[answers[k], UPPER]:
                        answer = answers[k]
                        limit = entries[answer, LOWER]
                if asked <= 0:
                    low = entries[answers[0], LOWER]
                    high = entries[answers[0], UPPER]
                bounds[0], bounds[1], value = low, high, low
                if answer < 0 or low > highest:
                    break
            status = _decide(table, room, answer, limit, effort)
            if status != DONE:
                return status
    if asked > 0:
        most = 0
        for k in range(count):
            most = max(most, entries[answers[k], LOWER])
        k = 0
        for axis in range(points.shape[1]):
            if (asked >> axis) & 1:
                optimal[axis] = entries[answers[k], LOWER] == most
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
        if status[n] >= FULL:
            return n
    return points.shape[0]


@compiled
def canonical_digests(room, points, count, digests):
    """Two independent hashes of the canonical forms of many positions.

    Args:
        room: memory.
        points: int64 [N, P, D], minimal points first.
        count: int64 [N], 1 to P.
        digests: int64 [N, 2], 0, written to where no coordinate is too large.
    """
    for n in range(points.shape[0]):
        size = count[n]
        copy(points[n], size, room.rows[ROOT])
        if reduce(room.rows[ROOT], size) > LARGEST:
            continue
        canonical_key(room, room.rows[ROOT], size)
        for k in range(2):
            digests[n, k] = hash_of(room.words[KEY], size * points.shape[2], k + 1)
